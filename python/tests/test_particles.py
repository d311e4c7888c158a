"""Rows of particles: whatever the model knows of them, rows of the user's go in and come out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import diffclf

from .conftest import SMALL


def chains() -> Any:
    """Three particles of a bent chain, each row turned and moved."""
    rng = np.random.default_rng(3)
    flat = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.5, 0.9, 0.0]]) + 0.1 * rng.standard_normal((200, 3, 3))
    turns, _ = np.linalg.qr(rng.standard_normal((200, 3, 3)))
    return (flat @ turns + rng.standard_normal((200, 1, 3))).reshape(200, 9)


@pytest.mark.parametrize("network", ["egnn", {"kind": "transformer", "heads": 2, "head_width": 4}])
def test_the_centre_is_no_part_of_the_model(network: Any) -> None:
    rows = chains()
    model = diffclf.fit(rows, particles=3, network=network, progress=False, **SMALL)
    assert model.dim == 9
    moved = rows + np.tile([4.0, -2.0, 1.0], 3)
    assert np.allclose(model.log_density(rows), model.log_density(moved), atol=1e-3)
    score = model.score(rows[:5])
    assert score.shape == (5, 9)
    assert np.abs(score.reshape(5, 3, 3).sum(axis=1)).max() < 1e-3 * np.abs(score).max()
    drawn = model.sample(7, seed=1)
    assert drawn.shape == (7, 9)
    assert np.abs(drawn.reshape(7, 3, 3).sum(axis=1)).max() < 1e-9
    # F(t) is part of a composition's energy and not of a model's: a constant between them.
    gap = (model**0.5).energy(rows[:5]) - 0.5 * model.energy(rows[:5])
    assert np.ptp(gap) < 1e-4
    weighted = diffclf.smc(model, 32, levels=8, moves=1, least_overlap=0.0)
    assert weighted.points.shape == (32, 9)
    assert np.abs(weighted.points.reshape(32, 3, 3).sum(axis=1)).max() < 1e-9


def test_a_topology_tells_particles_types_and_bonds(tmp_path: Path) -> None:
    beads = tmp_path / "beads.toml"
    beads.write_text("masses = [12.0, 14.0, 12.0]\ntypes = [0, 1, 0]\nbonds = [[0, 1], [1, 2]]\n")
    known = diffclf.fit(chains(), topology=beads, progress=False, **SMALL)
    network = {"kind": "egnn", "types": [0, 1, 0], "bonds": [[0, 1], [1, 2]], "cross": True}
    told = diffclf.fit(chains(), particles=3, network=network, progress=False, **SMALL)
    assert known.to_bytes() == told.to_bytes()
    with pytest.raises(diffclf.InputError, match="has 3 particles"):
        diffclf.fit(chains(), topology=beads, particles=4, progress=False, **SMALL)
