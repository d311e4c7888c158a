"""An OpenMM force: molecular dynamics on a learned energy of particles, alone or beside other forces.

Units: a model knows the coordinates of its data and energies in kT. ``temperature`` (kelvin) turns kT into kJ/mol, and ``length`` says how
long a unit of the data is in nanometres.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

try:
    import openmm
    from openmm import unit
except ImportError as missing:
    raise ImportError("diffclf.openmm needs openmm 8.4 or newer; install it with: pip install openmm") from missing

from .errors import DiffclfError, InputError

if TYPE_CHECKING:
    from ._model import Model

__all__ = ["force"]

#: The gas constant in kJ/mol/K.
_R = 8.31446261815324e-3


class _Computation:
    """What OpenMM calls; it can be pickled with the model, so that the force can be serialised."""

    def __init__(self, model: Model, temperature: float, length: float, t: float | None) -> None:
        self.model, self.kt, self.length, self.t = model, _R * temperature, length, t

    def __call__(self, state: Any) -> tuple[Any, Any]:
        positions = state.getPositions(asNumpy=True).value_in_unit(unit.nanometer)
        x = np.ascontiguousarray(positions.reshape(1, -1) / self.length)
        energy = self.kt * float(self.model.energy(x, self.t)[0])
        forces = self.kt / self.length * self.model.score(x, self.t).reshape(-1, 3)
        return energy * unit.kilojoule_per_mole, forces * unit.kilojoule_per_mole / unit.nanometer


def force(model: Model, *, temperature: float, length: float = 1.0, t: float | None = None, particles: list[int] | None = None) -> Any:
    """An ``openmm.PythonForce`` of a model of particles in space.

    Parameters
    ----------
    model
        A model whose rows are the positions of all particles, x, y, z of the first, then of the second, and so on.
    temperature
        The temperature of its data in kelvin.
    length
        Length of a unit of the data in nanometres: 1 for data in nanometres, 0.1 for angstrom.
    t
        Time of the path; the smallest if left out.
    particles
        The particles of the system that it acts on; all if left out.
    """
    if not hasattr(openmm, "PythonForce"):
        raise DiffclfError(f"OpenMM {openmm.__version__} has no PythonForce; install 8.4 or newer")
    if not temperature > 0 or not length > 0:
        raise InputError(f"temperature is {temperature} and length {length}, expected positive numbers (kelvin, nanometres)")
    if model.dim % 3:
        raise InputError(f"the model has {model.dim} columns, expected three for each particle")
    made = openmm.PythonForce(_Computation(model, temperature, length, t))
    if particles is not None:
        if 3 * len(particles) != model.dim:
            raise InputError(f"{len(particles)} particles have {3 * len(particles)} coordinates, but the model has {model.dim}")
        made.setParticles(particles)
    return made
