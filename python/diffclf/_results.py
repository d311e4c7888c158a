"""Results: what a diagnosis, an evaluation or a comparison found, as objects that a notebook shows well."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MARKS = {"pass": "#2a7f3f", "warn": "#b06f00", "fail": "#b3261e", "skipped": "#777777"}


@dataclass(frozen=True)
class Check:
    """One check of a diagnosis."""

    name: str
    #: pass, warn, fail or skipped.
    verdict: str
    #: What was found, with its figures.
    finding: str
    #: What that means, and what to do about it.
    meaning: str
    #: Where the limits lie.
    limits: str

    def __bool__(self) -> bool:
        return self.verdict != "fail"

    def __str__(self) -> str:
        return f"{self.verdict.upper()} {self.name}: {self.finding} => {self.meaning}"


@dataclass(frozen=True)
class Diagnosis:
    """Is the model any good? A verdict without ground truth; it is true unless a check failed."""

    #: The worst of the checks: pass, warn or fail.
    verdict: str
    checks: tuple[Check, ...]
    #: Where the rows came from.
    judged_by: str
    #: There were no other rows than those it was trained on.
    only_trained_rows: bool
    #: Every figure behind the checks.
    figures: dict[str, Any] = field(repr=False)
    #: The whole as the command prints it.
    text: str = field(repr=False)

    def __bool__(self) -> bool:
        return self.verdict != "fail"

    def __str__(self) -> str:
        return self.text

    def __getitem__(self, name: str) -> Check:
        for check in self.checks:
            if check.name == name:
                return check
        raise KeyError(f"{name!r} is no check; there are {', '.join(check.name for check in self.checks)}")

    def _repr_html_(self) -> str:
        lines = [
            f"<tr><td style='color:{_MARKS.get(check.verdict, '#777777')};font-weight:600'>{escape(check.verdict)}</td>"
            f"<td style='text-align:left'>{escape(check.name)}</td><td style='text-align:left'>{escape(check.finding)}<br>"
            f"<span style='opacity:.75'>{escape(check.meaning)}</span></td></tr>"
            for check in self.checks
        ]
        head = f"<p><b>verdict: {escape(self.verdict)}</b>, judged by {escape(self.judged_by)}</p>"
        return f"{head}<table>{''.join(lines)}</table>"


@dataclass(frozen=True)
class Estimate:
    """A number and its standard error."""

    mean: float
    error: float

    def __float__(self) -> float:
        return self.mean

    def __str__(self) -> str:
        return f"{self.mean:.6g} ± {self.error:.2g}"


def estimate(value: dict[str, float]) -> Estimate:
    """An estimate of the core."""
    return Estimate(value["mean"], value["error"])


@dataclass(frozen=True)
class Evaluation:
    """A model beside the exact answer of a system: averages over the levels of its grid, each over exact samples."""

    systems: tuple[str, ...]
    #: Mean squared error of the score, per dimension.
    fisher: Estimate
    #: Effective sample size of the model's density as an importance weight, a share of 1.
    ess: float
    #: Agreement of log-densities up to a constant.
    r2: float
    median_r2: float
    #: Loss of telling the level of a sample, above the best that any model can have.
    classification_excess: Estimate
    #: Nats per row of fresh exact samples: the model's, the exact density's, and the model's minus the exact one.
    log_likelihood: Estimate
    exact_log_likelihood: Estimate
    log_likelihood_lead: Estimate
    #: Everything, level by level.
    figures: dict[str, Any] = field(repr=False)

    def _repr_html_(self) -> str:
        rows = [
            ("score error (Fisher), per dimension", self.fisher),
            ("effective sample size", f"{self.ess:.4f}"),
            ("R², mean over levels", f"{self.r2:.5f}"),
            ("classification, above the optimum", self.classification_excess),
            ("log-likelihood, nats per row", self.log_likelihood),
            ("exact log-likelihood", self.exact_log_likelihood),
            ("difference", self.log_likelihood_lead),
        ]
        body = "".join(f"<tr><td style='text-align:left'>{name}</td><td>{escape(str(value))}</td></tr>" for name, value in rows)
        return f"<p>against {escape(' and '.join(self.systems))}</p><table>{body}</table>"


@dataclass(frozen=True)
class StatesEvaluation:
    """A model of states beside the exact law of a system."""

    system: str
    #: Loss of telling the level of a sample, above the best that any model can have.
    classification_excess: Estimate
    #: Nats per row of fresh exact samples at the smallest time.
    log_likelihood: Estimate
    #: Logarithm of the sum of all probabilities, and the divergence of the exact law from the model in nats; None where there are too many rows.
    log_total: float | None
    divergence: float | None
    #: Share of the rows with more symbols 1 than 0, learned and exact, for two states.
    up: tuple[float, float] | None
    #: Everything, level by level.
    figures: dict[str, Any] = field(repr=False)


@dataclass(frozen=True)
class RegionWeight:
    """How much of the probability lies in a region; None where it is not known."""

    where: str
    #: Share of the rows, by an error that counts rows of a series for what they are worth.
    data: Estimate | None
    #: Integral of the learned density.
    density: Estimate | None
    #: Share of generated samples.
    samples: Estimate | None


@dataclass(frozen=True)
class Surface:
    """Free energies over a grid, in kT above the lowest bin; not a number where nothing was seen."""

    #: What the axes are.
    axes: tuple[str, ...]
    #: Ends of the bins along each axis.
    edges: tuple[NDArray[np.float64], ...]
    #: One axis of the array for each axis.
    free_energy: NDArray[np.float64]
    #: Standard errors.
    error: NDArray[np.float64]
    #: Share of each bin.
    share: NDArray[np.float64]
    #: The same by the rows it is compared with, if there are any.
    data: Surface | None = None


@dataclass(frozen=True)
class Extremes:
    """Rows by their log-density, counted from 0."""

    typical: NDArray[np.int64]
    typical_log_density: NDArray[np.float64]
    unusual: NDArray[np.int64]
    unusual_log_density: NDArray[np.float64]


def surface_of(found: dict[str, Any]) -> Surface:
    """A surface as the native half gives it."""
    edges = tuple(np.array(part, dtype=np.float64) for part in found["edges"])
    shape = tuple(len(part) - 1 for part in edges)
    free_energy, error, share = (np.array(found[key], dtype=np.float64).reshape(shape) for key in ("free_energy", "error", "share"))
    return Surface(tuple(found["axes"]), edges, free_energy, error, share)
