"""Bad input gives an exception of the family that says what to do; never a panic, never a crash."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import diffclf
from diffclf import _native, free_energy

from .conftest import SMALL

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Rows = NDArray[np.float32]


def _broken(value: float) -> Rows:
    rows = diffclf.system("two-modes").sample(200)
    rows[17, 1] = value
    return rows


BAD_ROWS: list[tuple[Any, str]] = [
    (_broken(np.nan), "row 17, column 1"),
    (_broken(np.inf), "row 17, column 1"),
    (np.full((50, 2), 1e300) * np.arange(1, 51)[:, None], "finite 32-bit"),
    (np.zeros((100, 2)), "same value"),
    (np.zeros((0, 2)), "at least one row"),
    (np.zeros((5, 0)), "at least one row"),
    (3.0, "single number"),
    (np.array([[1, "a"], [2, "b"]], dtype=object), "Python objects"),
    ([[1.0, 2.0], [3.0]], "array of numbers"),
    (np.array(["a", "b"]), "real numbers"),
    (np.ones((4, 2)) + 1j, "real numbers"),
    (np.ma.masked_array(np.ones((4, 2)), mask=True), "masked"),
    ({"a": 1}, "Python objects"),
    (object(), "Python objects"),
    ("no-such-file.npy", "no-such-file.npy"),
]


@pytest.mark.parametrize(("rows", "words"), BAD_ROWS)
def test_rows(rows: Any, words: str) -> None:
    with pytest.raises(diffclf.DiffclfError, match=words):
        diffclf.fit(rows, progress=False, **SMALL)


BAD_SETTINGS: list[tuple[dict[str, Any], str]] = [
    ({"stepz": 3}, "did you mean 'steps'"),
    ({"batch": "many"}, "batch is \"many\""),
    ({"batch": -1}, "batch is -1"),
    ({"steps": 2.5}, "steps is 2.5"),
    ({"rate": float("nan")}, "rate is nan"),
    ({"rate": -1.0}, "rate"),
    ({"process": "vq"}, "vq"),
    ({"process": {"kind": "vp", "beta": 3}}, "beta"),
    ({"objective": "dsm+nothing"}, "nothing"),
    ({"seed": -1}, "seed is -1"),
    ({"width": [3]}, "width"),
    ({"width": object()}, "setting"),
    ({"system": "mog40"}, "both x and system"),
    ({"threads": 0}, "threads is 0"),
    ({"callback": 3}, "callback is 3"),
]


@pytest.mark.parametrize(("settings", "words"), BAD_SETTINGS)
def test_settings(x: Rows, settings: dict[str, Any], words: str) -> None:
    with pytest.raises(diffclf.DiffclfError, match=words):
        diffclf.fit(x, progress=False, **settings)


def test_nothing_and_folders(x: Rows) -> None:
    with pytest.raises(diffclf.InputError, match="give rows as x"):
        diffclf.fit(progress=False)
    with pytest.raises(diffclf.InputError, match="without x"):
        diffclf.fit(None, x, progress=False)
    with pytest.raises(diffclf.UsageError, match="run folder"):
        diffclf.train(x, progress=False)
    with pytest.raises(diffclf.FileError):
        diffclf.load("no-such-model")
    with pytest.raises(diffclf.InputError):
        diffclf.Model.from_bytes(b"nothing")


BAD_CALLS: list[tuple[Callable[[Any], Any], str]] = [
    (lambda m: m.log_density(np.zeros((3, 5))), "5 coordinates"),
    (lambda m: m.log_density([1.0, 2.0, 3.0]), "1 coordinates"),
    (lambda m: m.log_density([[1.0, np.nan]]), "row 0, column 1"),
    (lambda m: m.log_density([[1.0, 1e300]]), "32-bit"),
    (lambda m: m.score(np.zeros((3, 2)), t=7.0), "t is 7"),
    (lambda m: m.score(np.zeros((3, 2)), t=[0.1, 0.2]), "t has 2 values for 3 points"),
    (lambda m: m.score(np.zeros((3, 2)), t="late"), "t is 'late'"),
    (lambda m: m.score(np.zeros((3, 2)), t=np.nan), "t is NaN"),
    (lambda m: m.log_density(np.zeros((3, 2)), by="magic"), "by is 'magic'"),
    (lambda m: m.free_energy(9.0), "t is 9"),
    (lambda m: m.sample(0), "n is 0"),
    (lambda m: m.sample(-3), "n is -3"),
    (lambda m: m.sample(2.5), "n is 2.5"),
    (lambda m: m.sample(10**15), "fit in memory"),
    (lambda m: m.sample(10**30), "n is 1000"),
    (lambda m: m.sample(), "number of samples"),
    (lambda m: m.sample(3, method="magic"), "method is 'magic'"),
    (lambda m: m.sample(3, eta=0.5, method="flow"), "eta belongs to ddim"),
    (lambda m: m.sample(3, rows=np.zeros((3, 2))), "rows belongs to interpolants"),
    (lambda m: m.sample(3, integrator="magic", method="reverse-sde"), "integrator is 'magic'"),
    (lambda m: m.sample(3, seed="now"), "seed is 'now'"),
    (lambda m: m.evaluate("magic"), "magic"),
    (lambda m: m.evaluate("moons"), "not known exactly"),
    (lambda m: m.diagnose(np.zeros((30, 5))), "5 columns"),
    (lambda m: m.diagnose(), "give them: x"),
    (lambda m: m.hessian_product(np.zeros((3, 2)), np.zeros((2, 2))), "directions"),
    (lambda m: diffclf.system("magic"), "magic"),
    (lambda m: diffclf.system("moons", dim=3), "plane"),
    (lambda m: diffclf.system("mog2", dim=0), "dim is 0"),
    (lambda m: diffclf.system("mog2").sample(10**16), "fit in memory"),
    (lambda m: diffclf.set_threads(0), "threads is 0"),
    (lambda m: free_energy.bar([1.0], []), "at least one row"),
    (lambda m: free_energy.bar([np.nan, 1.0], [1.0, 2.0]), "NaN"),
    (lambda m: free_energy.mbar(np.zeros((2, 5)), [3, 3]), "6 in sum"),
    (lambda m: free_energy.mbar(np.zeros((2, 5)), [3.5, 1.5]), "counts"),
    (lambda m: free_energy.mbar(np.zeros(5), [5]), "two axes"),
    (lambda m: free_energy.ti(np.zeros((3, 4)), [0.0, 0.5]), "lambdas"),
    (lambda m: free_energy.learn(m), "interpolant"),
]


@pytest.mark.parametrize(("call", "words"), BAD_CALLS)
def test_calls(model: diffclf.Model, call: Callable[[diffclf.Model], Any], words: str) -> None:
    with pytest.raises(diffclf.DiffclfError, match=words) as caught:
        call(model)
    assert "--" not in str(caught.value), "messages name arguments, not flags"
    assert "panicked" not in str(caught.value)


def test_a_fault_inside_is_an_exception_with_words(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(diffclf.InternalError, match="job 17 was made to fail"):
        _native.fail_inside()
    captured = capfd.readouterr()
    assert not captured.err and not captured.out
    # The threads are still there.
    with pytest.raises(diffclf.InternalError):
        _native.fail_inside()


def test_the_family() -> None:
    for error in (diffclf.InputError, diffclf.UsageError, diffclf.FileError, diffclf.NumericalError, diffclf.InternalError):
        assert issubclass(error, diffclf.DiffclfError)
    assert issubclass(diffclf.InputError, ValueError)
    assert issubclass(diffclf.UsageError, TypeError)
    assert issubclass(diffclf.FileError, OSError)
