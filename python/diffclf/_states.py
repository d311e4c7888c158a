"""``StatesModel``: a learned density of rows of symbols."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _native
from ._arrays import ArrayLike, points
from ._energies import Composition, native_of
from ._model import Model, _whole
from ._progress import ProgressLike, progress_of
from ._results import StatesEvaluation, estimate
from ._sampling import Particles
from .errors import UsageError

if TYPE_CHECKING:
    from ._results import RegionWeight, Surface


class StatesModel(Model):
    """A learned density of rows of symbols (spins, sequences, categories), made by ``diffclf.fit(rows, states=K)``.

    Symbols are whole numbers from 0 to K - 1; at a noisy time of masked noise, K is the mask. ``log_density``, ``energy``, ``time_score``, ``sample``,
    ``diagnose``, ``report`` and ``rows`` are those of :class:`Model`; ``score`` gives the logarithms of the ratios of all changes of one site, in the
    shape (rows, sites, symbols). ``sample`` knows the methods jumps, tau-leaping and ancestral, and gives bytes.

    Examples
    --------
    >>> import diffclf, numpy as np
    >>> first = np.random.default_rng(1).integers(0, 2, 400)
    >>> spins = np.stack([first, first, 1 - first], axis=1)
    >>> model = diffclf.fit(spins, states=2, steps=40, width=16, depth=2, features=8, grid_levels=16, progress=False)
    >>> model
    <diffclf.StatesModel: 3 sites of 2 states, uniform noise, 40 steps on x (400 rows)>
    >>> model.log_density(spins[:4]).shape, model.sample(5, seed=7).shape
    ((4,), (5, 3))
    """

    __slots__ = ()

    def _kind(self) -> type[Composition]:
        return StatesComposition

    @property
    def states(self) -> int:
        """States of a site."""
        return int(self.content["spec"]["space"]["states"])

    def __repr__(self) -> str:
        spec, record = self.content["spec"], self.content["record"]
        data = " and ".join(
            f"{part['name']} ({part['rows']} rows)" if part["rows"] else part["name"] for part in record["data"]
        )
        return (
            f"<diffclf.StatesModel: {self.dim} sites of {self.states} states, {spec['process']['kind']} noise, "
            f"{record['steps']} steps on {data}>"
        )

    def anneal(
        self,
        n: int = 8192,
        *,
        target: str | None = None,
        method: str = "smc",
        levels: int | None = None,
        kernel: str | None = None,
        sweeps: int = 4,
        threshold: float = 0.3,
        runs: int = 1,
        seed: int = 0,
        progress: ProgressLike = False,
    ) -> Particles:
        """Weighted rows from noise to the model, or to the weights of a lattice, with log Z.

        Parameters
        ----------
        n
            Particles of all runs.
        target
            ising or potts: log Z is then that of the lattice's weights, and 0 for a density otherwise.
        method
            smc, or ais (never resampled).
        kernel, sweeps
            gibbs or metropolis, and its sweeps at each level.
        threshold
            Resample when the effective share falls below this.
        runs
            Independent runs, whose spread tells the error of log Z.
        """
        request = _request(n, target, method, levels, kernel, sweeps, threshold, runs, seed, progress)
        return _particles(self._native.anneal(request))

    def evaluate(  # type: ignore[override]
        self,
        system: str | None = None,
        *,
        system_seed: int | None = None,
        levels: int | None = None,
        samples: int = 1024,
        classified: int = 64,
        seed: int = 0,
        progress: ProgressLike = False,
    ) -> StatesEvaluation:
        """Beside the exact law of a built-in system of states (ising, potts, product-mixture, ...), by default the one it was trained on."""
        found = self._native.evaluate(
            {
                "system": system,
                "system_seed": system_seed,
                "levels": _whole(levels, "levels"),
                "samples": _whole(samples, "samples"),
                "classified": _whole(classified, "classified"),
                "seed": _whole(seed, "seed"),
                "progress": progress_of(progress),
            }
        )
        evaluation, enumerated, up = found["evaluation"], found["enumerated"], found["up"]
        return StatesEvaluation(
            system=found["system"],
            classification_excess=estimate(evaluation["excess"]),
            log_likelihood=estimate(evaluation["likelihood"]),
            log_total=None if enumerated is None else enumerated["log_total"],
            divergence=None if enumerated is None else enumerated["divergence"],
            up=None if up is None else (up[0], up[1]),
            figures=found,
        )

    # What belongs to rows of numbers

    def hessian_product(self, x: ArrayLike, directions: ArrayLike, t: float | None = None) -> Any:
        """States have no derivatives in space."""
        raise _numbers("a Hessian")

    def torch(self) -> Any:
        """States have no derivatives in space."""
        raise _numbers("a torch module")

    def jax(self, t: float | None = None) -> Any:
        """States have no derivatives in space."""
        raise _numbers("a function for jax")

    def weight(self, *where: str, **others: Any) -> list[RegionWeight]:
        """Regions are made of numbers."""
        raise _numbers("weights of regions")

    def surface(self, *along: str | int, **others: Any) -> Surface:
        """Surfaces are made of numbers."""
        raise _numbers("a free-energy surface")


class StatesComposition(Composition):
    """A composition of models of states: ``A & B``, ``0.3 * A | 0.7 * B``, ``A ** 0.5``. Its log-density is known up to a constant, but for mixtures."""

    __slots__ = ()

    def _kind(self) -> type[Composition]:
        return StatesComposition

    def _evaluate(self, what: str, x: ArrayLike, t: float | None) -> Any:
        array, single = points(x, self.dim)
        values = _native.states_evaluate(native_of(self), what, array, t)
        return values[0] if single else values

    def score(self, x: ArrayLike, t: float | None = None) -> Any:
        """Logarithms of the ratios of all changes of one site, in the shape (rows, sites, symbols)."""
        return self._evaluate("score", x, t)

    def sample(  # type: ignore[override]
        self,
        n: int = 8192,
        *,
        method: str = "smc",
        levels: int | None = None,
        kernel: str | None = None,
        sweeps: int = 4,
        threshold: float = 0.3,
        runs: int = 1,
        seed: int = 0,
        progress: ProgressLike = False,
    ) -> Particles:
        """Weighted rows from noise to the composition, with log Z: see :meth:`StatesModel.anneal`."""
        request = _request(n, None, method, levels, kernel, sweeps, threshold, runs, seed, progress)
        return _particles(_native.states_compose(native_of(self), request))


def _request(
    n: int,
    target: str | None,
    method: str,
    levels: int | None,
    kernel: str | None,
    sweeps: int,
    threshold: float,
    runs: int,
    seed: int,
    progress: ProgressLike,
) -> dict[str, Any]:
    if method not in ("smc", "ais"):
        raise UsageError(f"method is {method!r}, expected 'smc' or 'ais' for states")
    return {
        "n": _whole(n, "n"),
        "target": target,
        "ais": method == "ais",
        "levels": _whole(levels, "levels"),
        "kernel": kernel,
        "sweeps": _whole(sweeps, "sweeps"),
        "threshold": float(threshold),
        "runs": _whole(runs, "runs"),
        "seed": _whole(seed, "seed"),
        "progress": progress_of(progress),
    }


def _particles(found: tuple[Any, Any, dict[str, Any]]) -> Particles:
    rows, weights, figures = found
    log_z = figures["log_z"]
    error = log_z["error"]
    return Particles(
        points=rows,
        weights=weights,
        log_z=log_z["value"],
        log_z_error=float("nan") if error is None else error,
        ess=figures["ess"],
        least_overlap=float("nan"),
        levels=[],
    )


def _numbers(what: str) -> UsageError:
    return UsageError(f"{what} belongs to a model of numbers, and this is one of states")
