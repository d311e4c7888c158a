"""Learn energies (log-densities, mode weights included) from samples.

>>> import diffclf
>>> x = diffclf.system("two-modes", dim=2).sample(2000, seed=1)
>>> model = diffclf.fit(x, steps=50, score_steps=50, width=32, depth=2, progress=False)
>>> log_p = model.log_density(x)
>>> new = model.sample(1000, seed=0)

Energies are dimensionless (kT), and the sign is always ``log p = -U + F``.
"""

from __future__ import annotations

from ._company import join
from ._compare import Comparison, compare
from ._dynamics import Dynamics, Observation, observe, simulate
from ._energies import Composition, Density, Target, target
from ._model import Model, Report, load
from ._native import __version__
from ._native import set_threads, threads
from ._progress import Progress
from ._results import Check, Diagnosis, Estimate, Evaluation, Extremes, RegionWeight, StatesEvaluation, Surface
from ._sampling import Chains, Ladders, Particles, ais, anneal, compose, exchange, hmc, langevin, mala, smc
from ._settings import Settings
from ._states import StatesModel
from ._systems import System, system, systems
from ._train import fit, train
from .errors import (
    DiffclfError,
    FileError,
    InputError,
    InternalError,
    InterruptedWarning,
    NumericalError,
    UsageError,
)

__all__ = [
    "Chains",
    "Check",
    "Comparison",
    "Composition",
    "Density",
    "Diagnosis",
    "DiffclfError",
    "Dynamics",
    "Estimate",
    "Evaluation",
    "Extremes",
    "FileError",
    "InputError",
    "InternalError",
    "InterruptedWarning",
    "Ladders",
    "Model",
    "NumericalError",
    "Observation",
    "Particles",
    "Progress",
    "RegionWeight",
    "Report",
    "Settings",
    "StatesEvaluation",
    "StatesModel",
    "Surface",
    "System",
    "Target",
    "UsageError",
    "__version__",
    "ais",
    "anneal",
    "compare",
    "compose",
    "exchange",
    "fit",
    "hmc",
    "langevin",
    "join",
    "load",
    "mala",
    "observe",
    "set_threads",
    "simulate",
    "smc",
    "system",
    "systems",
    "target",
    "threads",
    "train",
]
