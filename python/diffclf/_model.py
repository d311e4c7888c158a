"""``Model``: a learned density at every noise level."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _native
from ._arrays import ArrayLike, is_path, points, rows, scratch
from ._energies import Density
from ._progress import ProgressLike, progress_of
from ._results import Check, Diagnosis, Evaluation, Extremes, RegionWeight, Surface, estimate, surface_of
from .errors import FileError, InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ._arrays import Floats


class Model(Density):
    """A learned density, at every noise level of its path: ``log p(x, t) = -U(x, t) + F(t)``.

    Made by :func:`diffclf.fit`, :func:`diffclf.train` or :func:`diffclf.load`. It never changes, threads may share it, and it can be
    pickled and copied. Everything is in the coordinates of the data; energies are in kT. ``t`` is a time of the path, from the data
    (the smallest, the default) to noise: one number, or one for each point.

    Examples
    --------
    >>> import diffclf
    >>> x = diffclf.system("two-modes", dim=2).sample(2000, seed=1)
    >>> model = diffclf.fit(x, steps=50, score_steps=50, width=32, depth=2, progress=False)
    >>> model
    <diffclf.Model: 2 columns, vp process, mlp network, 100 steps on x (2000 rows)>
    >>> import numpy as np
    >>> u, f = model.energy(x[:4]), model.free_energy()
    >>> np.allclose(model.log_density(x[:4]), f - u)
    True
    """

    __slots__ = ("_content", "_native", "_path", "history")

    def __init__(self, native: Any, history: Sequence[dict[str, Any]] = (), path: Path | None = None) -> None:
        self._native = native
        self._content: dict[str, Any] | None = None
        self._path = path
        #: Figures of the training as far as they were logged: step, stage, loss, held_out, gradient_norm, rate, seconds.
        self.history: list[dict[str, Any]] = list(history)

    def _leaf(self) -> Any:
        return self._native

    # What it is

    @property
    def content(self) -> dict[str, Any]:
        """Definition and record, as in the model file: spec, standardisation, record."""
        if self._content is None:
            content: dict[str, Any] = self._native.content()
            self._content = content
        return self._content

    @property
    def dim(self) -> int:
        """Number of columns."""
        return int(self._native.dim)

    @property
    def columns(self) -> list[str]:
        """Names of the columns, if the rows came with any."""
        data = self.content["record"]["data"]
        return list(data[0].get("columns", [])) if data else []

    @property
    def times(self) -> NDArray[np.float64]:
        """The levels of the path, from the data to noise."""
        times: NDArray[np.float64] = self._native.times
        return times

    @property
    def steps(self) -> int:
        """Steps of training that were done."""
        return int(self.content["record"]["steps"])

    def __repr__(self) -> str:
        spec, record = self.content["spec"], self.content["record"]
        data = " and ".join(
            f"{part['name']} ({part['rows']} rows)" if part["rows"] else part["name"] for part in record["data"]
        )
        columns = "1 column" if self.dim == 1 else f"{self.dim} columns"
        return (
            f"<diffclf.Model: {columns}, {spec['process']['kind']} process, {spec['network']['kind']} network, "
            f"{record['steps']} steps on {data}>"
        )

    # Values at points

    def _evaluate(self, what: str, x: ArrayLike, t: ArrayLike) -> Any:
        array, single = points(x, self._native.dim, "x", () if isinstance(x, np.ndarray) else self.columns)
        values = self._native.evaluate_points(what, array, None if t is None else _times(t))
        return values[0] if single else values

    def log_density(self, x: ArrayLike, t: ArrayLike = None, *, by: str = "energy") -> Any:
        """log p(x, t), one number per point.

        ``by="flow"`` takes it along the probability flow instead, from scores alone: independent of U and F, always normalised, slow, for
        diffusions. Where both differ, one of them is wrong.
        """
        if by not in ("energy", "flow"):
            raise InputError(f"by is {by!r}, expected 'energy' or 'flow'")
        return self._evaluate("flow" if by == "flow" else "log_density", x, t)

    def energy(self, x: ArrayLike, t: ArrayLike = None) -> Any:
        """U(x, t) in kT, one number per point."""
        return self._evaluate("energy", x, t)

    def score(self, x: ArrayLike, t: ArrayLike = None) -> Any:
        """The gradient of log p in x, in the shape of x."""
        return self._evaluate("score", x, t)

    def time_score(self, x: ArrayLike, t: ArrayLike = None) -> Any:
        """The derivative of log p in time, one number per point."""
        return self._evaluate("time_score", x, t)

    def hessian_product(self, x: ArrayLike, directions: ArrayLike, t: float | None = None) -> Any:
        """``H e`` with H the Hessian of log p at each point and one direction ``e`` for each, in the shape of x."""
        array, single = points(x, self._native.dim, "x", () if isinstance(x, np.ndarray) else self.columns)
        along, _ = points(directions, self._native.dim, "directions")
        values = self._native.hessian_product(array, along, t)
        return values[0] if single else values

    def free_energy(self, t: ArrayLike = None) -> Any:
        """F(t), the log-normaliser: ``log p = -U + F``."""
        if t is None:
            return float(self._native.free_energy([float(self.times[0])])[0])
        values = self._native.free_energy(_times(t))
        return float(values[0]) if np.ndim(t) == 0 else values

    # Samples

    def sample(
        self,
        n: int | None = None,
        *,
        method: str | None = None,
        seed: int = 0,
        steps: int | None = None,
        eta: float | None = None,
        integrator: str | None = None,
        tolerance: float | None = None,
        log_density: bool = False,
        probes: int | None = None,
        rows: ArrayLike = None,
        towards: str | None = None,
        velocity: str | None = None,
        g: float | str | None = None,
        progress: ProgressLike = False,
    ) -> Any:
        """New samples: those of ``diffclf sample`` with the same seed. The first 100 of 10000 are those of ``n=100``.

        Parameters
        ----------
        n
            How many; for an interpolant one for each of ``rows`` if left out.
        method
            ddim (the default of a diffusion), reverse-sde, flow (the default of an interpolant) or interpolant-sde.
        steps, eta, integrator, tolerance
            Steps from noise to data; share of fresh noise of ddim; steps of reverse-sde; error of a step of flow.
        log_density
            Return the pair of samples and their log-densities, with ``method="flow"``. ``probes`` random directions make it faster in
            many dimensions.
        rows, towards, velocity, g
            For an interpolant: rows of the other endpoint to start from, endpoint to go to (start or end), learned or exact velocity,
            noise of interpolant-sde.
        """
        with scratch() as folder:
            request = {
                "n": _whole(n, "n"),
                "method": method,
                "steps": _whole(steps, "steps"),
                "eta": eta,
                "integrator": integrator,
                "tolerance": tolerance,
                "log_density": log_density,
                "probes": _whole(probes, "probes"),
                "towards": towards,
                "rows": _file(rows, "rows", folder),
                "velocity": velocity,
                "g": None if g is None else str(g),
                "seed": _whole(seed, "seed"),
                "progress": progress_of(progress),
            }
            if n is None and rows is None and not self.content["spec"].get("velocity"):
                raise UsageError("sample() needs a number of samples: sample(1000)")
            found, values = self._native.sample(request)
        return (found, values) if log_density else found

    # In other frameworks

    def torch(self) -> Any:
        """A ``torch.nn.Module`` of this density: ``module(x, t=None)`` is log p, and torch differentiates it twice."""
        from ._torch import density

        return density(self)

    def jax(self, t: float | None = None) -> Any:
        """A function ``log_density(x)`` for jax, in which it can be compiled, mapped and differentiated twice."""
        from ._jax import density

        return density(self, t)

    # Questions

    def weight(
        self,
        *where: str,
        x: ArrayLike = None,
        sample_weight: ArrayLike = None,
        draws: int = 100_000,
        samples: int = 10_000,
        seed: int = 0,
        progress: ProgressLike = False,
    ) -> list[RegionWeight]:
        """How much of the probability lies in regions, each a condition on the columns by their names or as x0, x1, ...

        Parameters
        ----------
        where
            Conditions, such as ``"phi > 0 and psi < 1"``.
        x, sample_weight
            Rows to compare with, and how much each counts; left out, those of the training, where its run folder knows them.
        draws
            Draws of the integral over the learned density.
        samples
            Samples to generate, 0 for none.

        Examples
        --------
        >>> import diffclf
        >>> x = diffclf.system("two-modes", dim=2).sample(2000, seed=1)
        >>> model = diffclf.fit(x, steps=50, score_steps=50, width=32, depth=2, progress=False)
        >>> [found] = model.weight("x0 < 0", x=x, samples=0)
        >>> abs(found.density.mean - found.data.mean) < 0.1
        True
        """
        question = self._question(where, x, sample_weight, draws, seed, samples=_whole(samples, "samples"), progress=progress_of(progress))
        found = _native.region_weights(self._native, question)
        kinds = [[None if part is None else estimate(part) for part in parts] for parts in found]
        return [RegionWeight(text, *parts) for text, parts in zip(where, kinds)]

    def surface(
        self,
        *along: str | int,
        x: ArrayLike = None,
        sample_weight: ArrayLike = None,
        bins: int = 36,
        draws: int = 200_000,
        seed: int = 0,
    ) -> Surface:
        """The free energy along one or two columns, or numbers made of columns, in kT with its error.

        Parameters
        ----------
        along
            Columns by name or number, or expressions such as ``"phi + psi"``; one or two.
        x, sample_weight
            Rows to compare with, as in :meth:`weight`.
        bins
            Bins along each.
        draws
            Draws of the integral over the learned density.
        """
        question = self._question([str(text) for text in along], x, sample_weight, draws, seed, bins=_whole(bins, "bins"))
        found = [surface_of(part) for part in _native.free_energy_surface(self._native, question)]
        return found[0] if len(found) == 1 else replace(found[0], data=found[1])

    def rows(self, x: ArrayLike, n: int = 10) -> Extremes:
        """The most typical and the most unusual rows, by their log-density."""
        values = np.asarray(self.log_density(x))
        number = _whole(n, "n")
        if number < 1:
            raise InputError(f"n is {n}, expected at least 1 row")
        order = np.argsort(-values, kind="stable")
        typical, unusual = order[:number], order[::-1][:number]
        return Extremes(typical, values[typical], unusual, values[unusual])

    def _question(
        self, texts: Sequence[str], x: ArrayLike, weights: ArrayLike, draws: int, seed: int, **others: Any
    ) -> dict[str, Any]:
        if x is None and weights is not None:
            raise InputError("sample_weight is given without x; weights belong to rows that are given")
        request = {
            "rows": None if x is None else _array(x, "x", self.columns),
            "weights": weight_array(weights, "sample_weight"),
            "path": None if self._path is None else os.fspath(self._path),
            "texts": [str(text) for text in texts],
            "bins": 2,
            "draws": _whole(draws, "draws"),
            "samples": 0,
            "seed": _whole(seed, "seed"),
            "progress": None,
        }
        return {**request, **others}

    # Verdicts

    def evaluate(
        self,
        system: str | None = None,
        *,
        end_system: str | None = None,
        system_seed: int | None = None,
        levels: int | None = None,
        samples: int = 1024,
        classified: int = 64,
        seed: int = 0,
        progress: ProgressLike = False,
    ) -> Evaluation:
        """Beside the exact answer of a built-in system, by default the one it was trained on."""
        found = self._native.evaluate(
            {
                "system": system,
                "end_system": end_system,
                "system_seed": system_seed,
                "levels": _whole(levels, "levels"),
                "samples": _whole(samples, "samples"),
                "classified": _whole(classified, "classified"),
                "seed": _whole(seed, "seed"),
                "progress": progress_of(progress),
            }
        )
        average, likelihood = found["evaluation"]["average"], found["likelihood"]
        return Evaluation(
            systems=tuple(found["systems"]),
            fisher=estimate(average["fisher"]),
            ess=average["ess"],
            r2=average["r2"],
            median_r2=average["median_r2"],
            classification_excess=estimate(average["excess"]),
            log_likelihood=estimate(likelihood["model"]),
            exact_log_likelihood=estimate(likelihood["exact"]),
            log_likelihood_lead=estimate(likelihood["lead"]),
            figures=found,
        )

    def diagnose(
        self,
        x: ArrayLike = None,
        end: ArrayLike = None,
        *,
        sample_weight: ArrayLike = None,
        end_weight: ArrayLike = None,
        points: int = 4096,
        generate: int = 2048,
        seed: int = 0,
        progress: ProgressLike = False,
    ) -> Diagnosis:
        """Is it any good? A verdict without ground truth.

        Parameters
        ----------
        x, end
            Rows to judge it by, best some that were not trained on. If they are the very rows of the training, those that were held out are
            found and used. Left out if it was trained on a built-in system, or in a run folder whose data are still there.
        sample_weight, end_weight
            How much each of those rows counts: rows that stand for all of them with equal weights are judged by.
        points
            Points of the larger checks: more find smaller flaws.
        generate
            Samples to generate and compare with the data, 0 for none.
        """
        given = [
            None if part is None else (name, _array(part, name, self.columns), weight_array(weights, f"weights of {name}"))
            for part, name, weights in ((x, "x", sample_weight), (end, "end", end_weight))
        ]
        with scratch() as folder:
            request = {
                "rows": given,
                "path": os.fspath(self._model_file(folder)),
                "points": _whole(points, "points"),
                "generate": _whole(generate, "generate"),
                "seed": _whole(seed, "seed"),
                "progress": progress_of(progress),
            }
            found, text = self._native.diagnose(request)
        diagnosis = found["diagnosis"]
        return Diagnosis(
            verdict=diagnosis["verdict"],
            checks=tuple(Check(**check) for check in diagnosis["checks"]),
            judged_by=found["judged_by"],
            only_trained_rows=found["only_trained_rows"],
            figures=diagnosis,
            text=text,
        )

    def report(
        self,
        path: str | os.PathLike[str],
        x: ArrayLike = None,
        end: ArrayLike = None,
        *,
        sample_weight: ArrayLike = None,
        end_weight: ArrayLike = None,
        pair: tuple[int, int] | None = None,
        points: int = 2048,
        seed: int = 0,
        force: bool = False,
    ) -> Report:
        """Writes one self-contained page: densities, samples, verdicts, losses, settings, citation. A notebook shows it.

        ``x`` and ``end`` are rows to judge the model by, with weights if they have any, as in :meth:`diagnose`; ``pair`` names two columns to show.
        """
        with scratch() as folder:
            _native.write_report(
                {
                    "model": os.fspath(self._model_file(folder, with_model=True)),
                    "data": _file(x, "x", folder, self.columns),
                    "end": _file(end, "end", folder, self.columns),
                    "weights": [
                        weight_file(sample_weight, "sample_weight", folder),
                        weight_file(end_weight, "end_weight", folder),
                    ],
                    "pair": None if pair is None else [_whole(column, "pair") for column in pair],
                    "points": _whole(points, "points"),
                    "seed": _whole(seed, "seed"),
                    "command": f"model.report({os.fspath(path)!r}, x)",
                    "out": os.fspath(path),
                    "force": force,
                }
            )
        return Report(Path(path))

    def _model_file(self, folder: str, *, with_model: bool = False) -> Path:
        """The model's file with its log beside it: in its run folder, or written into this one."""
        if self._path is not None and self._path.is_file():
            return self._path
        path = Path(folder) / "model" / "model.safetensors"
        path.parent.mkdir()
        if with_model:
            path.write_bytes(self._native.to_bytes())
        import json

        lines = "".join(json.dumps(entry) + "\n" for entry in self.history)
        (path.parent / "log.jsonl").write_text(lines)
        return path

    # Files

    def to_bytes(self) -> bytes:
        """The bytes of the model file."""
        data: bytes = self._native.to_bytes()
        return data

    @classmethod
    def from_bytes(cls, data: bytes) -> Model:
        """A model from the bytes of its file."""
        return _restored(data, [])

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Writes the model file, whole or not at all: safetensors, the same as the command's."""
        target = Path(path)
        if target.exists() and not force:
            raise FileError(f"{target} already exists; choose another name, or add force=True to replace it")
        temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
        try:
            temporary.write_bytes(self.to_bytes())
            os.replace(temporary, target)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise FileError(f"cannot write {target}: {error}") from error

    def __reduce__(self) -> tuple[Any, ...]:
        return (_restored, (self.to_bytes(), self.history))

    def __copy__(self) -> Model:
        return type(self)(self._native, self.history, self._path)

    def __deepcopy__(self, memo: dict[int, Any]) -> Model:
        return self.__copy__()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Model) and (self._native is other._native or self.to_bytes() == other.to_bytes())

    def __hash__(self) -> int:
        return hash(self.to_bytes())


class Report:
    """A page in a file, which a notebook shows in place."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __repr__(self) -> str:
        return f"<diffclf report in {self.path}>"

    def __fspath__(self) -> str:
        return os.fspath(self.path)

    def _repr_html_(self) -> str:
        from html import escape

        page = escape(self.path.read_text(encoding="utf-8"), quote=True)
        return f'<iframe srcdoc="{page}" style="width:100%;height:720px;border:1px solid #ccc" title="report"></iframe>'


def _restored(data: bytes, history: list[dict[str, Any]]) -> Model:
    from ._states import StatesModel

    states = _native.StatesModel.read(data)
    return Model(_native.Model.from_bytes(data), history) if states is None else StatesModel(states, history)


def load(path: str | os.PathLike[str]) -> Model:
    """Reads a model file, or that of a run folder. A model of states is a :class:`StatesModel`.

    Examples
    --------
    >>> import diffclf, os, tempfile
    >>> x = diffclf.system("two-modes", dim=2).sample(500, seed=1)
    >>> model = diffclf.fit(x, steps=5, score_steps=5, width=16, depth=2, progress=False)
    >>> path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
    >>> model.save(path)
    >>> diffclf.load(path) == model
    True
    """
    from ._states import StatesModel

    states = _native.StatesModel.open(os.fspath(path))
    native = _native.Model.load(os.fspath(path)) if states is None else states
    file = Path(path)
    if file.is_dir():
        file = file / "model.safetensors"
    history: list[dict[str, Any]] = []
    log = file.with_name("log.jsonl")
    if log.is_file():
        import json

        for line in log.read_text().splitlines():
            try:
                history.append(json.loads(line))
            except ValueError:
                continue
    return (Model if states is None else StatesModel)(native, history, file)


def _times(t: ArrayLike) -> list[float]:
    try:
        return [float(value) for value in np.atleast_1d(np.asarray(t, dtype=np.float64)).ravel()]
    except (TypeError, ValueError) as error:
        raise UsageError(f"t is {t!r}, expected a time, or one for each point") from error


def _whole(value: Any, name: str) -> Any:
    """A number that counts."""
    if value is None:
        return None
    try:
        number = value.__index__()
    except (AttributeError, TypeError):
        raise UsageError(f"{name} is {value!r}, expected a whole number") from None
    if not 0 <= number < 2**63:
        raise InputError(f"{name} is {number}, expected a whole number from 0 to 2**63 - 1")
    return number


def _array(x: ArrayLike, name: str, columns: Sequence[str]) -> Floats:
    if is_path(x):
        try:
            x = np.load(x, mmap_mode="r")
        except (OSError, ValueError) as error:
            raise FileError(f"cannot read {os.fspath(x)}: {error}") from error
    return rows(x, name, columns)


def _file(x: ArrayLike, name: str, folder: str, columns: Sequence[str] = ()) -> str | None:
    """Rows in a file: their own, or one in this folder."""
    if x is None or is_path(x):
        return None if x is None else os.fspath(x)
    path = os.path.join(folder, f"{name}.npy")
    np.save(path, rows(x, name, columns))
    return path


def weight_array(weights: ArrayLike, name: str) -> NDArray[np.float64] | None:
    """Weights of rows, one number each, or the content of a file that holds them."""
    if weights is None:
        return None
    values = np.load(os.fspath(weights)) if is_path(weights) else np.asarray(weights)
    try:
        values = np.ascontiguousarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} is no array of numbers: {error}") from error
    if values.ndim != 1:
        raise InputError(f"{name} has the shape {values.shape}, expected one number for each row")
    return values


def weight_file(weights: ArrayLike, name: str, folder: str) -> str | None:
    """The same in a file: their own, or one in this folder."""
    if weights is None or is_path(weights):
        return None if weights is None else os.fspath(weights)
    path = os.path.join(folder, f"{name}.npy")
    values = weight_array(weights, name)
    assert values is not None
    np.save(path, values)
    return path
