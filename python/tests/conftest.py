"""What the tests share: small data, a small model, the command."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import diffclf

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

#: Settings of seconds.
SMALL: dict[str, Any] = {
    "steps": 30,
    "score_steps": 20,
    "width": 16,
    "depth": 2,
    "features": 8,
    "grid_levels": 32,
    "batch": 128,
    "seed": 3,
}


@pytest.fixture(scope="session")
def x() -> NDArray[np.float32]:
    """Two modes of weights 2/3 and 1/3, moved off the origin and of unlike widths."""
    rows: NDArray[np.float32] = diffclf.system("two-modes", dim=2).sample(1500, seed=1) * np.array([1.0, 3.0], np.float32) + np.array([5.0, -2.0], np.float32)
    return rows


@pytest.fixture(scope="session")
def model(x: NDArray[np.float32]) -> diffclf.Model:
    """A small model of them."""
    return diffclf.fit(x, name="x.npy", progress=False, **SMALL)


@pytest.fixture(scope="session")
def command() -> Callable[..., subprocess.CompletedProcess[str]]:
    """The command of this installation."""

    def run(*arguments: object, cwd: Path | None = None, code: int = 0) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, "-m", "diffclf", *map(str, arguments)]
        done = subprocess.run(line, capture_output=True, text=True, cwd=cwd, check=False)
        assert done.returncode == code, done.stderr
        return done

    return run


def flags(settings: dict[str, Any]) -> list[str]:
    """Settings as the command takes them."""
    return [part for name, value in settings.items() for part in (f"--{name.replace('_', '-')}", str(value))]
