"""Rows of symbols: learned, asked, sampled, judged and kept through the same doors as rows of numbers."""

from __future__ import annotations

import itertools
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import diffclf

TINY: dict[str, Any] = {"width": 16, "depth": 2, "features": 8, "batch": 128, "grid_levels": 16, "levels": 2, "score_steps": 30, "steps": 300, "average": 0.95, "rate": 0.005}


def spins(n: int = 1000, seed: int = 3) -> Any:
    """Four spins, the second as the first, more often up than down."""
    rng = np.random.default_rng(seed)
    first = rng.random(n) < 0.7
    others = rng.random((n, 2)) < 0.5
    return np.column_stack([first, first, others]).astype(np.int8)


@pytest.fixture(scope="module")
def model() -> diffclf.StatesModel:
    found = diffclf.fit(spins(), states=2, progress=False, **TINY)
    assert isinstance(found, diffclf.StatesModel)
    return found


def test_probabilities_ratios_and_rows(model: diffclf.StatesModel) -> None:
    every = np.array(list(itertools.product([0, 1], repeat=4)), dtype=np.int8)
    log_p = model.log_density(every)
    assert log_p.shape == (16,)
    # All rows are added when the training ends.
    assert abs(np.exp(log_p).sum() - 1) < 1e-4
    # Independent sites would have 0.42 where the first two differ.
    unequal = every[:, 0] != every[:, 1]
    assert np.exp(log_p[unequal]).sum() < 0.3
    assert np.allclose(model.free_energy() - model.energy(every), log_p)
    ratios = model.score(every[:1])
    assert ratios.shape == (1, 4, 2)
    flipped = every[:1].copy()
    flipped[0, 2] = 1
    assert np.isclose(ratios[0, 2, 1], (model.log_density(flipped) - log_p[:1])[0], atol=1e-4)
    assert model.time_score(every, t=0.3).shape == (16,)
    drawn = model.sample(300, seed=5)
    assert drawn.dtype == np.uint8 and drawn.shape == (300, 4) and set(np.unique(drawn)) == {0, 1}
    assert np.array_equal(drawn[:20], model.sample(20, seed=5))
    assert model.sample(10, method="tau-leaping", steps=8).shape == (10, 4)
    assert model.states == 2 and model.dim == 4 and "4 sites of 2 states" in repr(model)


def test_a_model_is_kept(model: diffclf.StatesModel, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    model.save(path)
    again = diffclf.load(path)
    assert isinstance(again, diffclf.StatesModel) and again == model
    assert isinstance(pickle.loads(pickle.dumps(model)), diffclf.StatesModel)
    out = tmp_path / "run"
    trained = diffclf.train(spins(), out, states=2, progress=False, **TINY)
    # The same settings and rows give the same parameters; the page is written too.
    assert np.array_equal(trained.log_density(spins(9)), model.log_density(spins(9)))
    assert (out / "report.html").is_file()


def test_verdicts(model: diffclf.StatesModel) -> None:
    found = model.diagnose(spins(600, seed=4), points=400, generate=200)
    names = [check.name for check in found.checks]
    assert "normalisation" in names and "shares of states" in names
    assert found["overlap of neighbouring levels"].verdict in ("pass", "warn")
    assert "independent sites" in found["held-out log-likelihood"].finding
    # Rows of another law are not what it learned.
    other = spins(600, seed=4)
    other[:, 0] = 1 - other[:, 1]
    assert not model.diagnose(other, points=400, generate=0)


def test_annealing_and_comparison(model: diffclf.StatesModel) -> None:
    found = diffclf.anneal(model, 400, runs=4, levels=12, seed=2)
    assert isinstance(found, diffclf.Particles)
    assert found.points.shape == (400, 4) and np.isclose(found.weights.sum(), 1)
    every = np.array(list(itertools.product([0, 1], repeat=4)), dtype=np.int8)
    truth = np.log(np.exp(model.log_density(every)).sum())
    assert abs(found.log_z - truth) < 4 * found.log_z_error + 0.02
    near = diffclf.compare(spins(500, seed=8), spins(1000, seed=9), states=2)
    assert near.distances["majorities"]["p_value"] > 0.025
    far = diffclf.compare(1 - spins(500, seed=8), spins(1000, seed=9), states=2)
    assert far.distances["sites"]["p_value"] <= 0.025
    assert set(far.distances) == {"sites", "pairs", "majorities", "mmd_squared", "energy_distance"}


def test_compositions(model: diffclf.StatesModel) -> None:
    every = np.array(list(itertools.product([0, 1], repeat=4)), dtype=np.int8)
    own = model.log_density(every)
    both = model & model
    assert np.allclose(both.log_density(every), 2 * own, atol=1e-6)
    assert np.allclose((0.3 * model | 0.7 * model).log_density(every), own, atol=1e-6)
    assert np.allclose((model**0.5).energy(every), -0.5 * own, atol=1e-6)
    # The ratio of a changed row is the difference of its log-densities.
    ratios = both.score(every)
    assert ratios.shape == (16, 4, 2) and np.isclose(ratios[0, 0, 1], 2 * (own[8] - own[0]), atol=1e-4)
    found = both.sample(2000, runs=4, levels=12, seed=2)
    truth = np.log(np.exp(2 * own).sum())
    assert abs(found.log_z - truth) < 4 * found.log_z_error + 0.02
    with pytest.raises(diffclf.InputError, match="numbers"):
        model & diffclf.system("mog2", 4)


def test_beside_an_exact_law(model: diffclf.StatesModel) -> None:
    with pytest.raises(diffclf.DiffclfError, match="name a system of states"):
        model.evaluate()
    found = model.evaluate("ising", levels=4, samples=128, classified=16)
    # It learned other rows: by enumeration, and as the classification sees it.
    every = np.array(list(itertools.product([0, 1], repeat=4)), dtype=np.int8)
    assert found.log_total is not None and found.divergence is not None and found.up is not None
    assert np.isclose(found.log_total, np.log(np.exp(model.log_density(every)).sum()), atol=1e-5)
    p = np.exp(model.log_density(every))
    # Where as many are up as down, the first spin counts.
    up = 2 * every.sum(1) + every[:, 0] > 4
    assert np.isclose(found.up[0], p[up].sum() / p.sum(), atol=1e-5)
    assert found.divergence > 0.2 and found.classification_excess.mean > 0


def test_what_belongs_to_numbers_is_refused(model: diffclf.StatesModel) -> None:
    x = spins(3)
    for wrong in (model.torch, model.jax, lambda: model.weight("x0 > 0"), lambda: model.surface(0), lambda: diffclf.compose(model & model, 10)):
        with pytest.raises(diffclf.UsageError, match="states"):
            wrong()
    with pytest.raises(diffclf.InputError, match="whole number from 0 to 1"):
        model.log_density(x + 5)
    with pytest.raises(diffclf.DiffclfError, match="eta"):
        model.sample(3, eta=0.5)
    with pytest.raises(diffclf.InputError, match="step"):
        diffclf.anneal(model, 10, step=0.1)
    with pytest.raises(diffclf.DiffclfError, match="one time"):
        model.log_density(x, t=[0.1, 0.2, 0.3])
