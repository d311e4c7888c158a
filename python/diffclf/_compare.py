"""Distances between samples."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np

from . import _native
from ._arrays import ArrayLike, scratch
from ._sampling import _text, _whole


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
    x: ArrayLike,
    reference: ArrayLike | str,
    *,
    weights: ArrayLike = None,
    reference_weights: ArrayLike = None,
    states: int | None = None,
    directions: int = 256,
    seed: int = 0,
) -> Comparison:
    """How far samples are from other samples, or from a system (or its name), beside how far two samples of that law are apart.

    Both may have weights, one number for each row. With ``states=K`` rows are symbols from 0 to K - 1, and a name may be that of a system of states.

    Examples
    --------
    >>> import diffclf
    >>> x = diffclf.system("two-modes").sample(500, seed=1)
    >>> print(diffclf.compare(x, "two-modes").text.splitlines()[0][:10])
    the sample
    """
    from ._model import _file, weight_file
    from ._systems import System, system
    from ._systems import systems as names

    with scratch() as folder:
        known: tuple[str, int] | None = None
        path: str | None = None
        if isinstance(reference, System):
            known = (reference.name, reference.seed)
        elif isinstance(reference, str) and states and not os.path.exists(reference):
            known = (reference, 0)
        elif isinstance(reference, str) and (reference in names() or not os.path.exists(reference)):
            known = (system(reference, np.shape(x)[1] if np.ndim(x) > 1 else 1).name, 0)
        else:
            path = _file(reference, "reference", folder)
        own = weight_file(weights, "weights", folder)
        theirs = weight_file(reference_weights, "reference_weights", folder)
        found, text = _native.compare_samples(
            _file(x, "x", folder) or "",
            own,
            (path, theirs),
            known,
            _text(directions=_whole(directions, "directions"), seed=_whole(seed, "seed")),
            _whole(states, "states"),
        )
    return Comparison(found["distances"], text)
