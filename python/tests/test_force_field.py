"""Molecules: energies of the literature, forces against differences, a density for the samplers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import diffclf
import diffclf.molecule

DATA = Path(__file__).resolve().parents[2] / "experiments" / "aldp-solvation"


@pytest.fixture(scope="module")
def aldp() -> diffclf.molecule.Molecule:
    return diffclf.molecule.load(DATA / "alanine-dipeptide.prmtop")


def test_energies_are_those_of_the_literature(aldp: diffclf.molecule.Molecule) -> None:
    x = aldp.coordinates(DATA / "alanine-dipeptide.crd")
    assert x.shape == (1, 66) and aldp.dim == 66 and len(aldp.bonds) == 21 and aldp.masses.shape == (22,)
    cases: list[tuple[float | str, float]] = [("vacuum", -88.0886), (0.0, -71.5628), (1.0, -138.9697)]
    for solvent, expected in cases:
        assert abs(aldp.energy(x, solvent)[0] - expected) < 1e-4
    assert abs(sum(float(part[0]) for part in aldp.terms(x).values()) - -138.9697) < 1e-4


def test_forces_and_target_agree_with_differences(aldp: diffclf.molecule.Molecule) -> None:
    rng = np.random.default_rng(3)
    x = aldp.coordinates(DATA / "alanine-dipeptide.crd") + 0.004 * rng.standard_normal((3, 66))
    direction, step = rng.standard_normal(66), 1e-6
    slope = (aldp.energy(x + step * direction, 0.4) - aldp.energy(x - step * direction, 0.4)) / (2 * step)
    along = aldp.forces(x, 0.4) @ direction
    assert np.abs(slope + along).max() < 1e-5 * np.abs(along).max()
    density = aldp.target(300.0, 0.4, scale=20.0)
    kt = diffclf.molecule.GAS_CONSTANT * 300.0
    assert np.allclose(density.energy(20.0 * x), aldp.energy(x, 0.4) / kt)
    assert np.allclose(density.score(20.0 * x), aldp.forces(x, 0.4) / kt / 20.0)
    found = diffclf.mala(density, 20.0 * x, draws=5, warm_up=5)
    assert np.isfinite(np.asarray(found.draws)).all()


def test_wrong_input_is_refused(aldp: diffclf.molecule.Molecule) -> None:
    with pytest.raises(diffclf.DiffclfError):
        diffclf.molecule.load(DATA / "alanine-dipeptide.crd")
    with pytest.raises(diffclf.InputError):
        diffclf.molecule.load(DATA / "alanine-dipeptide.prmtop", "gbn")
    with pytest.raises(diffclf.InputError):
        aldp.energy(np.zeros((2, 65)))
    with pytest.raises(diffclf.InputError):
        aldp.energy(np.zeros((1, 66)), "water")
    with pytest.raises(diffclf.InputError):
        aldp.energy(aldp.coordinates(DATA / "alanine-dipeptide.crd"), 1.5)
    with pytest.raises(diffclf.InputError):
        aldp.target(-1.0)
