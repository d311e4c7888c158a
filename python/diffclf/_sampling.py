"""Energies at work: chains, particles and ladders."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import _native
from ._arrays import ArrayLike, points, scratch
from ._energies import Composition, Density, _leaves, native_of
from ._progress import ProgressLike, progress_of
from .errors import InputError, UsageError

if TYPE_CHECKING:
    from ._states import StatesModel
    from numpy.typing import NDArray

    from ._model import Model


def _to_arviz(draws: NDArray[np.float64]) -> Any:
    """InferenceData of draws of shape (chains, draws, columns)."""
    try:
        import arviz
    except ImportError as missing:
        raise ImportError("to_arviz() needs arviz; install it with: pip install arviz") from missing
    try:
        return arviz.from_dict(posterior={"x": draws})
    except TypeError:
        # ArviZ 1 takes the groups as one dict.
        return arviz.from_dict({"posterior": {"x": draws}})


class Chains(NamedTuple):
    """Draws of Markov chains, and what they say of themselves."""

    #: Shape (draws, chains, columns).
    draws: NDArray[np.float64]
    #: Mean acceptance after the warm-up.
    acceptance: float
    #: The step size, tuned in the warm-up and frozen.
    step: float
    divergences: int
    #: Effective draws of each column, all chains together.
    effective_draws: NDArray[np.float64]
    #: Split R-hat of each column.
    r_hat: NDArray[np.float64]

    @property
    def samples(self) -> NDArray[np.float64]:
        """All draws as rows."""
        return self.draws.reshape(-1, self.draws.shape[-1])

    def to_arviz(self) -> Any:
        """ArviZ's InferenceData, with the variable ``x``."""
        return _to_arviz(self.draws.swapaxes(0, 1))


class Particles(NamedTuple):
    """Weighted particles of the last level."""

    #: Shape (particles, columns).
    points: NDArray[np.float64]
    #: They sum to 1.
    weights: NDArray[np.float64]
    log_z: float
    #: Standard error of log Z; NaN where it is not known.
    log_z_error: float
    #: Effective sample size, a share of 1.
    ess: float
    #: Overlap of neighbouring levels where it is least, a share of 1.
    least_overlap: float
    #: Every level: time, ess, conditional_ess, acceptance, step, resampled, log_z.
    levels: list[dict[str, Any]]

    def resample(self, n: int | None = None, *, seed: int = 0) -> NDArray[np.float64]:
        """Equally weighted draws of the particles."""
        n = len(self.weights) if n is None else n
        rng = np.random.default_rng(seed)
        places = (rng.random() + np.arange(n)) / n
        chosen = np.searchsorted(np.cumsum(self.weights), places * self.weights.sum())
        drawn: NDArray[np.float64] = self.points[np.minimum(chosen, len(self.points) - 1)]
        return drawn

    def to_arviz(self, *, seed: int = 0) -> Any:
        """ArviZ's InferenceData of equally weighted draws, with the variable ``x``."""
        return _to_arviz(self.resample(seed=seed)[np.newaxis])


class Ladders(NamedTuple):
    """Draws of replica exchange."""

    #: Shape (draws, ladders, columns), of the coldest level.
    draws: NDArray[np.float64]
    #: Share of accepted swaps between a level and the next.
    swap_acceptance: NDArray[np.float64]
    acceptance: NDArray[np.float64]
    #: Journeys from the hot end to the cold and back.
    round_trips: int
    effective_draws: NDArray[np.float64]
    r_hat: NDArray[np.float64]

    @property
    def samples(self) -> NDArray[np.float64]:
        """All draws as rows."""
        return self.draws.reshape(-1, self.draws.shape[-1])

    def to_arviz(self) -> Any:
        """ArviZ's InferenceData, with the variable ``x``."""
        return Chains(self.draws, 0.0, 0.0, 0, self.effective_draws, self.r_hat).to_arviz()


def _text(**settings: Any) -> str:
    """Settings that were given, as JSON."""
    import json

    given = {name: value for name, value in settings.items() if value is not None}
    try:
        return json.dumps(given, default=lambda value: value.item())
    except (TypeError, ValueError, AttributeError) as error:
        raise UsageError(f"a setting cannot be understood: {error}") from error


def _whole(value: Any, name: str) -> Any:
    from ._model import _whole

    return _whole(value, name)


def _chains(kernel: dict[str, Any], density: Density, x: ArrayLike, t: float | None, progress: ProgressLike, settings: dict[str, Any]) -> Chains:
    for name in ("warm_up", "draws", "thin", "seed"):
        settings[name] = _whole(settings[name], name)
    composed = native_of(density)
    start, _ = points(x, density.dim)  # type: ignore[attr-defined]
    draws, found = _native.energy_chains(composed, start, t, _text(kernel=kernel, **settings), progress_of(progress))
    return Chains(
        draws,
        found["acceptance"] if found["acceptance"] is not None else float("nan"),
        found["step"],
        found["divergences"],
        np.array(found["effective_draws"], dtype=np.float64),
        np.array(found["r_hat"], dtype=np.float64),
    )


def mala(
    density: Density,
    x: ArrayLike,
    *,
    t: float | None = None,
    draws: int | None = None,
    warm_up: int | None = None,
    thin: int | None = None,
    step: float | None = None,
    acceptance: float | None = None,
    seed: int = 0,
    progress: ProgressLike = False,
) -> Chains:
    """Metropolis-adjusted Langevin: one chain from each row of ``x``, at a time of a model (the smallest if left out).

    The step size is tuned to ``acceptance`` in the warm-up and frozen.

    Examples
    --------
    >>> import diffclf
    >>> well = diffclf.target(lambda x: 0.5 * (x**2).sum(axis=1), dim=2, gradient=lambda x: x)
    >>> chains = diffclf.mala(well, [[0.0, 1.0]] * 8, draws=200, warm_up=100)
    >>> chains.draws.shape
    (200, 8, 2)
    >>> bool((chains.r_hat < 1.1).all())
    True
    """
    settings = {"draws": draws, "warm_up": warm_up, "thin": thin, "step": step, "acceptance": acceptance, "seed": seed}
    return _chains({"kind": "mala"}, density, x, t, progress, settings)


def hmc(
    density: Density,
    x: ArrayLike,
    *,
    leapfrog: int | None = None,
    t: float | None = None,
    draws: int | None = None,
    warm_up: int | None = None,
    thin: int | None = None,
    step: float | None = None,
    acceptance: float | None = None,
    seed: int = 0,
    progress: ProgressLike = False,
) -> Chains:
    """Hamiltonian Monte Carlo, as :func:`mala`; ``leapfrog`` steps make one move."""
    settings = {"draws": draws, "warm_up": warm_up, "thin": thin, "step": step, "acceptance": acceptance, "seed": seed}
    kernel: dict[str, Any] = {"kind": "hmc"}
    if leapfrog is not None:
        kernel["leapfrog"] = _whole(leapfrog, "leapfrog")
    return _chains(kernel, density, x, t, progress, settings)


def langevin(
    density: Density,
    x: ArrayLike,
    *,
    friction: float | None = None,
    t: float | None = None,
    draws: int | None = None,
    warm_up: int | None = None,
    thin: int | None = None,
    step: float | None = None,
    seed: int = 0,
    progress: ProgressLike = False,
) -> Chains:
    """Langevin dynamics without acceptance test, as :func:`mala`: overdamped, or underdamped (BAOAB) with ``friction``.

    Its draws carry an error of the step size, which is not tuned.
    """
    settings = {"draws": draws, "warm_up": warm_up, "thin": thin, "step": step, "seed": seed}
    kernel: dict[str, Any] = {"kind": "unadjusted"} if friction is None else {"kind": "baoab", "friction": float(friction)}
    return _chains(kernel, density, x, t, progress, settings)


def _particles(found: tuple[Any, Any, dict[str, Any]]) -> Particles:
    rows, weights, figures = found
    log_z = figures["log_z"]
    error = log_z["error"]
    return Particles(
        rows, weights, log_z["value"], float("nan") if error is None else error, figures["ess"], figures["least_overlap"], figures["levels"]
    )


def compose(
    density: Density,
    n: int = 8192,
    *,
    levels: int | None = None,
    kernel: str | None = None,
    moves: int | None = None,
    step: float | None = None,
    threshold: float | None = None,
    resampling: str | None = None,
    adaptive: float | None = None,
    least_overlap: float | None = None,
    runs: int | None = None,
    seed: int = 0,
    progress: ProgressLike = False,
) -> Particles:
    """Samples of a composition of diffusion models and built-in mixtures by sequential Monte Carlo, from noise down.

    ``kernel`` moves particles (mala, hmc, ...), ``moves`` times at each level; they are resampled below ``threshold``; ``runs``
    independent runs give an honest error of log Z.
    """
    from ._systems import System

    if isinstance(density, Density) and density._kind() is not Composition:
        raise UsageError("a composition of states is sampled by its own method: (A & B).sample(n)")
    seeds = {leaf.seed for leaf in _leaves(density._tree()) if isinstance(leaf, System)} if isinstance(density, Density) else set()
    if len(seeds) > 1:
        raise InputError(f"the systems have the seeds {sorted(seeds)}, expected one for all")
    text = _smc(kernel, moves, step, threshold, resampling, adaptive, least_overlap, runs, seed)
    found = _native.energy_compose(
        native_of(density), _whole(n, "n"), _whole(levels, "levels"), seeds.pop() if seeds else 0, text, progress_of(progress)
    )
    return _particles(found)


def _smc(
    kernel: str | None,
    moves: int | None,
    step: float | None,
    threshold: float | None,
    resampling: str | None,
    adaptive: float | None,
    least_overlap: float | None,
    runs: int | None,
    seed: int,
) -> str:
    return _text(
        kernel=None if kernel is None else {"kind": kernel},
        moves=_whole(moves, "moves"),
        step=step,
        threshold=threshold,
        resampling=resampling,
        adaptive=adaptive,
        least_overlap=least_overlap,
        runs=_whole(runs, "runs"),
        seed=_whole(seed, "seed"),
    )


def anneal(
    model: Model,
    n: int = 8192,
    *,
    target: Density | str | None = None,
    target_energy: str | None = None,
    method: str = "smc",
    diffusion: bool = False,
    rows: ArrayLike = None,
    towards: str | None = None,
    molecule: dict[str, Any] | None = None,
    sweeps: int = 500,
    levels: int | None = None,
    kernel: str | None = None,
    moves: int | None = None,
    step: float | None = None,
    threshold: float | None = None,
    resampling: str | None = None,
    adaptive: float | None = None,
    least_overlap: float | None = None,
    runs: int | None = None,
    seed: int = 0,
    progress: ProgressLike = False,
) -> Particles | Ladders:
    """A model's path from noise to its density, or to a target: then it is a Boltzmann generator.

    Parameters
    ----------
    model
        A diffusion; or an interpolant, between whose ends particles go from ``rows``.
    n
        Particles, or ladders of replica exchange.
    target
        What takes the place of the last level: a system, its name, a :func:`target` or a composition. log Z is then that of
        ``exp(-U)`` of the target.
    target_energy
        The same as an energy of your own in kT, made of the columns by their names or as x0, x1, ...: ``"2*(1 - cos(phi)) + 0.5*psi^2"``; or
        the name of a table (.csv) of its values on a grid of one to three columns, under ``energy``.
    method
        smc, ais (never resampled) or exchange (replica exchange over time).
    diffusion
        Move particles between levels by the reverse diffusion, not by MCMC alone.
    molecule
        The molecule that rows of an interpolant are frames of, as in ``fit``, in its two solvents: its energies hold at both ends, and log Z is
        ``log(Z_to/Z_from)``.
    sweeps
        Sweeps of exchange after as many for warming up.
    """
    from ._model import _file
    from ._systems import system

    from ._states import StatesModel

    if isinstance(model, StatesModel):
        return _anneal_states(model, n, locals())
    if target is not None and target_energy is not None:
        raise InputError("both target and target_energy are given, expected one of them")
    if molecule is not None and (target is not None or target_energy is not None):
        raise InputError("molecule tells the energies of both ends; leave out target and target_energy")
    if isinstance(target, str):
        target = system(target, model.dim)
    if method == "exchange" and runs is not None:
        raise InputError("runs belongs to smc and ais; leave it out with exchange")
    with scratch() as folder:
        request = {
            "method": method,
            "diffusion": diffusion,
            "sweeps": _whole(sweeps, "sweeps"),
            "n": _whole(n, "n"),
            "levels": _whole(levels, "levels"),
            "rows": _file(rows, "rows", folder),
            "towards": towards,
            "target_energy": target_energy,
            "molecule": None if molecule is None else json.dumps(molecule, default=os.fspath),
            "smc": _smc(kernel, moves, step, threshold, resampling, adaptive, least_overlap, runs, seed),
            "progress": progress_of(progress),
        }
        found = _native.energy_anneal(model._native, None if target is None else native_of(target), request)
    if method != "exchange":
        return _particles(found)
    draws, _, figures = found
    arrays = [np.array(figures[name], dtype=np.float64) for name in ("swap_acceptance", "acceptance", "effective_draws", "r_hat")]
    return Ladders(draws, arrays[0], arrays[1], figures["round_trips"], arrays[2], arrays[3])


def _anneal_states(model: StatesModel, n: int, given: dict[str, Any]) -> Particles:
    """:func:`anneal` of a model of states: what it does not know must be left out."""
    strangers = ("target_energy", "molecule", "diffusion", "rows", "towards", "moves", "step", "resampling", "adaptive", "least_overlap")
    for name in strangers:
        if given[name] is not None and given[name] is not False:
            raise InputError(f"{name} does not go with states; leave it out")
    target = given["target"]
    if target is not None and not isinstance(target, str):
        raise InputError("target is no name; the targets of states are 'ising' and 'potts'")
    known = {key: given[key] for key in ("levels", "kernel", "threshold", "runs") if given[key] is not None}
    return model.anneal(n, target=target, method=given["method"], seed=given["seed"], progress=given["progress"], **known)


def smc(model: Model, n: int = 8192, **settings: Any) -> Particles:
    """Sequential Monte Carlo along a model's path: :func:`anneal` with ``method="smc"``."""
    found = anneal(model, n, method="smc", **settings)
    assert isinstance(found, Particles)
    return found


def ais(model: Model, n: int = 8192, **settings: Any) -> Particles:
    """Annealed importance sampling along a model's path: :func:`anneal` with ``method="ais"``."""
    found = anneal(model, n, method="ais", **settings)
    assert isinstance(found, Particles)
    return found


def exchange(model: Model, n: int = 8, **settings: Any) -> Ladders:
    """Replica exchange over the times of a model: :func:`anneal` with ``method="exchange"`` and ``n`` ladders."""
    found = anneal(model, n, method="exchange", **settings)
    assert isinstance(found, Ladders)
    return found
