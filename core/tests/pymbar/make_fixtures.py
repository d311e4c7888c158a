"""Regenerates fixtures.json with pymbar 4: the numbers our estimators must reproduce.

    python3 -m venv venv && venv/bin/pip install 'pymbar>=4,<5'
    venv/bin/python core/tests/pymbar/make_fixtures.py

Inputs are stored beside the results (positions rather than energies, to stay small); signs are pymbar's, Delta_f = -delta.
"""

import json
import logging
import pathlib

import numpy as np

logging.disable(logging.CRITICAL)

import pymbar  # noqa: E402
from pymbar import MBAR, FES, testsystems, timeseries  # noqa: E402
from pymbar.testsystems import harmonic_oscillators  # noqa: E402

TIGHT = dict(solver_protocol=(dict(method="adaptive", options=dict(min_sc_iter=5, maxiter=1000)),), relative_tolerance=1e-14)


def numbers(a):
    return np.asarray(a, dtype=float).ravel().tolist()


def ladder(centres, springs, counts, seed, edges):
    centres, springs, counts = np.array(centres, float), np.array(springs, float), np.array(counts)
    case = harmonic_oscillators.HarmonicOscillatorsTestCase(O_k=centres, K_k=springs)
    x_n, _, _, _ = case.sample(N_k=counts, mode="u_kn", seed=seed)
    # With the very expression the test uses, so that both sides see the same energies.
    u_kn = 0.5 * springs[:, None] * (x_n[None, :] - centres[:, None]) ** 2
    mbar = MBAR(u_kn, counts, **TIGHT)
    differences = mbar.compute_free_energy_differences()
    overlap = mbar.compute_overlap()
    means = [mbar.compute_expectations(x_n), mbar.compute_expectations(x_n**2)]
    # Two states that are not among the simulated ones.
    new = np.array([0.5 * 6.0 * (x_n - 1.3) ** 2, 0.5 * 2.5 * (x_n - 2.2) ** 2 + 0.7])
    perturbed = mbar.compute_perturbed_free_energies(new)
    fes = FES(u_kn, counts, mbar_options=dict(TIGHT))
    fes.generate_fes(u_kn[0], x_n, fes_type="histogram", histogram_parameters=dict(bin_edges=np.array(edges)))
    centres_of_bins = 0.5 * (np.array(edges)[1:] + np.array(edges)[:-1])
    surface = fes.get_fes(centres_of_bins, reference_point="from-lowest", uncertainty_method="analytical")
    return dict(
        centres=numbers(centres),
        springs=numbers(springs),
        counts=counts.tolist(),
        positions=numbers(x_n),
        delta_f=numbers(differences["Delta_f"]),
        d_delta_f=numbers(differences["dDelta_f"]),
        overlap=numbers(overlap["matrix"]),
        scalar=float(np.real(overlap["scalar"])),
        effective=numbers(mbar.compute_effective_sample_number()),
        means=[numbers(m["mu"]) for m in means],
        d_means=[numbers(m["sigma"]) for m in means],
        perturbed=numbers(perturbed["Delta_f"]),
        d_perturbed=numbers(perturbed["dDelta_f"]),
        edges=list(edges),
        surface=numbers(surface["f_i"]),
        d_surface=numbers(surface["df_i"]),
    )


def works(seed, counts, mu, sigma):
    w_f, w_r = testsystems.gaussian_work_example(N_F=counts[0], N_R=counts[1], mu_F=mu, DeltaF=None, sigma_F=sigma, seed=seed)
    bar = pymbar.bar(w_f, w_r, relative_tolerance=1e-15, maximum_iterations=2000, method="self-consistent-iteration")
    bar_mbar = pymbar.bar(w_f, w_r, relative_tolerance=1e-15, maximum_iterations=2000, method="self-consistent-iteration", uncertainty_method="MBAR")
    forward, reverse = pymbar.exp(w_f), pymbar.exp(w_r)
    gauss = pymbar.exp_gauss(w_f)
    pair = lambda r: [float(r["Delta_f"]), float(r["dDelta_f"])]  # noqa: E731
    return dict(
        forward=numbers(w_f), reverse=numbers(w_r), bar=pair(bar), bar_mbar=pair(bar_mbar), exp_forward=pair(forward),
        exp_reverse=pair(reverse), gauss=pair(gauss), overlap=float(np.real(pymbar.bar_overlap(w_f, w_r))),
    )


def series(seed):
    a = testsystems.correlated_timeseries_example(N=600, tau=6.0, seed=seed) + 3.0 * np.exp(-np.arange(600) / 40.0)
    g = timeseries.statistical_inefficiency(a)
    start, g_after, effective = timeseries.detect_equilibration(a, nskip=5)
    return dict(
        values=numbers(a), inefficiency=float(g), start=int(start), inefficiency_after=float(g_after),
        effective=float(effective), kept=[int(i) for i in timeseries.subsample_correlated_data(a, g=g)],
    )


result = dict(
    pymbar=pymbar.__version__,
    # The example of pymbar's own examples/harmonic-oscillators, with fewer samples: state 4 has none.
    harmonic_oscillators=ladder([0, 1, 2, 3, 4, 5], [25, 16, 9, 4, 1, 1], [200, 200, 200, 200, 0, 200], 0, [-0.5, -0.1, 0.3, 0.7, 1.1]),
    # Unequal counts, weak overlap between some neighbours, the first state unsampled.
    uneven=ladder([0.1, 0.3, 1.4, 2.9, 3.2, 4.4], [9, 14, 6, 11, 3, 8], [0, 150, 40, 230, 17, 90], 3, [0.0, 0.5, 1.0, 1.5, 2.0]),
    works=works(5, (120, 90), 2.0, 1.4),
    series=series(7),
)
path = pathlib.Path(__file__).with_name("fixtures.json")
path.write_text(json.dumps(result, separators=(",", ":")) + "\n")
print(path, path.stat().st_size, "bytes")
