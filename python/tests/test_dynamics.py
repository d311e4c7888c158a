"""Dynamics: the command's bytes, whatever the rows and the topology come in; what cannot be is refused in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import diffclf

from .conftest import SMALL
from .test_particles import chains

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

BEADS = "masses = [12.0, 14.0, 16.0]\ntypes = [0, 1, 0]\nbonds = [[0, 1], [1, 2]]\n"
HOW: dict[str, Any] = {"step": 0.5, "temperature": 300.0, "units": "nm", "frames": 4, "thin": 3, "seed": 5}
FLAGS = "--step 0.5 --temperature 300 --units nm --frames 4 --thin 3 --seed 5 --quiet".split()


@pytest.fixture(scope="module")
def beads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a topology, frames (0.15 nm from bead to bead) and a model of them."""
    place: Path = tmp_path_factory.mktemp("beads")
    (place / "cg.toml").write_text(BEADS)
    frames = (0.15 * chains()).reshape(-1, 3, 3).astype(np.float32)
    np.save(place / "frames.npy", frames)
    model = diffclf.fit(frames, topology=place / "cg.toml", progress=False, **SMALL)
    model.save(place / "cg.safetensors")
    return place


def test_a_topology_gives_masses_and_bonds_and_the_commands_bytes(beads: Path, command: Callable[..., Any]) -> None:
    model = diffclf.load(beads / "cg.safetensors")
    frames = np.load(beads / "frames.npy")
    found = diffclf.simulate(model, frames, chains=2, topology=beads / "cg.toml", **HOW)
    assert (found.settings["masses"], found.settings["bonds"]) == ([12.0, 14.0, 16.0], [[0, 1], [1, 2]])
    told = diffclf.simulate(model, frames[:2], data=frames, masses=[12.0, 14.0, 16.0], bonds=[(0, 1), (1, 2)], **HOW)
    assert np.array_equal(found.frames, told.frames)
    assert found.departures == told.departures
    # What is given stands.
    heavy = diffclf.simulate(model, frames, chains=2, topology=beads / "cg.toml", masses=50.0, **HOW)
    assert heavy.settings["masses"] == [50.0]
    assert not np.array_equal(found.frames, heavy.frames)
    for end in ["npy", "xtc", "dcd", "pdb"]:
        command("simulate", "cg.safetensors", "--start", "frames.npy", "--chains", 2, "--topology", "cg.toml", *FLAGS, "-o", f"own.{end}", cwd=beads)
        names = found.save(beads / f"theirs.{end}")
        own = ["own.npy"] if end == "npy" else [f"own-0.{end}", f"own-1.{end}"]
        assert [(beads / name).read_bytes() for name in own] == [(beads / name).read_bytes() for name in names]
        with pytest.raises(diffclf.FileError, match="exists"):
            found.save(beads / f"theirs.{end}")
    # Frames come back from files, in nm.
    again = diffclf.simulate(model, beads / "frames.npy", chains=2, topology=beads / "cg.toml", **HOW)
    assert np.array_equal(found.frames, again.frames)
    seen = diffclf.observe(beads / "own-1.dcd", {"bend": "angle:0-1-2"})
    assert np.allclose(seen.values, diffclf.observe(found.frames[1], {"bend": "angle:0-1-2"}).values, atol=1e-3)


def test_systems_need_no_rows_and_a_go_model_is_one(tmp_path: Path, command: Callable[..., Any]) -> None:
    surface = diffclf.system("mueller-brown")
    how: dict[str, Any] = {"step": 0.005, "temperature": 23.0, "masses": 0.5, "frames": 3, "thin": 2}
    found = diffclf.simulate(surface, chains=2, **how)
    words = "simulate A --system A=mueller-brown --chains 2 --step 0.005 --temperature 23 --masses 0.5 --frames 3 --thin 2 --quiet -o a.npy"
    command(*words.split(), cwd=tmp_path)
    assert np.array_equal(found.samples, np.load(tmp_path / "a.npy"))
    angle = np.arange(6) * 1.7
    native = np.stack([0.23 * np.cos(angle), 0.23 * np.sin(angle), 0.15 * np.arange(6)], axis=1)
    lines = [f"ATOM  {k + 1:>5}  CA  ALA A{k + 1:>4}    {x:8.3f}{y:8.3f}{z:8.3f}  1.00  0.00           C" for k, (x, y, z) in enumerate(10 * native)]
    (tmp_path / "native.pdb").write_text("\n".join([*lines, "END", ""]))
    pdb = tmp_path / "native.pdb"
    folded = diffclf.simulate(f"go:{pdb}", chains=2, topology=pdb, **HOW)
    command("simulate", "A", "--system", "A=go:native.pdb", "--chains", 2, "--topology", "native.pdb", *FLAGS, "-o", "go.npy", cwd=tmp_path)
    assert np.array_equal(folded.samples, np.load(tmp_path / "go.npy").reshape(-1, 18))


def test_what_cannot_be_is_refused(beads: Path) -> None:
    model = diffclf.load(beads / "cg.safetensors")
    frames = np.load(beads / "frames.npy")
    (beads / "two.toml").write_text("masses = [12.0, 14.0]\n")
    warm = {**HOW, "temperature": None}
    broken = frames.copy()
    broken[1, 2, 0] = np.nan
    refused: list[tuple[Any, dict[str, Any], str]] = [
        (frames, {**HOW, "topology": beads / "two.toml"}, "2 beads, but rows have 9 numbers"),
        (frames[:, :2], HOW, "rows of 6 numbers, but the energy has 9"),
        (np.concatenate([frames, frames], axis=1), HOW, "rows of 18 numbers"),
        (broken, HOW, "row 1, column 6"),
        (frames, {**HOW, "data": broken}, "row 1, column 6"),
        (frames, warm, "temperature=300"),
        (frames, {**HOW, "chains": 1000}, "the start has 200 rows"),
        (frames, {**HOW, "chains": 0}, "chains is 0"),
        (frames, {**HOW, "units": "miles"}, "reduced, nm, angstrom"),
        (frames, {**HOW, "scheme": "euler"}, "baoab, langevin-leapfrog, ghmc"),
        (None, HOW, "nothing to start from"),
    ]
    for x, how, words in refused:
        with pytest.raises(diffclf.DiffclfError, match=words):
            diffclf.simulate(model, x, **how)
    with pytest.raises(diffclf.DiffclfError, match="archives are read, not written"):
        diffclf.simulate(model, frames, chains=1, **HOW).save(beads / "chains.npz")
