"""Energies at work: algebra, targets from functions, chains, particles, ladders, comparisons."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import diffclf

from .conftest import SMALL

if TYPE_CHECKING:
    from numpy.typing import NDArray


def tilted(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """A well of unlike widths, off the origin: mean (1, -2), variances 1 and 0.25, in kT, plus 3."""
    energy: NDArray[np.float64] = 0.5 * (x[:, 0] - 1) ** 2 + 2 * (x[:, 1] + 2) ** 2 + 3
    return energy


def slope(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Its gradient."""
    return np.stack([x[:, 0] - 1, 4 * (x[:, 1] + 2)], axis=1)


@pytest.fixture(scope="module")
def trained() -> diffclf.Model:
    # On a mixture fitted to the rows: near the truth after a few steps.
    rows = diffclf.system("two-modes").sample(4000, seed=8)
    return diffclf.fit(rows, progress=False, **{**SMALL, "grid_levels": 64})


def test_algebra_is_that_of_log_densities() -> None:
    a, b = diffclf.system("upper-pair"), diffclf.system("two-modes")
    c = diffclf.target(tilted, 2, gradient=slope)
    x = a.sample(50, seed=3).astype(np.float64)
    la, lb, lc = a.log_density(x), b.log_density(x), c.log_density(x)
    assert np.allclose((a & b).log_density(x), la + lb)
    assert np.allclose((a & b & c).log_density(x), la + lb + lc)
    assert np.allclose((a**0.5).log_density(x), 0.5 * la)
    assert np.allclose((a & ~b).log_density(x), la - 0.5 * lb)
    mixture = 0.3 * a | 0.7 * b
    assert np.allclose(mixture.log_density(x), np.log(0.3 * np.exp(la) + 0.7 * np.exp(lb)))
    assert np.allclose((a | b).log_density(x), np.log(0.5 * np.exp(la) + 0.5 * np.exp(lb)))
    three = 1 * a | 1 * b | 2 * a
    assert np.allclose(three.log_density(x), np.log(0.75 * np.exp(la) + 0.25 * np.exp(lb)))
    h = 1e-6
    step = np.array([h, 0])
    rise = (mixture.log_density(x + step) - mixture.log_density(x - step)) / (2 * h)
    assert np.allclose(mixture.score(x)[:, 0], rise, rtol=1e-4, atol=1e-4)
    assert "and" in repr(a & b)


def test_models_compose_with_each_other(trained: diffclf.Model) -> None:
    x = diffclf.system("two-modes").sample(40, seed=5)
    both = trained & trained**0.5
    assert np.allclose(both.log_density(x), 1.5 * trained.log_density(x), atol=1e-6)
    found = (0.5 * trained | 0.5 * trained).sample(512, levels=32, moves=4, seed=1, least_overlap=0.0)
    assert found.points.shape == (512, 2)
    assert found.weights.sum() == pytest.approx(1)
    assert found.resample(100).shape == (100, 2)


def test_functions_are_targets_of_chains() -> None:
    start = np.random.default_rng(0).normal(size=(32, 2))
    for density in (diffclf.target(tilted, 2, gradient=slope), diffclf.target(tilted, 2)):
        for run in (diffclf.mala, diffclf.hmc):
            chains = run(density, start, draws=300, warm_up=200, seed=4)
            assert chains.draws.shape == (300, 32, 2)
            error = np.array([1.0, 0.5]) / np.sqrt(chains.effective_draws)
            assert np.all(np.abs(chains.samples.mean(axis=0) - [1, -2]) < 4 * error)
            assert np.all(chains.r_hat < 1.1)
            assert chains.divergences == 0
    density = diffclf.target(tilted, 2, gradient=slope)
    for friction in (None, 1.0):
        walk = diffclf.langevin(density, start, step=0.02 if friction is None else 0.2, friction=friction, draws=300, warm_up=300)
        assert np.all(np.abs(walk.samples.mean(axis=0) - [1, -2]) < 0.2)


def test_draws_go_to_arviz(trained: diffclf.Model) -> None:
    pytest.importorskip("arviz")
    density = diffclf.target(tilted, 2, gradient=slope)
    start = np.random.default_rng(0).normal(size=(32, 2))
    particles = diffclf.smc(trained, 64, levels=16, moves=1, least_overlap=0.0)
    assert particles.to_arviz().posterior["x"].shape == (1, 64, 2)
    assert diffclf.mala(density, start, draws=20, warm_up=5).to_arviz().posterior["x"].shape == (32, 20, 2)


def test_chains_on_a_model(trained: diffclf.Model) -> None:
    start = diffclf.system("two-modes").sample(64, seed=2)
    chains = diffclf.mala(trained, start, draws=50, warm_up=50)
    assert np.isfinite(chains.draws).all()
    assert 0.3 < chains.acceptance < 1


def test_a_function_that_raises_is_heard() -> None:
    calls = [0]

    def breaks(x: NDArray[np.float64]) -> Any:
        calls[0] += 1
        if calls[0] > 3:
            raise KeyError("mine")
        return tilted(x)

    with pytest.raises(KeyError, match="mine"):
        diffclf.mala(diffclf.target(breaks, 2, gradient=slope), np.zeros((4, 2)), draws=20)
    for wrong, words in ((lambda x: x, "shape"), (lambda x: "text", "could not convert|invalid literal"), (lambda x: np.zeros(7), "shape")):
        with pytest.raises((diffclf.InputError, ValueError), match=words):
            diffclf.mala(diffclf.target(wrong, 2, gradient=slope), np.zeros((4, 2)), draws=20)


def test_a_boltzmann_generator_finds_log_z(trained: diffclf.Model) -> None:
    # exp(-U) = 5 times the density of the system: log Z = log 5.
    system = diffclf.system("two-modes")
    scaled = diffclf.target(lambda x: -system.log_density(x) - np.log(5.0), 2, gradient=lambda x: -(system**1.0).score(x))
    for target, exact in ((system, 0.0), ("two-modes", 0.0), (scaled, np.log(5.0))):
        found = diffclf.smc(trained, 2048, target=target, levels=48, moves=4, seed=1, runs=8, least_overlap=0.0)
        assert abs(found.log_z - exact) < 4 * found.log_z_error + 0.02, (target, found.log_z, found.log_z_error)
        share = found.weights[found.points[:, 0] > 0].sum()
        truth = (system.sample(20_000, seed=1)[:, 0] > 0).mean()
        assert abs(share - truth) < 0.1
    plain = diffclf.ais(trained, 256, target=system, levels=32, moves=2)
    assert plain.points.shape == (256, 2)
    ladders = diffclf.exchange(trained, 4, sweeps=50, levels=12, target=system, moves=2)
    assert ladders.draws.shape == (50, 4, 2)
    assert len(ladders.swap_acceptance) == 12


def test_compare_tells_samples_apart() -> None:
    system = diffclf.system("two-modes")
    same = diffclf.compare(system.sample(600, seed=1), system)
    other = diffclf.compare(system.sample(600, seed=1) + 0.5, system.sample(600, seed=2))
    assert "MMD" in other.text
    assert other.text != same.text
    weighted = diffclf.compare(system.sample(600, seed=1), "two-modes", weights=np.linspace(1, 2, 600))
    assert weighted.distances


def test_wrong_compositions_are_refused(trained: diffclf.Model) -> None:
    a = diffclf.system("upper-pair")
    with pytest.raises(diffclf.InputError, match="columns cannot be composed"):
        a & diffclf.system("mog2", dim=3)
    with pytest.raises(diffclf.UsageError, match="no density"):
        a & 3  # type: ignore[operator]
    with pytest.raises(diffclf.InputError, match="belongs to a mixture"):
        (0.3 * a) & a
    with pytest.raises(diffclf.InputError, match="positive number"):
        -1 * a
    with pytest.raises(diffclf.InputError, match="above -1"):
        (a**-2).log_density([[0.0, 0.0]])
    with pytest.raises(diffclf.InputError, match="no path from noise"):
        (a & diffclf.target(tilted, 2)).sample(16)
    with pytest.raises(diffclf.InputError, match="3 columns"):
        diffclf.smc(trained, 16, target=diffclf.target(lambda x: x[:, 0], 3))
    with pytest.raises(diffclf.InputError, match="'mle'"):
        diffclf.anneal(trained, 16, method="mle")
    with pytest.raises(diffclf.InputError, match="unknown variant"):
        diffclf.smc(trained, 16, kernel="magic")
    with pytest.raises(diffclf.UsageError, match="expected a function"):
        diffclf.target(3, 2)  # type: ignore[arg-type]
    assert pickle.loads(pickle.dumps(a)).name == "upper-pair"
