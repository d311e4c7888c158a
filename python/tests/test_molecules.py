"""ASE and OpenMM on a learned energy of particles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import diffclf

from .conftest import SMALL


@pytest.fixture(scope="module")
def cluster() -> diffclf.Model:
    """Three particles in a triangle that shakes, in angstrom."""
    rng = np.random.default_rng(2)
    corners = np.array([[0, 0, 0], [1.5, 0, 0], [0.3, 1.4, 0.2]])
    rows = (corners + 0.2 * rng.normal(size=(800, 3, 3))).reshape(800, 9)
    return diffclf.fit(rows, particles=3, progress=False, **SMALL)


def test_ase_forces_are_the_slope_of_the_energy(cluster: diffclf.Model) -> None:
    ase: Any = pytest.importorskip("ase")
    from ase.units import kB

    from diffclf.ase import DiffclfCalculator

    positions = np.array([[0, 0, 0], [0.15, 0.01, 0], [0.02, 0.14, 0.03]])
    for length in (1.0, 0.1):
        atoms = ase.Atoms("Ar3", positions=10 * length * positions)
        atoms.calc = DiffclfCalculator(cluster, temperature=300.0, length=length)
        energy = cluster.energy(10 * positions.reshape(1, 9))[0]
        assert atoms.get_potential_energy() == pytest.approx(kB * 300 * energy, rel=1e-6)
        found = atoms.get_forces().copy()
        expected, h = np.empty((3, 3)), 0.01 * length
        for place in np.ndindex(3, 3):
            energies = []
            for sign in (-1, 1):
                moved = atoms.copy()
                moved.calc = atoms.calc
                moved.positions[place] += sign * h
                energies.append(moved.get_potential_energy())
            expected[place] = (energies[0] - energies[1]) / (2 * h)
        assert np.allclose(found, expected, atol=2e-2 * np.abs(expected).max())
    with pytest.raises(diffclf.InputError, match="12 coordinates"):
        atoms = ase.Atoms("Ar4", positions=np.eye(4)[:, :3])
        atoms.calc = DiffclfCalculator(cluster, temperature=300.0)
        atoms.get_potential_energy()


def test_openmm_moves_particles(cluster: diffclf.Model) -> None:
    openmm: Any = pytest.importorskip("openmm")
    from openmm import unit

    from diffclf.openmm import force

    system = openmm.System()
    for _ in range(4):
        system.addParticle(40.0)
    # The last particle is another force's business.
    system.addForce(force(cluster, temperature=300.0, length=0.1, particles=[0, 1, 2]))
    integrator = openmm.LangevinMiddleIntegrator(300.0 * unit.kelvin, 1.0 / unit.picosecond, 0.001 * unit.picosecond)
    integrator.setRandomNumberSeed(1)
    context = openmm.Context(system, integrator, openmm.Platform.getPlatformByName("Reference"))
    positions = np.array([[0, 0, 0], [0.15, 0.01, 0], [0.02, 0.14, 0.03], [1, 1, 1]])
    context.setPositions(positions)
    state = context.getState(energy=True, forces=True)
    energy = state.getPotentialEnergy().value_in_unit(unit.kilojoule_per_mole)
    x = 10 * positions[:3].reshape(1, 9)
    kt = 8.31446261815324e-3 * 300
    assert energy == pytest.approx(kt * cluster.energy(x)[0], rel=1e-5)
    forces = np.array(state.getForces(asNumpy=True).value_in_unit(unit.kilojoule_per_mole / unit.nanometer))
    assert np.allclose(forces[:3], 10 * kt * cluster.score(x).reshape(3, 3), rtol=1e-4, atol=1e-3)
    assert np.allclose(forces[3], 0)
    integrator.step(50)
    moved = context.getState(positions=True).getPositions(asNumpy=True).value_in_unit(unit.nanometer)
    assert np.isfinite(np.asarray(moved)).all()
