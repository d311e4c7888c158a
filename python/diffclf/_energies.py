"""Energies at work: the algebra of densities, targets from functions, chains, particles, ladders, comparisons."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import _native
from ._arrays import ArrayLike, points, rows, scratch
from ._progress import ProgressLike, progress_of
from .errors import InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from ._model import Model

#: What the native half takes: an expression and its named members.
Native = tuple[str, list[tuple[str, Any]]]


class Density:
    """Whatever has a log-density: a :class:`Model`, a :class:`System`, a :func:`target`, or a composition of them.

    ``A & B`` is the product, ``0.3 * A | 0.7 * B`` the mixture, ``A ** 0.5`` a power (a temperature of 2), ``~A`` the inverse power
    ``A ** -0.5``, for use in a product.
    """

    __slots__ = ()

    def _leaf(self) -> Any:
        """What the native half knows it by."""
        raise NotImplementedError

    def _tree(self) -> tuple[Any, ...]:
        return ("leaf", self)

    def __and__(self, other: Density) -> Composition:
        return Composition(("and", [_part(self, "and"), _part(other, "and")]))

    def __or__(self, other: Density) -> Composition:
        return Composition(("or", [*_weighted(self), *_weighted(other)]))

    def __pow__(self, exponent: float) -> Composition:
        return Composition(("power", self._tree(), float(exponent)))

    def __invert__(self) -> Composition:
        return Composition(("not", self._tree()))

    def __mul__(self, weight: float) -> Composition:
        if not isinstance(weight, (int, float)) or not weight > 0:
            raise InputError(f"the weight of a mixture is {weight!r}, expected a positive number")
        return Composition(("weight", float(weight), self._tree()))

    __rmul__ = __mul__


def _part(density: Density, where: str) -> tuple[Any, ...]:
    if not isinstance(density, Density):
        raise UsageError(f"{density!r} has no density; compose models, systems and targets")
    tree = density._tree()
    if tree[0] == "weight":
        raise InputError("a weight belongs to a mixture: 0.3 * A | 0.7 * B")
    return tree


def _weighted(density: Density) -> list[tuple[float, tuple[Any, ...]]]:
    if not isinstance(density, Density):
        raise UsageError(f"{density!r} has no density; compose models, systems and targets")
    tree = density._tree()
    if tree[0] == "weight":
        return [(tree[1], tree[2])]
    if tree[0] == "or":
        return list(tree[1])
    return [(1.0, tree)]


def native_of(density: Density) -> Native:
    """The expression and its members, each once."""
    members: dict[int, tuple[str, Any]] = {}

    def text(tree: tuple[Any, ...]) -> str:
        kind = tree[0]
        if kind == "leaf":
            name, _ = members.setdefault(id(tree[1]), (f"D{len(members)}", tree[1]._leaf()))
            return name
        if kind == "and":
            return "(" + " and ".join(text(part) for part in tree[1]) + ")"
        if kind == "or":
            return "(" + " or ".join(f"{weight!r}*{text(part)}" for weight, part in tree[1]) + ")"
        if kind == "power":
            return f"({text(tree[1])}^{tree[2]!r})"
        if kind == "not":
            return f"(not {text(tree[1])})"
        return text(tree[2])

    if not isinstance(density, Density):
        raise UsageError(f"{density!r} has no density; give a model, a system, a target or a composition of them")
    expression = text(density._tree())
    return expression, list(members.values())


def _leaves(tree: tuple[Any, ...]) -> list[Any]:
    kind = tree[0]
    if kind == "leaf":
        return [tree[1]]
    if kind in ("and", "or"):
        return [leaf for part in tree[1] for leaf in _leaves(part[1] if kind == "or" else part)]
    return _leaves(tree[2] if kind == "weight" else tree[1])


class Composition(Density):
    """A composition of densities: see :class:`Density`. Its log-density is known up to a constant, but for mixtures.

    Examples
    --------
    >>> import diffclf
    >>> a, b = diffclf.system("upper-pair"), diffclf.system("lower-pair")
    >>> both = a & b
    >>> both.score(a.sample(4)).shape
    (4, 2)
    >>> found = (0.3 * a | 0.7 * b).sample(256, levels=64, moves=4)
    >>> found.points.shape, bool(abs(found.log_z) < 0.5)
    ((256, 2), True)
    """

    __slots__ = ("_expression", "dim")

    def __init__(self, tree: tuple[Any, ...]) -> None:
        self._expression = tree
        dims = {leaf.dim for leaf in _leaves(tree)}
        if len(dims) != 1:
            raise InputError(f"densities of {' and '.join(str(dim) for dim in sorted(dims))} columns cannot be composed")
        #: Number of columns.
        self.dim: int = dims.pop()

    def _tree(self) -> tuple[Any, ...]:
        return self._expression

    def _evaluate(self, what: str, x: ArrayLike, t: float | None) -> Any:
        array, single = points(x, self.dim)
        values = _native.energy_evaluate(native_of(self), what, array, t)
        return values[0] if single else values

    def log_density(self, x: ArrayLike, t: float | None = None) -> Any:
        """Sum, mixture and powers of the members' log-densities."""
        return self._evaluate("log_density", x, t)

    def energy(self, x: ArrayLike, t: float | None = None) -> Any:
        """The energy in kT."""
        return self._evaluate("energy", x, t)

    def score(self, x: ArrayLike, t: float | None = None) -> Any:
        """The gradient of the log-density."""
        return self._evaluate("score", x, t)

    def sample(self, n: int = 8192, **settings: Any) -> Particles:
        """Samples by sequential Monte Carlo along the members' paths: see :func:`compose`."""
        return compose(self, n, **settings)

    def __repr__(self) -> str:
        return f"<diffclf.Composition: {native_of(self)[0]}, {self.dim} columns>"


class Target(Density):
    """A density from a function: see :func:`target`."""

    __slots__ = ("_function", "_gradient", "dim")

    def __init__(self, function: Callable[[NDArray[np.float64]], Any], dim: int, gradient: Callable[[NDArray[np.float64]], Any] | None) -> None:
        self._function, self._gradient = function, gradient
        #: Number of columns.
        self.dim = dim

    def _leaf(self) -> Any:
        return self

    def _energy(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        values = np.asarray(self._function(x), dtype=np.float64)
        if values.shape != (len(x),):
            raise InputError(f"the energy function gave the shape {values.shape} for {len(x)} points, expected ({len(x)},)")
        return np.ascontiguousarray(values)

    def _score(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        if self._gradient is None:
            step = 1e-5 * (1 + np.abs(x).max(axis=1, keepdims=True))
            slope = np.empty_like(x)
            for column in range(self.dim):
                move = np.zeros(self.dim)
                move[column] = 1.0
                rise = self._energy(x + step * move) - self._energy(x - step * move)
                slope[:, column] = rise / (2 * step[:, 0])
        else:
            slope = np.asarray(self._gradient(x), dtype=np.float64)
            if slope.shape != x.shape:
                raise InputError(f"the gradient function gave the shape {slope.shape} for points of the shape {x.shape}, expected the same")
        return np.ascontiguousarray(-slope)

    def energy(self, x: ArrayLike) -> Any:
        """The energy in kT."""
        array, single = points(x, self.dim)
        values = self._energy(array.astype(np.float64))
        return values[0] if single else values

    def log_density(self, x: ArrayLike) -> Any:
        """Minus the energy: the log-density up to a constant."""
        return -self.energy(x)

    def score(self, x: ArrayLike) -> Any:
        """Minus the gradient of the energy."""
        array, single = points(x, self.dim)
        values = self._score(array.astype(np.float64))
        return values[0] if single else values

    def __repr__(self) -> str:
        return f"<diffclf.Target: {getattr(self._function, '__name__', 'function')}, {self.dim} columns>"


def target(
    energy: Callable[[NDArray[np.float64]], Any],
    dim: int,
    *,
    gradient: Callable[[NDArray[np.float64]], Any] | None = None,
) -> Target:
    """A density ``exp(-energy(x))`` from a function of all points at once: (n, dim) to (n,), in kT.

    ``gradient`` gives the energy's gradient, (n, dim) to (n, dim); without it differences are taken, at 2 dim calls each.

    Examples
    --------
    >>> import diffclf
    >>> well = diffclf.target(lambda x: 0.5 * (x**2).sum(axis=1), dim=3, gradient=lambda x: x)
    >>> well.score([1.0, 2.0, 3.0]).tolist()
    [-1.0, -2.0, -3.0]
    """
    for function, name in ((energy, "energy"), (gradient, "gradient")):
        if function is not None and not callable(function):
            raise UsageError(f"{name} is {function!r}, expected a function of an array of points")
    if not isinstance(dim, (int, np.integer)) or dim < 1:
        raise InputError(f"dim is {dim!r}, expected a whole number from 1")
    return Target(energy, int(dim), gradient)


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
    method: str = "smc",
    diffusion: bool = False,
    rows: ArrayLike = None,
    towards: str | None = None,
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
    method
        smc, ais (never resampled) or exchange (replica exchange over time).
    diffusion
        Move particles between levels by the reverse diffusion, not by MCMC alone.
    sweeps
        Sweeps of exchange after as many for warming up.
    """
    from ._model import _file
    from ._systems import system

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
            "smc": _smc(kernel, moves, step, threshold, resampling, adaptive, least_overlap, runs, seed),
            "progress": progress_of(progress),
        }
        found = _native.energy_anneal(model._native, None if target is None else native_of(target), request)
    if method != "exchange":
        return _particles(found)
    draws, _, figures = found
    arrays = [np.array(figures[name], dtype=np.float64) for name in ("swap_acceptance", "acceptance", "effective_draws", "r_hat")]
    return Ladders(draws, arrays[0], arrays[1], figures["round_trips"], arrays[2], arrays[3])


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


class Comparison(NamedTuple):
    """Distances of two samples, each beside its floor and a p-value."""

    #: Every distance with its figures.
    distances: dict[str, Any]
    #: The table as the command prints it.
    text: str

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(self.text)}</pre>"


def compare(
    x: ArrayLike, reference: ArrayLike | str, *, weights: ArrayLike = None, directions: int = 256, seed: int = 0
) -> Comparison:
    """How far samples are from other samples, or from a system (or its name), beside how far two samples of that law are apart.

    Examples
    --------
    >>> import diffclf
    >>> x = diffclf.system("two-modes").sample(500, seed=1)
    >>> print(diffclf.compare(x, "two-modes").text.splitlines()[0][:10])
    the sample
    """
    from ._model import _file
    from ._systems import System, system
    from ._systems import systems as names

    with scratch() as folder:
        known: tuple[str, int] | None = None
        path: str | None = None
        if isinstance(reference, System):
            known = (reference.name, reference.seed)
        elif isinstance(reference, str) and (reference in names() or not os.path.exists(reference)):
            known = (system(reference, np.shape(x)[1] if np.ndim(x) > 1 else 1).name, 0)
        else:
            path = _file(reference, "reference", folder)
        weight_path = None
        if weights is not None:
            weight_path = os.path.join(folder, "weights.npy")
            np.save(weight_path, rows(weights, "weights").ravel())
        found, text = _native.compare_samples(
            _file(x, "x", folder) or "", weight_path, path, known, _text(directions=_whole(directions, "directions"), seed=_whole(seed, "seed"))
        )
    return Comparison(found["distances"], text)
