"""Pictures: each returns its axes and draws what it says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import diffclf
from diffclf import free_energy, plot

from .conftest import SMALL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

matplotlib: Any = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


def test_densities(x: NDArray[np.float32], model: diffclf.Model) -> None:
    for kind in ("density", "energy"):
        ax = plot.density(model, x, kind=kind, points=20)
        assert ax.get_xlabel() == "column 0"
        assert ax.collections
    assert plot.density(model, t=0.3, points=20, limits=[(3, 7), (-9, 5)]).get_xlim() == (3.0, 7.0)
    assert plot.density(model & model, x, points=20) is not None
    one = diffclf.fit(x[:, 0], progress=False, **SMALL)
    assert plot.density(one, x[:, 0], points=20).lines
    with pytest.raises(diffclf.InputError, match="one or two"):
        plot.density(diffclf.system("mog2", dim=3))


def test_training_and_verdict(x: NDArray[np.float32], model: diffclf.Model) -> None:
    labels = [text.get_text() for text in plot.losses(model).get_legend().get_texts()]
    assert "dsm" in labels
    assert plot.calibration(model.diagnose(x, points=256, generate=0)).get_ylabel() == "share of cases"
    with pytest.raises(diffclf.InputError, match="no history"):
        plot.losses(diffclf.Model.from_bytes(model.to_bytes()))


def test_samples_and_overlap(x: NDArray[np.float32], model: diffclf.Model) -> None:
    import matplotlib.pyplot as plt

    ax = plt.subplots()[1]
    assert plot.samples(model.sample(50), x, ax=ax) is ax
    assert len(ax.collections) == 2
    rng = np.random.default_rng(0)
    position = rng.normal(size=300)
    energies = 0.5 * np.array([[1.0], [2.0]]) * position**2
    found = free_energy.mbar(energies, [150, 150])
    assert plot.overlap(found).get_xlabel() == "state"
    assert plot.surface(found.surface(position, 8)).get_ylabel() == "free energy (kT)"
