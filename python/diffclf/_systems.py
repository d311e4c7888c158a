"""Built-in systems with exact answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _native
from ._arrays import ArrayLike, points
from ._energies import Density
from ._model import _whole

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class System(Density):
    """A distribution that can be sampled and whose density may be known exactly: see :func:`system`."""

    __slots__ = ("_native", "seed")

    def __init__(self, native: _native.System, seed: int = 0) -> None:
        self._native = native
        #: Seed of its own parameters.
        self.seed = seed

    def _leaf(self) -> _native.System:
        return self._native

    def __reduce__(self) -> tuple[Any, ...]:
        return (system, (self.name, self.dim, self.seed))

    @property
    def name(self) -> str:
        """Its name."""
        return self._native.name

    @property
    def dim(self) -> int:
        """Number of columns."""
        return self._native.dim

    def sample(self, n: int, *, seed: int = 0) -> NDArray[np.float32]:
        """Exact samples; a row depends on its number and the seed alone."""
        return self._native.sample(_whole(n, "n"), _whole(seed, "seed"))

    def log_density(self, x: ArrayLike) -> Any:
        """The exact log-density, minus infinity outside the support."""
        array, single = points(x, self.dim)
        values = self._native.log_density(array)
        return values[0] if single else values

    def __repr__(self) -> str:
        return f"<diffclf.System: {self.name}, {self.dim} columns>"


def system(name: str, dim: int = 2, seed: int = 0) -> System:
    """A built-in system: one of :func:`systems`. ``seed`` fixes the means of mog40.

    Examples
    --------
    >>> import diffclf
    >>> target = diffclf.system("mog40", dim=8)
    >>> target.sample(3, seed=1).shape
    (3, 8)
    >>> bool(target.log_density(target.sample(3)).min() > -40)
    True
    """
    return System(_native.System(name, _whole(dim, "dim"), _whole(seed, "seed")), seed)


def systems() -> list[str]:
    """The names of all built-in systems."""
    return _native.System.names()
