"""Dynamics on energies, and what is seen in their frames."""

from __future__ import annotations

from os import fspath
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
    #: What was done, with all that was left open: scheme, units, step, masses, bonds and the others.
    settings: dict[str, Any]

    @property
    def samples(self) -> NDArray[np.float64]:
        """All frames as rows, chain after chain."""
        return self.frames.reshape(-1, self.frames.shape[-1])

    def save(self, path: str | PathLike[str], *, force: bool = False) -> list[str]:
        """Writes the frames as ``diffclf simulate`` does, and gives the names of the files.

        A .npy file holds all frames, chain after chain; .xtc, .dcd and .pdb have a file for each chain, and need units of length.
        """
        return _native.write_frames(fspath(path), self.frames, _text(**self.settings), force)


def simulate(
    density: Density | str,
    x: ArrayLike | None = None,
    *,
    step: float,
    chains: int | None = None,
    frames: int = 1000,
    thin: int = 50,
    friction: float = 1.0,
    temperature: float | None = None,
    topology: str | PathLike[str] | None = None,
    masses: float | Sequence[float] | None = None,
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
    """Langevin dynamics on a model, a system or a composition, one chain from each row of ``x`` (or of the first ``chains``).

    ``x`` and ``data`` are arrays, or files of any kind that the command reads, trajectories (.xtc, .dcd, .pdb) among them; a system, or a
    model of one, needs no ``x``. ``density`` may be "go:FILE", the structure-based model of a .pdb or .toml file. ``topology`` is the file of
    the beads, which tells masses and bonds.

    The force is kT times the score. With ``units`` "nm" or "angstrom", ``step`` is in fs, ``friction`` in 1/ps, ``temperature`` in K and
    ``masses`` in u; with "reduced", the temperature is kT (1 unless given). ``scheme``: "baoab", "langevin-leapfrog" (the paper's), or "ghmc",
    which has an acceptance test. Chains that leave ``data`` (or ``x``) are told in ``departures``; nothing of them is dropped.

    >>> import diffclf
    >>> surface = diffclf.system("mueller-brown")
    >>> found = diffclf.simulate(surface, surface.sample(4), step=0.005, temperature=23.0, masses=0.5, frames=10)
    >>> found.frames.shape
    (4, 10, 2)
    """

    def given(x: ArrayLike | None, what: str) -> Any:
        if x is None or is_path(x):
            return None if x is None else fspath(x)
        return np.ascontiguousarray(rows(x, what), dtype=np.float64)

    request = {
        "scheme": scheme,
        "units": units,
        "step": float(step),
        "friction": float(friction),
        "temperature": None if temperature is None else float(temperature),
        "masses": [] if masses is None else [float(mass) for mass in np.atleast_1d(np.asarray(masses, dtype=np.float64))],
        "bonds": [[_whole(a, "bonds"), _whole(b, "bonds")] for a, b in bonds],
        "topology": topology,
        "particles": particles,
        "chains": None if chains is None else _whole(chains, "chains"),
        "frames": _whole(frames, "frames"),
        "thin": _whole(thin, "thin"),
        "time": t,
        "seed": _whole(seed, "seed"),
        "system_seed": _whole(system_seed, "system_seed"),
    }
    native = ("A", [("A", density)]) if isinstance(density, str) else native_of(density)
    points, energies, summary, settings = _native.energy_simulate(
        native, given(x, "x"), given(data, "data"), request, progress_of(progress)
    )
    return Dynamics(
        points, energies, summary["acceptance"], summary["kinetic_temperature"], summary["departures"], settings
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
    a name to its borders. ``x`` and ``reference`` may be files, trajectories among them. ``tica`` is an archive with ``mean`` and ``coefficients``; ``tica_lag`` fits them. Frames of several chains stand
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
        return _native.read_frames(fspath(x)) if is_path(x) else np.ascontiguousarray(rows(x, what), dtype=np.float64)

    other = None if reference is None else read(reference, "reference")
    values, figures = _native.observe_frames(read(x, "x"), other, request)
    return Observation(values, [series["name"] for series in figures["found"]["series"]], figures)
