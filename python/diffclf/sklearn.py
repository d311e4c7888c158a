"""A scikit-learn estimator: ``fit``, ``score_samples``, ``score``, ``sample``, in pipelines and grid searches.

>>> from diffclf.sklearn import DiffclfDensity
>>> import diffclf
>>> x = diffclf.system("two-modes", dim=2).sample(1000, seed=1)
>>> density = DiffclfDensity(steps=20, score_steps=20, width=16, depth=2).fit(x)
>>> density.score_samples(x[:3]).shape
(3,)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

try:
    from sklearn.base import BaseEstimator, DensityMixin
    from sklearn.utils import check_random_state
    from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data
except ImportError as missing:
    raise ImportError("diffclf.sklearn needs scikit-learn 1.6 or newer; install it with: pip install 'scikit-learn>=1.6'") from missing

from ._train import fit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ._arrays import ArrayLike
    from ._model import Model

__all__ = ["DiffclfDensity"]


class DiffclfDensity(DensityMixin, BaseEstimator):
    """The density of rows, learned by :func:`diffclf.fit`.

    Parameters
    ----------
    objective, steps, score_steps, base, batch, rate, width, depth, held_out
        As in :func:`diffclf.fit`; None is the default there.
    settings
        Further settings as a dict.
    random_state
        Seed of everything random.
    threads
        Threads of the training.

    Attributes
    ----------
    model_ : diffclf.Model
        The model.
    n_features_in_ : int
        Number of columns.
    """

    def __init__(
        self,
        objective: str | None = None,
        steps: int | None = None,
        score_steps: int | None = None,
        base: str | None = None,
        batch: int | None = None,
        rate: float | None = None,
        width: int | None = None,
        depth: int | None = None,
        held_out: float | None = None,
        settings: dict[str, Any] | None = None,
        random_state: Any = 0,
        threads: int | None = None,
    ) -> None:
        self.objective = objective
        self.steps = steps
        self.score_steps = score_steps
        self.base = base
        self.batch = batch
        self.rate = rate
        self.width = width
        self.depth = depth
        self.held_out = held_out
        self.settings = settings
        self.random_state = random_state
        self.threads = threads

    def _seed(self, state: Any) -> int:
        if isinstance(state, (int, np.integer)):
            return int(state)
        return int(check_random_state(state).randint(np.iinfo(np.int32).max))

    def fit(self, X: ArrayLike, y: Any = None, sample_weight: ArrayLike = None) -> DiffclfDensity:
        """Learns the density of the rows of ``X``, each of which counts in proportion to its weight."""
        x = validate_data(self, X, dtype=[np.float64, np.float32], ensure_min_samples=2)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, x, ensure_non_negative=True)
        varying = x.std(axis=0) > 0
        if not varying.all():
            raise ValueError(
                f"column {int(np.argmin(varying))} holds the same value in all {len(x)} samples, so there is no density; drop it"
            )
        names = ("objective", "steps", "score_steps", "base", "batch", "rate", "width", "depth", "held_out")
        given: dict[str, Any] = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        given.update(self.settings or {})
        given.setdefault("seed", self._seed(self.random_state))
        self.model_: Model = fit(x, sample_weight=sample_weight, progress=False, threads=self.threads, **given)
        return self

    def score_samples(self, X: ArrayLike) -> NDArray[np.float64]:
        """The log-density of each row."""
        check_is_fitted(self)
        x = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        values: NDArray[np.float64] = self.model_.log_density(x)
        return values

    def score(self, X: ArrayLike, y: Any = None, sample_weight: ArrayLike = None) -> float:
        """The total log-density of the rows, as scikit-learn's KernelDensity has it; weighted, if they have weights."""
        values = self.score_samples(X)
        if sample_weight is None:
            return float(np.sum(values))
        return float(np.dot(values, _check_sample_weight(sample_weight, values, ensure_non_negative=True)))

    def sample(self, n_samples: int = 1, random_state: Any = None) -> NDArray[np.float64]:
        """New rows."""
        check_is_fitted(self)
        rows: NDArray[np.float64] = self.model_.sample(n_samples, seed=self._seed(random_state))
        return rows
