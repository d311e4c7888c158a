"""``fit`` and ``train``: from rows to a model."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _native
from ._arrays import ArrayLike, is_path, names_of, rows, scratch
from ._model import Model, _restored, load, weight_array
from ._progress import ProgressLike, progress_of
from ._settings import Settings, settings_text
from .errors import InputError, InterruptedWarning, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Unpack

#: A year: a training in memory keeps no checkpoints.
_NEVER = 3.15e7


def fit(
    x: ArrayLike = None,
    end: ArrayLike = None,
    *,
    sample_weight: ArrayLike = None,
    end_weight: ArrayLike = None,
    name: str | None = None,
    end_name: str | None = None,
    threads: int | None = None,
    progress: ProgressLike = True,
    callback: Callable[[dict[str, Any]], object] | None = None,
    **settings: Unpack[Settings],
) -> Model:
    """Learns the density of rows.

    Parameters
    ----------
    x
        Rows to learn from, the first axis counts them: an array of any order (float32 and float64 in C order are read in place, memory
        maps too), a pandas frame, whose column names the model remembers, or the path of a .npy file. Left out if ``system=`` names a
        built-in one.
    end
        Rows of the second endpoint, for an interpolant.
    sample_weight, end_weight
        How much each row counts: not negative, one number for each, or the path of a .npy file. Rows are drawn in proportion to them.
    name, end_name
        Names of the data in the model's record. With the name of a .npy file the model is that of the command, to the last byte.
    threads
        Threads of this training; the result does not depend on it.
    progress
        Whether to show progress and the time left, or an object that does.
    callback
        Called after every step with its figures: ``step``, ``stage``, ``loss`` (a dict with ``total``), ``gradient_norm``, ``rate``,
        ``seconds``, and sometimes ``held_out``. If it returns something true, or raises StopIteration, the training ends there.
    **settings
        See :class:`diffclf.Settings`. Defaults are those of the command ``diffclf train``.

    Returns
    -------
    Model
        The model. Ctrl-C ends the training, and the model so far is returned with a warning.

    Examples
    --------
    >>> import diffclf
    >>> x = diffclf.system("two-modes", dim=2).sample(2000, seed=1)
    >>> model = diffclf.fit(x, steps=50, score_steps=50, width=32, depth=2, progress=False)
    >>> model.log_density(x[:3]).shape
    (3,)
    >>> model.sample(5, seed=7).shape
    (5, 2)
    """
    with scratch() as folder:
        out = os.path.join(folder, "fit")
        request = {"out": out, "resume": False, "force": False, "checkpoint_every": _NEVER, "hidden": folder}
        _run("fit", request, (x, name, sample_weight), (end, end_name, end_weight), threads, progress, callback, dict(settings))
        # The folder is that of the first process.
        model = load(out) if _native.company_leads() else None
    data = _native.company_bytes(b"" if model is None else model.to_bytes())
    if model is None:
        return _restored(data, [])
    model._path = None
    return model


def train(
    x: ArrayLike = None,
    out: str | os.PathLike[str] = "",
    end: ArrayLike = None,
    *,
    sample_weight: ArrayLike = None,
    end_weight: ArrayLike = None,
    resume: bool = False,
    force: bool = False,
    checkpoint_every: float = 10.0,
    report: bool = True,
    name: str | None = None,
    end_name: str | None = None,
    threads: int | None = None,
    progress: ProgressLike = True,
    callback: Callable[[dict[str, Any]], object] | None = None,
    **settings: Unpack[Settings],
) -> Model:
    """Learns the density of rows in a run folder, which the command ``diffclf`` and this function share.

    The folder holds settings, log, checkpoint, model and a page about the run. A run that was stopped in any way continues with
    ``resume=True``, here or with ``diffclf train -o FOLDER --resume``, and ends with the bytes of an uninterrupted one.

    Parameters
    ----------
    x, end, sample_weight, end_weight, name, end_name, threads, progress, callback, **settings
        As in :func:`fit`. With ``resume`` and rows that came from a file, ``x`` may be left out.
    out
        The run folder.
    resume
        Continue the run in the folder, or start it if there is none.
    force
        Delete a run that is in the folder already.
    checkpoint_every
        Seconds between two checkpoints.
    report
        Whether to write ``report.html`` at the end.

    Examples
    --------
    >>> import diffclf, os, tempfile
    >>> x = diffclf.system("two-modes", dim=2).sample(2000, seed=1)
    >>> out = os.path.join(tempfile.mkdtemp(), "run")
    >>> model = diffclf.train(x, out, steps=30, score_steps=30, width=32, depth=2, report=False, progress=False)
    >>> sorted(os.listdir(out))[1:4]
    ['checkpoint.safetensors', 'config.toml', 'data.sha256']
    """
    folder = os.fspath(out)
    if not folder:
        raise UsageError("train() needs a run folder; give out='runs/NAME', or use fit() for a model without one")
    request = {"out": folder, "resume": resume, "force": force, "checkpoint_every": checkpoint_every, "hidden": None}
    finished = _run("train", request, (x, name, sample_weight), (end, end_name, end_weight), threads, progress, callback, dict(settings))
    model = load(folder)
    if report and finished:
        try:
            shown: dict[str, Any] = {"x": None if is_path(x) else x, "end": None if is_path(end) else end}
            weights = {"sample_weight": sample_weight, "end_weight": end_weight}
            shown.update({key: w for (key, w), rows in zip(weights.items(), shown.copy().values()) if rows is not None})
            model.report(os.path.join(folder, "report.html"), force=True, **shown)
        except Exception as error:
            warnings.warn(f"the model is saved, but its report could not be written: {error}", stacklevel=2)
    return model


def _given(x: ArrayLike, name: str | None, weights: ArrayLike, what: str) -> dict[str, Any]:
    """Rows of an endpoint as the native half takes them."""
    weight = weight_array(weights, {"x": "sample_weight", "end": "end_weight"}[what])
    if is_path(x):
        return {"array": None, "path": os.fspath(x), "name": "", "columns": [], "weights": weight}
    file = getattr(x, "filename", None)
    if name is None:
        name = Path(os.fspath(file)).name if file is not None and is_path(file) else what
    return {"array": rows(x, what), "path": None, "name": name, "columns": names_of(x), "weights": weight}


def _run(
    function: str,
    request: dict[str, Any],
    start: tuple[ArrayLike, str | None, ArrayLike],
    end: tuple[ArrayLike, str | None, ArrayLike],
    threads: int | None,
    progress: ProgressLike,
    callback: Callable[[dict[str, Any]], object] | None,
    settings: dict[str, Any],
) -> bool:
    """Trains; returns whether it came to its end."""
    if callback is not None and not callable(callback):
        raise UsageError(f"callback is {callback!r}, expected a function of one argument")
    ends = [("x", *start, "system"), ("end", *end, "end_system")]
    for what, x, _, weights, system in ends:
        if x is None and weights is not None and not request["resume"]:
            raise InputError(f"weights are given for {what}, but no rows; weights belong to rows that are given")
        if x is not None and settings.get(system) is not None:
            raise InputError(f"both {what} and {system} are given, expected one of them")
    given = [end for end in ends if end[1] is not None]
    request["rows"] = []
    if all(is_path(x) and (weights is None or is_path(weights)) for _, x, _, weights, _ in given):
        for what, x, _, weights, _ in given:
            settings[{"x": "data", "end": "end"}[what]] = os.fspath(x)
            if weights is not None:
                settings[{"x": "weights", "end": "end_weights"}[what]] = os.fspath(weights)
    else:
        if settings.get("system") is not None or settings.get("end_system") is not None:
            raise InputError("rows and a built-in system are joined by rows of both; draw them with diffclf.system(...).sample(n)")
        if start[0] is None:
            raise InputError("end is given without x, expected rows of both endpoints")
        request["rows"] = [_given(x, name, weights, what) for what, x, name, weights, _ in given]
    request["settings"] = settings_text(settings, function)
    request["threads"] = threads
    request["progress"] = progress_of(progress)
    request["callback"] = callback
    how, step, total = _native.train_run(request)
    if how == "interrupted":
        warnings.warn(
            f"interrupted after step {step} of {total}; the model so far is returned", InterruptedWarning, stacklevel=3
        )
    return how == "finished"
