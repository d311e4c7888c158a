"""Real molecules from Amber's files: energies and forces in vacuum or implicit solvent, for many copies at once.

>>> import diffclf.molecule
>>> aldp = diffclf.molecule.load("../experiments/aldp-solvation/alanine-dipeptide.prmtop")
>>> x = aldp.coordinates("../experiments/aldp-solvation/alanine-dipeptide.crd")
>>> round(float(aldp.energy(x)[0]), 4), round(float(aldp.energy(x, solvent="vacuum")[0]), 4)
(-138.9697, -88.0886)

Coordinates are nm, energies kJ/mol, forces kJ/mol/nm. ``solvent`` is a factor from 0 to 1 on the charges inside generalised Born (1: all of the
solvent; 0: its surface term alone), or ``"vacuum"``. Frames by replica exchange: ``diffclf molecule sample``.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np

from . import _native
from ._arrays import ArrayLike, points
from ._energies import Target
from .errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["GAS_CONSTANT", "Molecule", "TERMS", "load"]

#: kJ/mol/K.
GAS_CONSTANT = 8.31446261815324e-3
#: The parts of an energy; ``polar`` is generalised Born at full charges.
TERMS = ("bonds", "angles", "torsions", "lennard_jones", "coulomb", "polar", "surface")


def _lambda(solvent: float | str) -> float | None:
    if isinstance(solvent, str):
        if solvent != "vacuum":
            raise InputError(f"solvent is {solvent!r}, expected a number from 0 to 1, or 'vacuum'")
        return None
    return float(solvent)


class Molecule:
    """A molecule and its force field: see :func:`load`."""

    __slots__ = ("_native", "dim")

    def __init__(self, native: _native.Molecule) -> None:
        self._native = native
        #: Coordinates of a copy: three for each atom.
        self.dim = 3 * len(native.names())

    @property
    def names(self) -> list[str]:
        """Names of the atoms."""
        return self._native.names()

    @property
    def elements(self) -> list[int]:
        """Atomic numbers, 0 where they are not known."""
        return self._native.elements()

    @property
    def bonds(self) -> list[tuple[int, int]]:
        """Pairs of bonded atoms."""
        return [(first, second) for first, second in self._native.bonds()]

    @property
    def masses(self) -> NDArray[np.float64]:
        """Masses in amu."""
        return self._native.masses()

    def coordinates(self, path: str | os.PathLike[str]) -> NDArray[np.float64]:
        """Coordinates of a file in nm: Amber's .crd, .inpcrd, .rst7, or rows of a .npy file."""
        return self._native.coordinates(os.fspath(path))

    def terms(self, x: ArrayLike) -> dict[str, NDArray[np.float64]]:
        """The parts of the energy, by name: see :data:`TERMS`."""
        array, _ = points(x, self.dim)
        values = self._native.evaluate(array, None)[0]
        return {name: values[:, k] for k, name in enumerate(TERMS)}

    def energy(self, x: ArrayLike, solvent: float | str = 1.0) -> NDArray[np.float64]:
        """Energies in kJ/mol."""
        return self.energy_and_forces(x, solvent)[0]

    def forces(self, x: ArrayLike, solvent: float | str = 1.0) -> NDArray[np.float64]:
        """Forces in kJ/mol/nm."""
        return self.energy_and_forces(x, solvent)[1]

    def energy_and_forces(self, x: ArrayLike, solvent: float | str = 1.0) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Both, for the price of one."""
        array, _ = points(x, self.dim)
        factor = _lambda(solvent)
        terms, forces = self._native.evaluate(array, factor)
        energy = terms[:, :5].sum(axis=1)
        if factor is not None:
            energy = energy + factor**2 * terms[:, 5] + terms[:, 6]
        return energy, forces

    def target(self, temperature: float, solvent: float | str = 1.0, scale: float = 1.0) -> Target:
        """The Boltzmann density ``exp(-U/kT)`` of coordinates ``scale * nm``, for samplers and Boltzmann generators.

        Examples
        --------
        >>> import diffclf.molecule
        >>> aldp = diffclf.molecule.load("../experiments/aldp-solvation/alanine-dipeptide.prmtop")
        >>> x = aldp.coordinates("../experiments/aldp-solvation/alanine-dipeptide.crd")
        >>> aldp.target(300.0).score(x).shape
        (1, 66)
        """
        if not (np.isfinite(temperature) and temperature > 0):
            raise InputError(f"temperature is {temperature!r}, expected a positive number of kelvins")
        if not (np.isfinite(scale) and scale > 0):
            raise InputError(f"scale is {scale!r}, expected a positive number")
        kt = GAS_CONSTANT * temperature

        def energy(y: NDArray[np.float64]) -> NDArray[np.float64]:
            return self.energy(y / scale, solvent) / kt

        def gradient(y: NDArray[np.float64]) -> NDArray[np.float64]:
            return -self.forces(y / scale, solvent) / (kt * scale)

        return Target(energy, self.dim, gradient)

    def __repr__(self) -> str:
        return f"<diffclf.molecule.Molecule: {self.dim // 3} atoms>"


def load(topology: str | os.PathLike[str], model: str = "obc1") -> Molecule:
    """Reads an Amber topology (.prmtop, .parm7) without periodic box; ``model`` are the radii of the solvent, obc1 or obc2."""
    return Molecule(_native.Molecule(os.fspath(topology), model))
