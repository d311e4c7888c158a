"""Free-energy differences with error bars. All are ``delta = log(Z_B / Z_A)`` in kT; pymbar's ``Delta_f`` is minus that.

>>> import numpy as np
>>> from diffclf import free_energy
>>> rng = np.random.default_rng(0)
>>> forward = rng.normal(1.0, 1.0, 4000)  # u_B - u_A on samples of A
>>> reverse = rng.normal(0.0, 1.0, 4000)  # u_A - u_B on samples of B
>>> found = free_energy.bar(forward, reverse)
>>> abs(found.delta.mean - -0.5) < 4 * found.delta.error
True
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _native
from ._arrays import ArrayLike, is_path, rows, scratch
from ._model import Model, _file, _whole
from ._results import Estimate, estimate
from .errors import InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["Difference", "Mbar", "Surface", "bar", "fep", "learn", "mbar", "statistical_inefficiency", "ti"]


@dataclass(frozen=True)
class Difference:
    """A free-energy difference ``log(Z_B / Z_A)`` in kT, with everything that tells whether to trust it."""

    delta: Estimate
    method: str
    #: What to beware of.
    notices: tuple[str, ...]
    #: Every figure.
    figures: dict[str, Any] = field(repr=False)
    #: The whole as the command prints it.
    text: str = field(repr=False)

    def __str__(self) -> str:
        return self.text

    def __float__(self) -> float:
        return self.delta.mean

    def _repr_html_(self) -> str:
        from html import escape

        notices = "".join(f"<li>{escape(notice)}</li>" for notice in self.notices)
        return f"<p><b>log(Z_B/Z_A) = {self.delta}</b> kT, by {escape(self.method)}</p>" + (f"<ul>{notices}</ul>" if notices else "")


def series(x: ArrayLike, what: str) -> list[float]:
    """A series of numbers, of any shape."""
    values: list[float] = rows(x, what).ravel().tolist()
    return values


def fep(
    forward: ArrayLike,
    reverse: ArrayLike = None,
    *,
    correlated: bool = False,
    bootstrap: int | None = None,
    seed: int = 0,
) -> Difference:
    """Exponential averages of works: ``forward = u_B - u_A`` on samples of A, ``reverse = u_A - u_B`` on samples of B, in kT.

    ``correlated`` works are a time series, whose errors are widened; ``bootstrap`` replicas give a second error bar.
    """
    record, notices, text = _native.free_energy_fep(
        series(forward, "forward"),
        None if reverse is None else series(reverse, "reverse"),
        correlated,
        _whole(bootstrap, "bootstrap"),
        _whole(seed, "seed"),
    )
    return Difference(estimate(record["forward"]["result"]["exponential"]), "fep", tuple(notices), record, text)


def bar(
    forward: ArrayLike, reverse: ArrayLike, *, subsample: bool = False, bootstrap: int | None = None, seed: int = 0
) -> Difference:
    """Bennett's acceptance ratio from works in both directions, in kT. ``subsample`` keeps only independent works of time series."""
    record, notices, text = _native.free_energy_bar(
        series(forward, "forward"), series(reverse, "reverse"), subsample, _whole(bootstrap, "bootstrap"), _whole(seed, "seed")
    )
    return Difference(estimate(record["result"]["delta"]), "bar", tuple(notices), record, text)


def ti(slopes: Sequence[ArrayLike] | ArrayLike, lambdas: ArrayLike, *, independent: bool = False, rule: str = "simpson") -> Difference:
    """Thermodynamic integration of ``du/dlambda`` (kT): one series for each value of lambda; A is the first, B the last.

    ``rule`` is trapezoid, simpson or spline; all three are in ``figures``.

    Examples
    --------
    >>> import numpy as np
    >>> from diffclf import free_energy
    >>> lambdas = np.linspace(0, 1, 5)
    >>> slopes = np.random.default_rng(0).normal(2 * lambdas[:, None], 0.1, (5, 1000))
    >>> found = free_energy.ti(slopes, lambdas)
    >>> abs(found.delta.mean + 1) < 4 * found.delta.error
    True
    """
    parts = [series(part, "slopes") for part in slopes]
    record, notices, text = _native.free_energy_ti(parts, series(lambdas, "lambdas"), independent)
    by_rule = {result["rule"]: result["delta"] for result in record["results"]}
    if rule not in by_rule:
        raise InputError(f"rule is {rule!r}, expected one of {', '.join(by_rule)}")
    return Difference(estimate(by_rule[rule]), f"ti ({rule})", tuple(notices), record, text)


def learn(
    model: Model,
    x: ArrayLike = None,
    end: ArrayLike = None,
    *,
    energies: tuple[ArrayLike, ArrayLike] | None = None,
    other_energies: tuple[ArrayLike, ArrayLike] | None = None,
    molecule: dict[str, Any] | None = None,
    sample_weight: tuple[ArrayLike, ArrayLike] | None = None,
    levels: int = 33,
    samples: int = 4096,
    integration_levels: int = 0,
    end_samples: int = 16384,
    seed: int = 0,
) -> Difference:
    """The difference between two states through the path that an interpolant has learned between their samples.

    Parameters
    ----------
    model
        An interpolant, ``diffclf.fit(x, end)``.
    x, end
        Samples of A and of B; left out for built-in systems.
    energies
        The energies (kT) of each state at its own samples. Without them the difference is that of the learned densities.
    other_energies
        The energies of B at samples of A and of A at samples of B, for a direct BAR beside it.
    molecule
        The molecule that the samples are frames of, as in ``fit``, in the solvents of A and B: it tells all energies.
    sample_weight
        Weights of the samples of A and of B, either of them None.
    levels, samples, integration_levels, end_samples
        Times along the path, samples at each; times of the integration, among which these samples are shared (0: the times along the path); samples of
        built-in systems at the ends.
    """
    own = energies or (None, None)
    other = other_energies or (None, None)
    weights = sample_weight or (None, None)
    with scratch() as folder:
        request = {
            "rows": [_file(part, name, folder, model.columns) for part, name in ((x, "x"), (end, "end"))],
            "weights": [_values(part, f"sample_weight{k}", folder) for k, part in enumerate(weights)],
            "own": [_values(part, f"energies{k}", folder) for k, part in enumerate(own)],
            "other": [_values(part, f"other_energies{k}", folder) for k, part in enumerate(other)],
            "molecule": None if molecule is None else json.dumps(molecule, default=os.fspath),
            "levels": _whole(levels, "levels"),
            "samples": _whole(samples, "samples"),
            "integration_levels": _whole(integration_levels, "integration_levels"),
            "end_samples": _whole(end_samples, "end_samples"),
            "seed": _whole(seed, "seed"),
        }
        record, notices, text = _native.free_energy_learn(model._native, request)
    return Difference(estimate(record["stated"]), "learned path", tuple(notices), record, text)


def _values(x: ArrayLike, name: str, folder: str) -> str | None:
    if x is None or is_path(x):
        return None if x is None else os.fspath(x)
    path = os.path.join(folder, f"{name}.npy")
    np.save(path, rows(x, name).ravel())
    return path


def statistical_inefficiency(series_: ArrayLike) -> float:
    """How many samples of a time series are worth one independent sample."""
    return _native.inefficiency(series(series_, "series"))


@dataclass(frozen=True)
class Surface:
    """Free energy along a coordinate, in kT, the lowest bin being zero; NaN where no sample fell."""

    edges: NDArray[np.float64]
    free_energy: NDArray[np.float64]
    error: NDArray[np.float64]
    probability: NDArray[np.float64]
    probability_error: NDArray[np.float64]
    #: Samples in each bin.
    samples: NDArray[np.int64]

    @property
    def centres(self) -> NDArray[np.float64]:
        """The middle of each bin."""
        middle: NDArray[np.float64] = 0.5 * (self.edges[1:] + self.edges[:-1])
        return middle


class Mbar:
    """MBAR, solved: see :func:`mbar`."""

    def __init__(self, native: _native.Mbar, energies: NDArray[Any], counts: NDArray[np.int64]) -> None:
        self._native = native
        self.energies = energies
        self.counts = counts

    @property
    def log_z(self) -> NDArray[np.float64]:
        """log(Z_k / Z_0) of every state."""
        return self._native.log_z()

    @property
    def iterations(self) -> int:
        """Newton steps it took."""
        return self._native.iterations()

    def difference(self, start: int = 0, end: int = -1) -> Estimate:
        """``log(Z_end / Z_start)``."""
        delta, error = self._native.differences()
        return Estimate(float(delta[start, end]), float(error[start, end]))

    def differences(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """``delta[i, j] = log(Z_j / Z_i)`` of all pairs, and their errors."""
        return self._native.differences()

    def covariance(self) -> NDArray[np.float64]:
        """Asymptotic covariance of log Z; only combinations that sum to zero have a meaning."""
        return self._native.covariance()

    def bootstrap(self, replicas: int = 200, *, correlated: bool = False, seed: int = 0) -> NDArray[np.float64]:
        """Errors of all differences by the bootstrap, in blocks if the samples are ``correlated`` series."""
        return self._native.bootstrap(_whole(replicas, "replicas"), correlated, _whole(seed, "seed"))[1]

    def effective_samples(self) -> NDArray[np.float64]:
        """How many samples of the state itself would carry as much information."""
        return self._native.effective_samples()

    def overlap(self) -> NDArray[np.float64]:
        """The overlap matrix of the states with samples; its rows sum to 1."""
        found = self._native.overlap()
        states = len(found["states"])
        return np.asarray(found["matrix"], dtype=np.float64).reshape(states, states)

    def overlap_figures(self) -> dict[str, Any]:
        """Overlap matrix, eigenvalues, one number for the whole, and the weakest links."""
        return self._native.overlap()

    def log_weights(self) -> NDArray[np.float64]:
        """log W_nk: the logarithm of the weight of every sample (row) in every state (column)."""
        u = self.energies
        f = -self.log_z
        terms = (f - u.T) + np.log(np.maximum(self.counts, 1e-300))
        top = terms.max(axis=1, keepdims=True)
        denominators = top + np.log(np.exp(terms - top).sum(axis=1, keepdims=True))
        weights: NDArray[np.float64] = (f - u.T) - denominators
        return weights

    def expectations(self, observables: ArrayLike, *, state: int = 0, energies: ArrayLike = None) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Means and errors of observables (one, or rows of several; a value for each sample) in a state, or in any ensemble by its reduced energies."""
        values = np.atleast_2d(rows(observables, "observables"))
        return self._native.expectations(values, _whole(state, "state"), None if energies is None else series(energies, "energies"))

    def perturbed(self, energies: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """``log(Z / Z_0)`` and errors of further states, by their reduced energies at every sample (rows)."""
        return self._native.perturbed(np.atleast_2d(rows(energies, "energies")))[0]

    def surface(self, coordinate: ArrayLike, bins: int | ArrayLike = 20, *, state: int = 0, energies: ArrayLike = None) -> Surface:
        """The free-energy surface along a coordinate, by its value at every sample; ``bins`` as in numpy.histogram."""
        values = rows(coordinate, "coordinate").ravel()
        edges = np.histogram_bin_edges(values, bins).astype(np.float64)
        if np.ndim(bins) == 0:
            # The highest sample belongs to the last bin.
            edges[-1] += 1e-9 * max(abs(edges[-1] - edges[0]), 1e-300)
        found = self._native.surface(
            values.tolist(), edges.tolist(), _whole(state, "state"), None if energies is None else series(energies, "energies")
        )
        free = [entry or {"mean": np.nan, "error": np.nan} for entry in found["free_energy"]]
        return Surface(
            edges=np.asarray(found["edges"]),
            free_energy=np.array([entry["mean"] for entry in free]),
            error=np.array([entry["error"] for entry in free]),
            probability=np.array([entry["mean"] for entry in found["probability"]]),
            probability_error=np.array([entry["error"] for entry in found["probability"]]),
            samples=np.asarray(found["samples"], dtype=np.int64),
        )

    def __repr__(self) -> str:
        return f"<diffclf MBAR: {len(self.counts)} states, {int(self.counts.sum())} samples, log(Z_last/Z_0) = {self.difference()}>"


def mbar(energies: ArrayLike, counts: ArrayLike, *, tolerance: float = 1e-12, max_iterations: int = 200) -> Mbar:
    """MBAR: all states from all samples.

    Parameters
    ----------
    energies
        Reduced energies, shape (states, samples); float32 and float64 in C order are read in place.
    counts
        Samples of each state, in the order in which they stand in ``energies``. Zeros are allowed.

    Examples
    --------
    >>> import numpy as np
    >>> from diffclf import free_energy
    >>> rng = np.random.default_rng(1)
    >>> stiffness = np.array([1.0, 2.0, 4.0])
    >>> x = np.concatenate([rng.normal(0, 1 / np.sqrt(k), 2000) for k in stiffness])
    >>> found = free_energy.mbar(0.5 * stiffness[:, None] * x**2, [2000] * 3)
    >>> exact = -0.5 * np.log(4.0)
    >>> bool(abs(found.difference(0, 2).mean - exact) < 4 * found.difference(0, 2).error)
    True
    """
    array = rows(energies, "energies")
    if array.ndim != 2:
        raise InputError(f"energies has the shape {array.shape}, expected two axes: (states, samples)")
    try:
        number = np.asarray(counts)
        if number.dtype.kind == "f" and np.all(number == np.round(number)):
            number = number.astype(np.int64)
        if number.dtype.kind not in "iu" or number.ndim != 1 or np.any(number < 0):
            raise TypeError
    except (TypeError, ValueError):
        raise UsageError(f"counts is {counts!r}, expected whole numbers, one for each state") from None
    native = _native.Mbar(array, number.tolist(), float(tolerance), _whole(max_iterations, "max_iterations"))
    return Mbar(native, array, number.astype(np.int64))
