"""An ASE calculator: dynamics, minimisation and everything else of ASE on a learned energy of particles.

Units: a model knows the coordinates of its data and energies in kT. ``temperature`` (kelvin) turns kT into eV, and ``length`` says how long a
unit of the data is in angstrom.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

try:
    from ase import units
    from ase.calculators.calculator import Calculator, all_changes
except ImportError as missing:
    raise ImportError("diffclf.ase needs ase; install it with: pip install ase") from missing

from .errors import InputError

if TYPE_CHECKING:
    from ._model import Model

__all__ = ["DiffclfCalculator"]


class DiffclfCalculator(Calculator):
    """Energies (eV) and forces (eV/angstrom) of a model of particles in space.

    Parameters
    ----------
    model
        A model whose rows are the positions of all particles, x, y, z of the first, then of the second, and so on.
    temperature
        The temperature of its data in kelvin.
    length
        Length of a unit of the data in angstrom: 1 for data in angstrom, 10 for nanometres.
    t
        Time of the path; the smallest if left out.
    """

    implemented_properties: ClassVar[list[str]] = ["energy", "forces", "free_energy"]

    def __init__(self, model: Model, *, temperature: float, length: float = 1.0, t: float | None = None, **keywords: Any) -> None:
        super().__init__(**keywords)
        if not temperature > 0 or not length > 0:
            raise InputError(f"temperature is {temperature} and length {length}, expected positive numbers (kelvin, angstrom)")
        self.model, self.length, self.t = model, length, t
        self.kt = units.kB * temperature

    def calculate(self, atoms: Any = None, properties: Any = None, system_changes: Any = all_changes) -> None:
        """Fills ``results``."""
        super().calculate(atoms, properties, system_changes)
        positions = self.atoms.get_positions()
        if positions.size != self.model.dim:
            raise InputError(f"{len(positions)} atoms have {positions.size} coordinates, but the model has {self.model.dim}")
        x = np.ascontiguousarray(positions.reshape(1, -1) / self.length)
        energy = self.kt * float(self.model.energy(x, self.t)[0])
        forces = self.kt / self.length * self.model.score(x, self.t).reshape(-1, 3)
        self.results = {"energy": energy, "free_energy": energy, "forces": forces}
