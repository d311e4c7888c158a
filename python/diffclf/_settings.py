"""The settings of a training, by name and type. Their defaults live in the core; nothing is repeated here but names, for type checkers."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from . import _native
from .errors import InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping


class Settings(TypedDict, total=False):
    """What a training can be told. A setting that is left out has its default, that of the command `diffclf train`."""

    system: str
    """A built-in system instead of rows."""
    end_system: str
    """Built-in system at the second endpoint, for an interpolant."""
    dim: int
    """Dimension of the system; planar ones have 2."""
    system_seed: int
    """Seed of the system's own parameters."""
    samples: int
    """Draw a fixed set of so many rows from the system."""
    states: int
    """States of each site, for rows of symbols; 0 for rows of numbers."""
    noise: Literal["uniform", "masked"]
    """Noise on states."""
    standardise: bool
    """Shift and scale the data to mean 0 and scalar variance 1."""
    scale: Literal["column", "common", "none"]
    """One scale for each column, one for all, or none."""
    periodic: str
    """Columns that are periodic, by number or name, with their periods: "0,1", "phi,psi", "4:24"."""
    positive: str
    """Columns that are positive, learned as logarithms."""
    bounded: str
    """Columns that lie between bounds, column:low:high: "2:0:1"."""
    dequantise: bool
    """Add uniform noise as wide as one step to columns whose values are rounded; by default to those of whole numbers."""
    held_out: float
    """Share of the rows that is never trained on, 0 for none."""
    held_out_every: int
    """Steps between two evaluations on the held-out rows."""
    patience: int
    """End a stage after so many held-out evaluations without a new best; 0 never stops."""
    grid_levels: int
    """Levels of the time grid."""
    t_min: float
    """Smallest time of the grid."""
    t_max: float
    """Largest time of the grid."""
    width: int
    """Columns of a hidden layer."""
    depth: int
    """Hidden layers."""
    features: int
    """Sinusoidal time features."""
    centre: Literal["free", "kept"]
    """The centre of all particles is no part of the model (free), or one like any other (kept)."""
    rotate: bool
    """Turn each row of particles at random when it is trained on."""
    levelling: bool
    """Solve for F(t) of all levels when the training ends."""
    align: bool
    """Turn each row of particles onto the first one, without a reflection."""
    particles: int
    """Number of particles: the energy becomes a sum over pairs of a function of their distance."""
    topology: str | os.PathLike[str]
    """The particles by a .pdb or .toml file: their number, and for egnn (the default with it) and transformer their types and bonds."""
    form: str
    """How the network gives the energy."""
    base: str
    """What the energy stands on: auto, gaussian, a mixture fitted to the rows, or springs (bonds, angles, torsions and pairs of particles, fitted to the rows)."""
    bonds: str
    """Pairs of particles with a bond, "0-1,1-2", from which springs follow."""
    objective: str
    """Weighted sum of losses, such as dsm+0.5*diffclf."""
    levels: int
    """Times of one row, N of DiffCLF."""
    batch: int
    """Rows per step."""
    steps: int
    """Steps on the objective."""
    more_steps: list[int]
    """Steps of further stages on the objective."""
    score_steps: int
    """Steps of a first stage with dsm alone, 0 for none."""
    rate: float
    """Largest learning rate."""
    decay: Literal["constant", "cosine"]
    """Learning rate after the warm-up."""
    warm_up: int
    """Steps in which each stage's learning rate grows from 0."""
    clip: float
    """Largest norm of a gradient, 0 for no limit."""
    average: float
    """Decay of the moving average of the parameters, 0 for none."""
    seed: int
    """Seed of everything random."""
    log_every: int
    """Steps between two entries of the history."""
    kernel: str
    """Instruction set of the kernels; it decides the last bits."""
    network: str | dict[str, Any]
    """The network: mlp, waves, pairs, egnn or transformer, or a dict such as {'kind': 'egnn', 'bonds': [[0, 1]], 'cross': True}."""
    molecule: dict[str, Any]
    """The molecule that the rows are frames of (nm), for objectives that compare with its exact energies: {'topology': 'aldp.prmtop', 'solvents': ['1', '0'],
    'temperature': 300.0}."""
    process: str | dict[str, Any]
    """Noising process: a name, or a dict such as {'kind': 'vp', 'beta_max': 10.0}."""
    spacing: str | dict[str, Any]
    """Spacing of the time grid: linear, power, both-ends, or {'kind': 'power', 'rho': 7.0}."""
    coupling: str | dict[str, Any]
    """Which rows of two endpoints are paired: independent, optimal-transport, or a dict such as {'kind': 'optimal-transport', 'rows': 1024}."""
    times: str | dict[str, Any]
    """How times are drawn: a name, or a dict with parameters."""


def plain(value: object) -> Any:
    """Numbers of numpy and paths as JSON has them."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    item = getattr(value, "item", None)
    if item is not None and getattr(value, "ndim", 0) == 0:
        return item()
    raise UsageError(f"{value!r} is no number, text or dict")


def settings_text(settings: Mapping[str, Any], function: str) -> str:
    """The settings as JSON; None is the default. An unknown name is refused with the nearest known one."""
    # Here, so that an import does not wait for them.
    import difflib
    import json

    # Rows and their weights have arguments of their own.
    rows = ("data", "end", "weights", "end_weights")
    known = [name for name in _native.setting_names() if name not in rows]
    for name, value in settings.items():
        if name not in (*known, *rows):
            near = difflib.get_close_matches(name, known, 1)
            advice = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}"
            raise UsageError(f"{function}() has no argument {name!r}; {advice}")
        if isinstance(value, float) and not abs(value) < float("inf"):
            raise InputError(f"{name} is {value}, expected a finite number")
    given = {name: value for name, value in settings.items() if value is not None}
    try:
        return json.dumps(given, default=plain, allow_nan=False)
    except UsageError as error:
        raise UsageError(f"a setting cannot be understood: {error}") from None
    except (TypeError, ValueError) as error:
        raise UsageError(f"a setting cannot be understood: {error}") from error
