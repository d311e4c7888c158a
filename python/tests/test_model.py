"""Models at work."""

from __future__ import annotations

import concurrent.futures
import copy
import multiprocessing
import os
import pickle
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import diffclf

from .conftest import SMALL

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    Rows = NDArray[np.float32]


def test_log_density_is_minus_energy_plus_f(x: Rows, model: diffclf.Model) -> None:
    for t in (None, 0.3):
        assert np.allclose(model.log_density(x, t), model.free_energy(t) - model.energy(x, t), atol=1e-9)
    times = np.linspace(0.1, 0.9, len(x))
    each = model.log_density(x, times)
    assert np.allclose(each[7], model.log_density(x[7:8], times[7])[0], atol=1e-4)
    assert model.free_energy(model.times).shape == model.times.shape


def test_derivatives_are_derivatives(x: Rows, model: diffclf.Model) -> None:
    points = x[:20].astype(np.float64)
    h = 1e-2 * points.std(axis=0)
    for column in range(2):
        step = np.zeros(2)
        step[column] = h[column]
        slope = (model.log_density(points + step, 0.3) - model.log_density(points - step, 0.3)) / (2 * h[column])
        assert np.allclose(model.score(points, 0.3)[:, column], slope, rtol=2e-2, atol=2e-2)
        # Not along an axis alone: the product is with a vector.
        along = np.tile(step + 0.3 * h, (20, 1))
        bend = (model.score(points + along, 0.3) - model.score(points - along, 0.3)) / 2
        scale = np.abs(bend).max()
        assert np.allclose(model.hessian_product(points, along, 0.3), bend, atol=2e-2 * scale)


def test_shapes_follow_the_points(x: Rows, model: diffclf.Model) -> None:
    assert np.isscalar(model.log_density(x[0])) or model.log_density(x[0]).shape == ()
    assert model.score(x[0]).shape == (2,)
    assert model.score(x[:5]).shape == (5, 2)
    assert model.score(x[:5].reshape(5, 2, 1)).shape == (5, 2, 1)
    assert np.allclose(model.log_density(x[:3].tolist()), model.log_density(x[:3]))
    assert np.allclose(model.log_density(x[:3].astype(np.int64)), model.log_density(np.trunc(x[:3])))
    one = diffclf.fit(x[:, 0], progress=False, **SMALL)
    assert one.dim == 1
    assert one.log_density(x[:4, 0]).shape == (4,)


def test_copies_are_the_model(x: Rows, model: diffclf.Model, tmp_path: Path) -> None:
    for other in (pickle.loads(pickle.dumps(model)), copy.copy(model), copy.deepcopy(model), diffclf.Model.from_bytes(model.to_bytes())):
        assert other == model
        assert hash(other) == hash(model)
        assert np.array_equal(other.log_density(x), model.log_density(x))
    assert pickle.loads(pickle.dumps(model)).history == model.history
    path = tmp_path / "m.safetensors"
    model.save(path)
    assert diffclf.load(path) == model
    with pytest.raises(diffclf.FileError, match="force=True"):
        model.save(path)
    model.save(path, force=True)
    assert "2 columns" in repr(model)
    assert "x.npy" in repr(model)


def test_samples_do_not_depend_on_their_number(model: diffclf.Model) -> None:
    many = model.sample(200, seed=4)
    assert many.dtype == np.float64
    assert np.array_equal(model.sample(50, seed=4), many[:50])
    points, values = model.sample(30, method="flow", log_density=True, steps=16)
    assert values.shape == (30,)
    assert np.isfinite(points).all()
    for method in ("ddim", "reverse-sde", "flow"):
        assert model.sample(10, method=method, steps=8).shape == (10, 2)


def test_verdicts_are_objects(x: Rows, model: diffclf.Model, tmp_path: Path) -> None:
    fresh = diffclf.system("two-modes", dim=2).sample(1500, seed=9) * np.array([1.0, 3.0], np.float32) + np.array([5.0, -2.0], np.float32)
    found = model.diagnose(fresh, points=512, generate=256)
    assert found.verdict in ("pass", "warn", "fail")
    assert bool(found) == (found.verdict != "fail")
    assert found[found.checks[0].name] is found.checks[0]
    assert found.checks[0].name in found._repr_html_()
    assert "verdict:" in str(found)
    # Rows of the training are known: the held-out ones judge.
    own = model.diagnose(x, points=512, generate=0)
    assert "not trained on" in own.judged_by
    page = model.report(tmp_path / "page.html", x, points=256)
    assert "<iframe" in page._repr_html_()
    assert page.path.stat().st_size > 10_000


def test_evaluate_compares_with_the_exact_answer() -> None:
    model = diffclf.fit(system="two-modes", progress=False, **{**SMALL, "steps": 150, "score_steps": 150})
    found = model.evaluate(levels=8, samples=256)
    assert found.systems == ("two-modes",)
    assert found.median_r2 > 0.5 and 0 < found.ess <= 1
    assert abs(found.log_likelihood_lead.mean - (found.log_likelihood.mean - found.exact_log_likelihood.mean)) < 1e-9
    assert "two-modes" in found._repr_html_()


def test_threads_share_a_model(x: Rows, model: diffclf.Model) -> None:
    expected = model.score(x)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for values in pool.map(lambda _: model.score(x), range(40)):
            assert np.array_equal(values, expected)


def _in_child(model: diffclf.Model, x: Rows, queue: Any) -> None:
    queue.put(model.log_density(x))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_computes(x: Rows, model: diffclf.Model) -> None:
    expected = model.log_density(x)
    context: Any = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_in_child, args=(model, x, queue))
    child.start()
    values = queue.get(timeout=60)
    child.join(60)
    assert child.exitcode == 0
    assert np.array_equal(values, expected)


def test_the_command_is_the_program() -> None:
    done = subprocess.run([sys.executable, "-m", "diffclf", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"diffclf {diffclf.__version__}\n"
    wrong = subprocess.run([sys.executable, "-m", "diffclf", "train", "--stepz", "3"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 2
    assert "--stepz" in wrong.stderr
