"""Dynamics on energies, and what is seen in their frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import _native
from ._arrays import ArrayLike, is_path, rows
from ._energies import Density, native_of
from ._progress import ProgressLike, progress_of
from ._sampling import _text, _whole

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

    from numpy.typing import NDArray


class Dynamics(NamedTuple):
    """Chains of a simulation, and what they say of themselves."""

    #: Shape (chains, frames, columns).
    frames: NDArray[np.float64]
    #: U of every frame in kT: (chains, frames).
    energies: NDArray[np.float64]
    #: Mean acceptance; 1 for schemes without a test.
    acceptance: float
    #: Mean of m v^2 / kT at the end: 1 in equilibrium.
    kinetic_temperature: float
    #: Chains that left the data: chain, frame, what, value, farthest, data.
    departures: list[dict[str, Any]]

    @property
    def samples(self) -> NDArray[np.float64]:
        """All frames as rows, chain after chain."""
        return self.frames.reshape(-1, self.frames.shape[-1])


def simulate(
    density: Density,
    x: ArrayLike,
    *,
    step: float,
    frames: int = 1000,
    thin: int = 50,
    friction: float = 1.0,
    temperature: float = 1.0,
    masses: float | Sequence[float] = 1.0,
    units: str = "reduced",
    scheme: str = "baoab",
    t: float | None = None,
    bonds: Sequence[tuple[int, int]] = (),
    particles: bool | None = None,
    data: ArrayLike | None = None,
    system_seed: int = 0,
    seed: int = 0,
    progress: ProgressLike = False,
) -> Dynamics:
    """Langevin dynamics on a model, a system or a composition, one chain from each row of ``x``.

    The force is kT times the score. With ``units`` "nm" or "angstrom", ``step`` is in fs, ``friction`` in 1/ps, ``temperature`` in K and
    ``masses`` in u; with "reduced", the temperature is kT. ``scheme``: "baoab", "langevin-leapfrog" (the paper's), or "ghmc", which has an
    acceptance test. Chains that leave ``data`` (or ``x``) are told in ``departures``; nothing of them is dropped.

    >>> import diffclf
    >>> surface = diffclf.system("mueller-brown")
    >>> found = diffclf.simulate(surface, surface.sample(4), step=0.005, temperature=23.0, masses=0.5, frames=10)
    >>> found.frames.shape
    (4, 10, 2)
    """
    start = np.ascontiguousarray(rows(x, "x"), dtype=np.float64)
    shaped = start.ndim == 3 and start.shape[2] == 3
    settings = _text(
        scheme=scheme,
        units=units,
        step=float(step),
        friction=float(friction),
        temperature=float(temperature),
        masses=[float(mass) for mass in np.atleast_1d(np.asarray(masses, dtype=np.float64))],
        frames=_whole(frames, "frames"),
        thin=_whole(thin, "thin"),
        time=t,
        bonds=[[int(a), int(b)] for a, b in bonds],
        particles=bool(bonds) or shaped if particles is None else particles,
        seed=_whole(seed, "seed"),
    )
    known = None if data is None else np.ascontiguousarray(rows(data, "data"), dtype=np.float64)
    points, energies, summary = _native.energy_simulate(
        native_of(density), start, known, _whole(system_seed, "system_seed"), settings, progress_of(progress)
    )
    return Dynamics(
        points, energies, summary["acceptance"], summary["kinetic_temperature"], summary["departures"]
    )


class Observation(NamedTuple):
    """Observables of frames, and all figures of them."""

    #: Shape (frames, observables).
    values: NDArray[np.float64]
    names: list[str]
    #: found, reference, distances and tica, as ``diffclf observe --json`` writes them.
    figures: dict[str, Any]


def observe(
    x: ArrayLike,
    of: Mapping[str, str] | None = None,
    *,
    reference: ArrayLike | None = None,
    chains: int = 1,
    reference_chains: int = 1,
    states: Mapping[str, Sequence[float]] | None = None,
    bins: int = 64,
    limits: tuple[float, float, float, float] | None = None,
    tica: str | PathLike[str] | None = None,
    tica_lag: int | None = None,
    components: int = 2,
    kinetic_map: bool = True,
) -> Observation:
    """Observables of frames: means with errors, states, and distances from a reference in the plane of the first two.

    ``of`` maps names to ``x:COLUMN``, ``distance:A-B``, ``angle:A-B-C`` or ``dihedral:A-B-C-D``, particles counted from 0. ``states`` maps
    a name to its borders. ``tica`` is an archive with ``mean`` and ``coefficients``; ``tica_lag`` fits them. Frames of several chains stand
    chain after chain.

    >>> import diffclf, numpy
    >>> x = numpy.random.default_rng(0).normal(size=(500, 2))
    >>> seen = diffclf.observe(x, {"a": "x:0", "b": "x:1"}, states={"a": [0.0]})
    >>> seen.values.shape, seen.names
    ((500, 2), ['a', 'b'])
    """
    request = {
        "of": list((of or {}).items()),
        "chains": _whole(chains, "chains"),
        "reference_chains": _whole(reference_chains, "reference_chains"),
        "states": [(name, sorted(float(b) for b in borders)) for name, borders in (states or {}).items()],
        "bins": _whole(bins, "bins"),
        "limits": limits,
        "tica": tica,
        "tica_lag": tica_lag,
        "components": _whole(components, "components"),
        "kinetic_map": kinetic_map,
    }

    def read(x: ArrayLike, what: str) -> NDArray[Any]:
        return np.ascontiguousarray(np.load(x) if is_path(x) else rows(x, what), dtype=np.float64)

    other = None if reference is None else read(reference, "reference")
    values, figures = _native.observe_frames(read(x, "x"), other, request)
    return Observation(values, [series["name"] for series in figures["found"]["series"]], figures)
