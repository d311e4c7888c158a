"""Pictures on matplotlib: densities, losses, overlap, calibration, samples beside data. Each function returns the axes it drew on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ._arrays import ArrayLike, rows
from .errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ._model import Model
    from ._results import Diagnosis
    from .free_energy import Mbar, Surface

__all__ = ["calibration", "density", "losses", "overlap", "samples", "surface"]

#: One hue for what is learned, a grey for what is given.
_LEARNED, _GIVEN = "#2b6cb0", "#8a8a8a"


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as missing:
        raise ImportError("diffclf.plot needs matplotlib; install it with: pip install matplotlib") from missing
    return plt.subplots()[1]


def _names(model: Any) -> list[str]:
    names = list(getattr(model, "columns", []))
    return names or [f"column {k}" for k in range(model.dim)]


def density(
    model: Any,
    x: ArrayLike = None,
    *,
    t: float | None = None,
    limits: Sequence[tuple[float, float]] | None = None,
    points: int = 120,
    kind: str = "density",
    depth: float = 8.0,
    ax: Any = None,
) -> Any:
    """The density of a model or composition of one or two columns, over the range of ``x`` or ``limits``.

    ``kind`` is density, or energy: then it is the free-energy surface ``-log p`` in kT above its lowest point, down to ``depth``.

    Examples
    --------
    >>> import diffclf
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from diffclf import plot
    >>> system = diffclf.system("two-modes")
    >>> plot.density(system, system.sample(500)).get_xlabel()
    'column 0'
    """
    if kind not in ("density", "energy"):
        raise InputError(f"kind is {kind!r}, expected 'density' or 'energy'")
    if model.dim > 2:
        raise InputError(f"the model has {model.dim} columns, expected one or two; draw samples of it with plot.samples(model.sample(n), pair=(0, 1))")
    if limits is None:
        if x is None:
            if not hasattr(model, "sample"):
                raise InputError("give x, whose range is drawn, or limits=[(low, high), ...]")
            x = model.sample(2000)
            x = getattr(x, "points", x)
        values = rows(x).reshape(-1, model.dim)
        low, high = values.min(axis=0), values.max(axis=0)
        limits = [(float(a - 0.1 * (b - a)), float(b + 0.1 * (b - a))) for a, b in zip(low, high, strict=True)]
    ax = _axes(ax)
    grids = [np.linspace(low, high, points) for low, high in limits]
    mesh = np.stack([part.ravel() for part in np.meshgrid(*grids)], axis=1)
    log_density = model.log_density(mesh) if t is None else model.log_density(mesh, t)
    shown = np.exp(log_density) if kind == "density" else np.minimum(np.max(log_density) - log_density, depth)
    names = _names(model)
    label = "density" if kind == "density" else "free energy (kT)"
    ax.set_xlabel(names[0])
    if model.dim == 1:
        ax.plot(grids[0], shown, color=_LEARNED)
        ax.set_ylabel(label)
        if x is not None and kind == "density":
            ax.hist(rows(x).ravel(), bins=60, density=True, color=_GIVEN, alpha=0.4)
        return ax
    picture = ax.contourf(grids[0], grids[1], shown.reshape(points, points), levels=24, cmap="viridis" if kind == "density" else "viridis_r")
    ax.set_ylabel(names[1])
    ax.figure.colorbar(picture, ax=ax, label=label)
    return ax


def losses(model: Model, *, ax: Any = None) -> Any:
    """Losses of the training over its steps, those on held-out rows too, as far as they were logged."""
    if not model.history:
        raise InputError("the model has no history: it was read from a file without its log; load its run folder instead")
    ax = _axes(ax)
    terms = sorted({name for entry in model.history for name in entry["loss"]} - {"total"})
    for name in terms:
        seen = [(entry["step"], entry["loss"][name]) for entry in model.history if name in entry["loss"]]
        ax.plot(*zip(*seen, strict=True), label=name, linewidth=1)
    held = [(entry["step"], entry["held_out"]["total"]) for entry in model.history if "held_out" in entry]
    if held:
        ax.plot(*zip(*held, strict=True), label="held out, total", color="black", linewidth=1, linestyle="--")
    starts = [entry["step"] for before, entry in zip(model.history, model.history[1:], strict=False) if entry["stage"] != before["stage"]]
    for step in starts:
        ax.axvline(step, color=_GIVEN, linewidth=0.8)
    ax.set_xlabel("step")
    ax.set_ylabel("loss")
    ax.legend(frameon=False)
    return ax


def overlap(mbar: Mbar, *, ax: Any = None) -> Any:
    """The overlap matrix of MBAR's states."""
    ax = _axes(ax)
    matrix = mbar.overlap()
    picture = ax.imshow(matrix, cmap="Blues", vmin=0, vmax=1)
    for i, row in enumerate(matrix):
        for j, value in enumerate(row):
            if value >= 0.005:
                ax.text(j, i, f"{value:.2f}", ha="center", va="center", color="white" if value > 0.5 else "black")
    ax.set_xlabel("state")
    ax.set_ylabel("state")
    ax.figure.colorbar(picture, ax=ax, label="overlap")
    return ax


def surface(found: Surface, *, ax: Any = None) -> Any:
    """A free-energy surface along a coordinate, with its error bars."""
    ax = _axes(ax)
    ax.errorbar(found.centres, found.free_energy, yerr=found.error, color=_LEARNED, marker="o", markersize=3, linewidth=1, capsize=2)
    ax.set_xlabel("coordinate")
    ax.set_ylabel("free energy (kT)")
    return ax


def calibration(diagnosis: Diagnosis, *, ax: Any = None) -> Any:
    """When the model says a point comes from a noise level with probability p, is that so in a share p of cases?"""
    ax = _axes(ax)
    bins = diagnosis.figures["calibration"]["bins"]
    ax.plot([0, 1], [0, 1], color=_GIVEN, linewidth=0.8)
    predicted, observed, errors = ([part[name] for part in bins] for name in ("predicted", "observed", "error"))
    ax.errorbar(predicted, observed, yerr=errors, color=_LEARNED, marker="o", markersize=4, linestyle="none", capsize=2)
    ax.set_xlabel("predicted probability of the level")
    ax.set_ylabel("share of cases")
    return ax


def samples(new: ArrayLike, data: ArrayLike = None, *, pair: tuple[int, int] = (0, 1), most: int = 5000, ax: Any = None) -> Any:
    """New samples beside data: two columns as points, or one as histograms."""
    ax = _axes(ax)
    parts = [("data", data, _GIVEN), ("samples", new, _LEARNED)]
    for name, part, colour in parts:
        if part is None:
            continue
        values = rows(part, name)
        values = values.reshape(len(values), -1)
        if values.shape[1] == 1:
            ax.hist(values[:, 0], bins=60, density=True, alpha=0.5, color=colour, label=name)
        else:
            if max(pair) >= values.shape[1]:
                raise InputError(f"pair is {pair}, but {name} has {values.shape[1]} columns, counted from 0")
            ax.scatter(values[:most, pair[0]], values[:most, pair[1]], s=2, alpha=0.5, color=colour, label=name, linewidths=0)
    ax.legend(frameon=False, markerscale=4)
    return ax
