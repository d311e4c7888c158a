"""Free energies: exact answers, and pymbar's numbers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import diffclf
from diffclf import free_energy
from diffclf import pymbar as ours

from .conftest import SMALL

if TYPE_CHECKING:
    from numpy.typing import NDArray


def wells() -> tuple[NDArray[np.float64], NDArray[np.float64], list[int], NDArray[np.float64]]:
    """Harmonic wells of unlike places and widths, one without samples: positions, energies, counts and exact log Z."""
    rng = np.random.default_rng(3)
    places, stiffness, counts = np.array([0.0, 0.5, 1.2, 1.5]), np.array([1.0, 1.7, 3.0, 2.0]), [700, 500, 0, 900]
    parts = [rng.normal(p, 1 / np.sqrt(k), n) for p, k, n in zip(places, stiffness, counts, strict=True)]
    x = np.concatenate(parts)
    u = 0.5 * stiffness[:, None] * (x - places[:, None]) ** 2
    return x, u, counts, -0.5 * np.log(stiffness / stiffness[0])


def test_mbar_has_the_exact_answer_within_its_errors() -> None:
    x, u, counts, exact = wells()
    found = free_energy.mbar(u, counts)
    delta, error = found.differences()
    assert np.all(np.abs(delta[0] - exact) <= 4 * error[0] + 1e-12)
    assert np.allclose(found.log_z, delta[0])
    boot = found.bootstrap(100, seed=1)
    assert np.allclose(boot[0, 1:], error[0, 1:], rtol=0.4)
    mean, spread = found.expectations(np.stack([x, x**2]), state=3)
    assert abs(mean[0] - 1.5) < 4 * spread[0]
    assert abs(mean[1] - (1.5**2 + 0.5)) < 4 * spread[1]
    further, its_error = found.perturbed(0.5 * 2.5 * (x - 0.8) ** 2)
    assert abs(further[0] + 0.5 * np.log(2.5)) < 4 * its_error[0]
    surface = found.surface(x, 15, state=1)
    inside = surface.samples > 30
    below = np.array([math.erf(np.sqrt(1.7 / 2) * (edge - 0.5)) for edge in surface.edges])
    with np.errstate(divide="ignore"):
        exact_surface = -np.log(np.diff(below))
    gap = surface.free_energy - (exact_surface - exact_surface[np.nanargmin(surface.free_energy)])
    assert np.all(np.abs(gap)[inside] <= 4 * surface.error[inside] + 1e-12)
    assert np.allclose(found.overlap().sum(axis=1), 1)
    assert np.allclose(np.exp(found.log_weights()).sum(axis=0), 1)
    # Single precision is read as it stands.
    assert np.allclose(free_energy.mbar(u.astype(np.float32), counts).log_z, found.log_z, atol=1e-4)


def test_pymbars_names_give_pymbars_numbers() -> None:
    pymbar = pytest.importorskip("pymbar")
    x, u, counts, _ = wells()
    theirs, mine = pymbar.MBAR(u, counts), ours.MBAR(u, counts)

    def same(theirs: dict[str, Any], mine: dict[str, Any]) -> None:
        assert theirs.keys() == mine.keys()
        for key, value in theirs.items():
            assert np.shape(value) == np.shape(mine[key]), key
            assert np.allclose(value, mine[key], rtol=1e-8, atol=1e-10), key

    assert np.allclose(theirs.f_k, mine.f_k)
    same(theirs.compute_free_energy_differences(), mine.compute_free_energy_differences())
    same(theirs.compute_free_energy_differences(compute_uncertainty=False), mine.compute_free_energy_differences(compute_uncertainty=False))
    same(theirs.compute_overlap(), mine.compute_overlap())
    same(theirs.compute_expectations(x), mine.compute_expectations(x))
    same(theirs.compute_expectations(u, state_dependent=True), mine.compute_expectations(u, state_dependent=True))
    same(theirs.compute_perturbed_free_energies(1.1 * u[:3]), mine.compute_perturbed_free_energies(1.1 * u[:3]))
    observables = np.stack([x, x**2])
    same(theirs.compute_multiple_expectations(observables, u[1]), mine.compute_multiple_expectations(observables, u[1]))
    assert np.allclose(theirs.compute_effective_sample_number(), mine.compute_effective_sample_number())
    assert np.allclose(theirs.weights(), mine.weights())
    rng = np.random.default_rng(0)
    forward, reverse = rng.normal(1, 1, 500), rng.normal(0, 1, 400)
    same(pymbar.bar(forward, reverse), ours.bar(forward, reverse))
    same(pymbar.exp(forward), ours.exp(forward))


def test_works_and_slopes() -> None:
    rng = np.random.default_rng(5)
    # Gaussian works that obey Crooks: delta = -mean + variance / 2.
    forward, reverse = rng.normal(2.0, 1.2, 3000), rng.normal(1.2**2 - 2.0, 1.2, 2000)
    exact = -2.0 + 0.5 * 1.2**2
    for found in (
        free_energy.fep(forward),
        free_energy.fep(forward, reverse, bootstrap=50),
        free_energy.bar(forward, reverse, bootstrap=50),
    ):
        assert abs(found.delta.mean - exact) < 4 * found.delta.error
        assert found.method in repr(found)
        assert "log(Z_B/Z_A)" in found._repr_html_()
    lambdas = np.array([0.0, 0.2, 0.5, 0.8, 1.0])
    slopes = rng.normal(3 * lambdas[:, None] ** 2, 0.2, (5, 500))
    for rule in ("trapezoid", "simpson", "spline"):
        found = free_energy.ti(slopes, lambdas, rule=rule)
        assert abs(found.delta.mean + 1.0) < 4 * found.delta.error + (0.05 if rule == "trapezoid" else 5e-3)
    assert free_energy.statistical_inefficiency(rng.normal(size=2000)) < 1.5


def test_a_learned_path_between_two_states() -> None:
    settings = {**SMALL, "steps": 300, "score_steps": 200, "width": 32}
    model = diffclf.fit(system="pair-a", end_system="pair-b", dim=2, progress=False, **settings)
    found = free_energy.learn(model, levels=17, samples=1024, end_samples=4096)
    # Both densities are normalised.
    assert found.figures["exact"] == 0
    assert np.isfinite(found.delta.error)
    a, b = diffclf.system("pair-a").sample(2000, seed=1), diffclf.system("pair-b").sample(2000, seed=2)
    u = [-diffclf.system(name).log_density(rows) for name, rows in (("pair-a", a), ("pair-b", b))]
    given = free_energy.learn(model, a, b, energies=(u[0], u[1]), levels=17, samples=1024)
    assert abs(given.delta.mean - found.delta.mean) < 4 * np.hypot(given.delta.error, found.delta.error)
