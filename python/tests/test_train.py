"""Training: the same bytes as the command, whatever the rows come in; progress, callbacks, interruption."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import diffclf
from diffclf import _native

from .conftest import SMALL, flags

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

    Rows = NDArray[np.float32]


def test_model_and_samples_are_the_commands_bytes(x: Rows, model: diffclf.Model, command: Callable[..., Any], tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", x)
    command("train", "x.npy", "-o", "run", "--no-report", *flags(SMALL), cwd=tmp_path)
    assert (tmp_path / "run/model.safetensors").read_bytes() == model.to_bytes()
    command("sample", "run", "-n", 100, "--seed", 5, "-o", "new.npy", cwd=tmp_path)
    np.save(tmp_path / "ours.npy", model.sample(100, seed=5))
    assert (tmp_path / "new.npy").read_bytes() == (tmp_path / "ours.npy").read_bytes()
    for what in ("log-density", "energy", "score", "time-score"):
        command("density", "run", "x.npy", "--what", what, "-o", f"{what}.npy", cwd=tmp_path)
        ours = getattr(model, what.replace("-", "_"))(x)
        assert np.array_equal(np.load(tmp_path / f"{what}.npy"), ours), what


def test_a_run_goes_on_behind_the_other_door(x: Rows, command: Callable[..., Any], tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", x)
    path = tmp_path / "x.npy"
    whole = diffclf.train(path, tmp_path / "whole", progress=False, **SMALL)
    files = {"checkpoint.safetensors", "config.toml", "log.jsonl", "model.safetensors", "report.html"}
    assert files <= {file.name for file in (tmp_path / "whole").iterdir()}

    def stopped(entry: dict[str, Any]) -> bool:
        return bool(entry["step"] == 11)

    # Begun here, continued by the command.
    part = diffclf.train(path, tmp_path / "a", progress=False, callback=stopped, **SMALL)
    assert part.steps == 11
    command("train", "-o", "a", "--resume", "--no-report", cwd=tmp_path)
    assert (tmp_path / "a/model.safetensors").read_bytes() == whole.to_bytes()
    # Begun with an array, continued by the command with its file, and then here with the array again.
    diffclf.train(x, tmp_path / "b", name="x.npy", progress=False, callback=stopped, **SMALL)
    command("train", "x.npy", "-o", "b", "--resume", "--no-report", cwd=tmp_path)
    again = diffclf.train(x, tmp_path / "b", resume=True, progress=False, report=False)
    assert again == whole
    assert (tmp_path / "b/model.safetensors").read_bytes() == whole.to_bytes()
    with pytest.raises(diffclf.FileError, match="resume=True"):
        diffclf.train(x, tmp_path / "b", progress=False)
    with pytest.raises(diffclf.InputError, match="content differs"):
        diffclf.train(x + np.float32(1), tmp_path / "b", resume=True, progress=False)


def test_rows_of_any_kind_are_the_same_rows(x: Rows, model: diffclf.Model, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", x)
    kinds: dict[str, Any] = {
        "fortran": np.asfortranarray(x),
        "strided": np.repeat(x, 2, axis=0)[::2],
        "swapped bytes": x.astype(">f4"),
        "read-only": _read_only(x),
        "shaped": x.reshape(-1, 2, 1)[:, :, 0],
    }
    for name, rows in kinds.items():
        assert diffclf.fit(rows, name="x.npy", progress=False, **SMALL) == model, name
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert diffclf.fit(mapped, progress=False, **SMALL) == model, "a memory map has the name of its file"
    assert diffclf.fit(tmp_path / "x.npy", progress=False, **SMALL) == model, "a path"
    assert diffclf.fit(str(tmp_path / "x.npy"), progress=False, **SMALL) == model, "a path as text"


def _read_only(x: Rows) -> Rows:
    copy: Rows = x.copy()
    copy.flags.writeable = False
    return copy


def test_rows_are_read_in_place(x: Rows, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", x)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    from diffclf._arrays import rows

    for array in (x, x.astype(np.float64), mapped, x[100:200]):
        assert _native.rows_address(rows(array)) == array.ctypes.data


def test_frames_keep_their_names(x: Rows) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(x, columns=["phi", "psi"])
    model = diffclf.fit(frame, progress=False, **SMALL)
    assert model.columns == ["phi", "psi"]
    expected = model.log_density(x)
    assert np.array_equal(model.log_density(frame), expected)
    assert np.array_equal(model.log_density(frame[["psi", "phi"]].assign(extra=1.0)), expected)
    assert diffclf.Model.from_bytes(model.to_bytes()).columns == ["phi", "psi"]
    with pytest.raises(diffclf.InputError, match="no column 'psi'"):
        model.log_density(frame[["phi"]])


def test_two_endpoints_make_an_interpolant(x: Rows) -> None:
    end = diffclf.system("moons").sample(900, seed=2)
    model = diffclf.fit(x, end, objective="dsm+diffclf+velocity", progress=False, **SMALL)
    assert model.content["spec"]["process"]["kind"] == "linear"
    carried = model.sample(rows=end[:50])
    assert carried.shape == (50, 2)
    assert np.isfinite(carried).all()


def test_systems_need_no_rows() -> None:
    model = diffclf.fit(system="mog2", dim=3, progress=False, **SMALL)
    assert model.dim == 3
    assert "mog2" in repr(model)


class _Progress:
    def __init__(self) -> None:
        self.seen: list[tuple[Any, ...]] = []

    def begin(self, label: str, total: int, done: int) -> None:
        self.seen.append(("begin", label, total, done))

    def update(self, position: int, message: str) -> None:
        self.seen.append(("update", position, message))

    def note(self, text: str) -> None:
        self.seen.append(("note", text))

    def end(self, message: str) -> None:
        self.seen.append(("end", message))


def test_progress_is_told(x: Rows, capfd: pytest.CaptureFixture[str]) -> None:
    progress = _Progress()
    diffclf.fit(x, progress=progress, **SMALL)
    assert ("begin", "train", 50, 0) in progress.seen
    assert progress.seen[-2][0] == "end" or progress.seen[-1][0] in ("end", "note")
    assert not any("diffclf-" in str(entry) for entry in progress.seen), "a folder that is gone is not told of"
    diffclf.fit(x, progress=True, **SMALL)
    captured = capfd.readouterr()
    assert "train: 50 steps" in captured.err
    assert not captured.out


def test_callback_reads_losses_and_stops(x: Rows) -> None:
    seen: list[dict[str, Any]] = []

    def callback(entry: dict[str, Any]) -> bool:
        seen.append(entry)
        return len(seen) == 7

    model = diffclf.fit(x, progress=False, callback=callback, **SMALL)
    assert model.steps == 7
    assert [entry["step"] for entry in seen] == list(range(1, 8))
    assert all(np.isfinite(entry["loss"]["total"]) for entry in seen)
    assert {"dsm", "total"} <= set(seen[0]["loss"])

    def enough(entry: dict[str, Any]) -> None:
        raise StopIteration

    assert diffclf.fit(x, progress=False, callback=enough, **SMALL).steps == 1

    def broken(entry: dict[str, Any]) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        diffclf.fit(x, progress=False, callback=broken, **SMALL)


def test_an_interrupt_returns_the_model_so_far(x: Rows) -> None:
    settings = {**SMALL, "steps": 10_000_000, "score_steps": 0}
    timer = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    begin = time.monotonic()
    with pytest.warns(diffclf.InterruptedWarning, match="of 10000000"):
        model = diffclf.fit(x, progress=False, patience=0, **settings)
    assert time.monotonic() - begin < 20
    assert 0 < model.steps < 10_000_000
    assert np.isfinite(model.log_density(x)).all()


def test_other_threads_run_meanwhile(x: Rows) -> None:
    counts: list[int] = [0]
    done = threading.Event()

    def count() -> None:
        while not done.is_set():
            counts[0] += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    begin = time.monotonic()
    diffclf.fit(x, progress=False, **{**SMALL, "steps": 400})
    seconds = time.monotonic() - begin
    done.set()
    thread.join()
    # With the lock held it would not have counted at all.
    assert counts[0] > 20 * seconds


def test_every_setting_has_a_type() -> None:
    assert set(diffclf.Settings.__annotations__) == set(_native.setting_names()) - {"data", "end", "weights", "end_weights"}


def test_the_threads_do_not_matter(x: Rows, model: diffclf.Model) -> None:
    assert diffclf.fit(x, name="x.npy", threads=1, progress=False, **SMALL) == model
    before = model.log_density(x)
    diffclf.set_threads(1)
    try:
        assert diffclf.threads() == 1
        assert np.array_equal(model.log_density(x), before)
    finally:
        diffclf.set_threads(None)


def test_weights_make_another_law(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    low = rng.random(3000) < 0.5
    x = np.where(low, rng.normal(-2.0, 0.4, 3000), rng.normal(2.0, 0.6, 3000))[:, None]
    weights = np.where(low, 1.0, 4.0)
    small: dict[str, Any] = {"steps": 30, "score_steps": 30, "width": 16, "depth": 2, "progress": False}
    model = diffclf.fit(x, sample_weight=weights, **small)
    [found] = model.weight("x0 < 0", x=x, sample_weight=weights, samples=0)
    # A share of 0.2 with weights 1 and 4: the error of the ratio is below 0.008.
    assert found.data is not None and found.density is not None
    assert abs(found.data.mean - 0.2) < 4 * 0.008
    assert abs(found.density.mean - found.data.mean) < 0.03
    # The same from files, as the command has it.
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "w.npy", weights)
    again = diffclf.fit(tmp_path / "x.npy", sample_weight=tmp_path / "w.npy", name="x", **small)
    assert np.array_equal(again.log_density(x[:5]), model.log_density(x[:5]))
    for wrong, words in (([1.0], "1 numbers, expected 3000"), (-weights, "-"), (0 * weights, "3000 zeros"), (np.nan * weights, "NaN in row 0")):
        with pytest.raises(diffclf.InputError, match=words):
            diffclf.fit(x, sample_weight=wrong, **small)
    assert model.diagnose(x, sample_weight=weights, points=64, generate=0).judged_by.endswith("kept by their weights")
    with pytest.raises(diffclf.InputError, match="give them: sample_weight|weights"):
        model.diagnose(x, points=64, generate=0)


def test_questions_have_answers() -> None:
    rng = np.random.default_rng(6)
    x = np.stack([rng.normal(0.5, 1.0, 2000), rng.normal(-1.0, 0.5, 2000)], axis=1)
    model = diffclf.fit(x, base="mixture", steps=20, score_steps=20, width=16, depth=2, progress=False)
    line = model.surface("x0", x=x, bins=12, draws=20_000)
    assert line.free_energy.shape == (12,) and line.data is not None
    seen = line.data.share > 0.02
    gap = line.free_energy[seen] - line.data.free_energy[seen]
    # Errors of the data's bins of 40 rows and more: below 0.16 kT.
    assert np.all(np.abs(gap - gap.mean()) < 4 * 0.2)
    plane = model.surface(0, 1, bins=6, draws=20_000)
    assert plane.free_energy.shape == (6, 6) and plane.data is None and np.nanmin(plane.free_energy) == 0
    found = model.rows(x, 3)
    values = model.log_density(x)
    assert found.typical[0] == np.argmax(values) and found.unusual[0] == np.argmin(values)
    particles = diffclf.anneal(model, 2048, target_energy="0.5*(x0 - 0.7)^2 + 2*(x1 + 1)^2", levels=16)
    assert isinstance(particles, diffclf.Particles)
    mean = np.average(particles.points[:, 0], weights=particles.weights)
    # A Gaussian of mean 0.7 and variance 1; particles are worth a few hundred at least.
    assert abs(mean - 0.7) < 4 * (1 / 200) ** 0.5
