"""From what users have (arrays, frames, lists) to rows that the core reads in place."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from .errors import InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

Floats: TypeAlias = "NDArray[np.float32] | NDArray[np.float64]"
#: Whatever numpy makes an array of, and frames of pandas or polars.
ArrayLike: TypeAlias = Any


def scratch() -> Any:
    """A folder that is gone after the ``with``."""
    # Here, since it takes a tenth of the import.
    import tempfile

    return tempfile.TemporaryDirectory(prefix="diffclf-")


def is_path(x: object) -> bool:
    """Whether this names a file."""
    return isinstance(x, (str, os.PathLike))


def names_of(x: object) -> list[str]:
    """The names of a frame's columns; none for an array."""
    columns = getattr(x, "columns", None)
    if columns is None or not hasattr(x, "to_numpy"):
        return []
    return [str(column) for column in columns]


def rows(x: ArrayLike, what: str = "x", columns: Sequence[str] = ()) -> Floats:
    """Rows as a C-contiguous array of float32 or float64, without a copy where it is one already.

    ``columns`` are the names a model knows: a frame must have them, in any order.
    """
    found = names_of(x)
    if found:
        if columns:
            missing = [name for name in columns if name not in found]
            if missing:
                raise InputError(
                    f"{what} has no column {missing[0]!r}; the model was trained on the columns {', '.join(columns)}"
                )
            if found != list(columns):
                by_name = dict(zip(found, x.columns, strict=True))
                x = x[[by_name[name] for name in columns]]
        x = x.to_numpy()
    if isinstance(x, np.ma.MaskedArray):
        raise UsageError(f"{what} is a masked array, and a density has no place for gaps; drop its masked rows: {what}.filled() or {what}.compressed()")
    try:
        array = np.asarray(x)
    except Exception as error:
        raise UsageError(f"{what} cannot be made an array of numbers: {error}; give a numpy array of float32 or float64, one row for each sample") from error
    kind = array.dtype.kind
    if kind == "O":
        raise UsageError(f"{what} is an array of Python objects, expected numbers; convert it with {what}.astype(float), and make all rows equally long")
    if kind not in "fiub":
        raise UsageError(f"{what} has the type {array.dtype}, expected real numbers; convert it with {what}.astype(float)")
    if array.ndim == 0:
        raise InputError(f"{what} is a single number, expected an array with one row for each sample")
    if array.size == 0:
        raise InputError(f"{what} has the shape {array.shape} and holds nothing; give at least one row and one column")
    single = kind == "f" and array.dtype.itemsize <= 4
    if single:
        return np.ascontiguousarray(array, dtype=np.float32)
    return np.ascontiguousarray(array, dtype=np.float64)


def points(x: ArrayLike, dim: int, what: str = "x", columns: Sequence[str] = ()) -> tuple[Floats, bool]:
    """Points to evaluate, and whether it is a single one, given without the axis that counts them."""
    # The usual case first: a call for one point should cost little.
    if type(x) is np.ndarray and x.ndim == 2 and x.shape[1] == dim and x.dtype in _TYPES and x.flags.c_contiguous and x.size:
        return x, False
    array = rows(x, what, columns)
    if array.ndim == 1 and dim > 1 and array.shape[0] == dim:
        return array[np.newaxis], True
    width = int(np.prod(array.shape[1:], dtype=np.int64))
    if width != dim:
        raise InputError(f"{what} has the shape {array.shape}, so its points have {width} coordinates, but the model has {dim}; give points of the kind it was trained on")
    return array, False


_TYPES = (np.dtype(np.float32), np.dtype(np.float64))
