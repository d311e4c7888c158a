"""The algebra of densities, and targets from functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from . import _native
from ._arrays import ArrayLike, points
from .errors import InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from ._sampling import Particles

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

    def _kind(self) -> type[Composition]:
        """What compositions of it are."""
        return Composition

    def __and__(self, other: Density) -> Composition:
        return _composed(("and", [_part(self, "and"), _part(other, "and")]))

    def __or__(self, other: Density) -> Composition:
        return _composed(("or", [*_weighted(self), *_weighted(other)]))

    def __pow__(self, exponent: float) -> Composition:
        return _composed(("power", self._tree(), float(exponent)))

    def __invert__(self) -> Composition:
        return _composed(("not", self._tree()))

    def __mul__(self, weight: float) -> Composition:
        if not isinstance(weight, (int, float)) or not weight > 0:
            raise InputError(f"the weight of a mixture is {weight!r}, expected a positive number")
        return _composed(("weight", float(weight), self._tree()))

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


def _composed(tree: tuple[Any, ...]) -> Composition:
    kinds = {leaf._kind() for leaf in _leaves(tree)}
    if len(kinds) != 1:
        raise InputError("densities of states and of numbers cannot be composed with each other")
    return kinds.pop()(tree)


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
        from ._sampling import compose

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
