"""pymbar's names over this package's MBAR, BAR and FEP: a script changes one import.

>>> import numpy as np
>>> from diffclf.pymbar import MBAR
>>> rng = np.random.default_rng(1)
>>> stiffness = np.array([1.0, 2.0, 4.0])
>>> x = np.concatenate([rng.normal(0, 1 / np.sqrt(k), 2000) for k in stiffness])
>>> mbar = MBAR(0.5 * stiffness[:, None] * x**2, np.array([2000] * 3))
>>> sorted(mbar.compute_free_energy_differences())
['Delta_f', 'dDelta_f']

``Delta_f[i, j] = f_j - f_i = -log(Z_j / Z_i)``, as in pymbar 4. Covered: MBAR with compute_free_energy_differences, compute_expectations,
compute_multiple_expectations, compute_perturbed_free_energies, compute_overlap, compute_effective_sample_number, weights; bar; exp.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from . import free_energy
from ._arrays import ArrayLike
from .errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["MBAR", "bar", "exp"]


class MBAR:
    """The interface of ``pymbar.MBAR``. Arguments that steer pymbar's own solvers are accepted and have no effect."""

    def __init__(
        self,
        u_kn: ArrayLike,
        N_k: ArrayLike,
        maximum_iterations: int = 10000,
        relative_tolerance: float = 1e-7,
        verbose: bool = False,
        initial_f_k: ArrayLike = None,
        solver_protocol: Any = None,
        initialize: str = "zeros",
        x_kindices: ArrayLike = None,
        n_bootstraps: int = 0,
        bootstrap_solver_protocol: Any = None,
        rseed: int | None = None,
    ) -> None:
        counts = np.asarray(N_k)
        if np.ndim(u_kn) == 3:
            # u_kln[k, l, n]: sample n of state k in state l.
            u_kln = np.asarray(u_kn)
            u_kn = np.concatenate([u_kln[k, :, : counts[k]] for k in range(len(counts))], axis=1)
        if x_kindices is not None:
            order = np.argsort(np.asarray(x_kindices), kind="stable")
            if not np.array_equal(order, np.arange(len(order))):
                raise InputError("x_kindices is not sorted; give the samples state by state, as u_kn[:, np.argsort(x_kindices)]")
        self._mbar = free_energy.mbar(u_kn, counts, max_iterations=maximum_iterations)
        self.u_kn: NDArray[np.float64] = np.asarray(self._mbar.energies, dtype=np.float64)
        self.N_k: NDArray[np.int64] = self._mbar.counts
        self.K, self.N = self.u_kn.shape
        self.f_k: NDArray[np.float64] = -self._mbar.log_z
        self.n_bootstraps = n_bootstraps
        self._seed = rseed or 0

    def _errors(self, uncertainty_method: str | None) -> NDArray[np.float64]:
        if uncertainty_method == "bootstrap":
            if self.n_bootstraps <= 0:
                raise InputError("uncertainty_method is 'bootstrap', but n_bootstraps is 0; give MBAR(..., n_bootstraps=200)")
            return self._mbar.bootstrap(self.n_bootstraps, seed=self._seed)
        return self._mbar.differences()[1]

    def compute_free_energy_differences(
        self,
        compute_uncertainty: bool = True,
        uncertainty_method: str | None = None,
        warning_cutoff: float = 1e-10,
        return_theta: bool = False,
    ) -> dict[str, NDArray[np.float64]]:
        """Delta_f (K, K), dDelta_f, and Theta if wanted."""
        result: dict[str, NDArray[np.float64]] = {"Delta_f": self.f_k - self.f_k[:, np.newaxis]}
        if compute_uncertainty:
            result["dDelta_f"] = self._errors(uncertainty_method)
        if return_theta:
            result["Theta"] = self._mbar.covariance()
        return result

    def compute_expectations(
        self,
        A_n: ArrayLike,
        u_kn: ArrayLike = None,
        output: str = "averages",
        state_dependent: bool = False,
        compute_uncertainty: bool = True,
        uncertainty_method: str | None = None,
        warning_cutoff: float = 1e-10,
        return_theta: bool = False,
    ) -> dict[str, NDArray[np.float64]]:
        """mu and sigma of an observable in every state (or in those of ``u_kn``)."""
        if output != "averages" or return_theta or uncertainty_method == "bootstrap":
            raise InputError("of compute_expectations, output='averages' with asymptotic errors is covered; use pymbar itself for the rest")
        values = np.asarray(A_n, dtype=np.float64)
        energies = None if u_kn is None else np.atleast_2d(np.asarray(u_kn, dtype=np.float64))
        states = self.K if energies is None else len(energies)
        means, errors = np.empty(states), np.empty(states)
        for k in range(states):
            own = values[k] if state_dependent else values
            mean, error = self._mbar.expectations(own, state=k if energies is None else 0, energies=None if energies is None else energies[k])
            means[k], errors[k] = mean[0], error[0]
        return {"mu": means, "sigma": errors} if compute_uncertainty else {"mu": means}

    def compute_multiple_expectations(
        self,
        A_in: ArrayLike,
        u_n: ArrayLike,
        compute_uncertainty: bool = True,
        compute_covariance: bool = False,
        uncertainty_method: str | None = None,
        warning_cutoff: float = 1e-10,
        return_theta: bool = False,
    ) -> dict[str, NDArray[np.float64]]:
        """mu and sigma of several observables in one state, given by its energies."""
        if compute_covariance or return_theta or uncertainty_method == "bootstrap":
            raise InputError("of compute_multiple_expectations, asymptotic errors are covered; use pymbar itself for the rest")
        mean, error = self._mbar.expectations(A_in, energies=u_n)
        return {"mu": mean, "sigma": error} if compute_uncertainty else {"mu": mean}

    def compute_perturbed_free_energies(
        self,
        u_ln: ArrayLike,
        compute_uncertainty: bool = True,
        uncertainty_method: str | None = None,
        warning_cutoff: float = 1e-10,
    ) -> dict[str, NDArray[np.float64]]:
        """Delta_f (L, L) and dDelta_f among new states."""
        if uncertainty_method == "bootstrap":
            raise InputError("of compute_perturbed_free_energies, asymptotic errors are covered; use pymbar itself for the bootstrap")
        delta, error = self._mbar._native.perturbed(np.ascontiguousarray(np.atleast_2d(u_ln), dtype=np.float64))[1]
        return {"Delta_f": -delta, "dDelta_f": error} if compute_uncertainty else {"Delta_f": -delta}

    def compute_overlap(self) -> dict[str, Any]:
        """scalar, eigenvalues and matrix."""
        found = self._mbar.overlap_figures()
        # States without samples have rows too, and an eigenvalue of 0 each.
        weights = self.weights()
        eigenvalues = np.zeros(self.K)
        eigenvalues[: len(found["eigenvalues"])] = found["eigenvalues"]
        return {"scalar": found["scalar"], "eigenvalues": eigenvalues, "matrix": self.N_k * (weights.T @ weights)}

    def compute_effective_sample_number(self, verbose: bool = False) -> NDArray[np.float64]:
        """Effective samples of each state."""
        return self._mbar.effective_samples()

    def weights(self) -> NDArray[np.float64]:
        """W_nk: the weight of every sample in every state."""
        return np.exp(self._mbar.log_weights())

    @property
    def W_nk(self) -> NDArray[np.float64]:
        """W_nk: the weight of every sample in every state."""
        return self.weights()


def bar(w_F: ArrayLike, w_R: ArrayLike, DeltaF: float = 0.0, compute_uncertainty: bool = True, **_solver: Any) -> dict[str, float]:
    """pymbar's ``bar``: Delta_f and dDelta_f from forward and reverse works."""
    delta = free_energy.bar(w_F, w_R).delta
    return {"Delta_f": -delta.mean, "dDelta_f": delta.error} if compute_uncertainty else {"Delta_f": -delta.mean}


def exp(w_F: ArrayLike, compute_uncertainty: bool = True, is_timeseries: bool = False) -> dict[str, float]:
    """pymbar's ``exp``: Delta_f and dDelta_f from works of one direction."""
    delta = free_energy.fep(w_F, correlated=is_timeseries).delta
    return {"Delta_f": -delta.mean, "dDelta_f": delta.error} if compute_uncertainty else {"Delta_f": -delta.mean}
