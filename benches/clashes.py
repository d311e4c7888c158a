"""MBAR on awkward energies beside pymbar: hard walls, r^-12 clashes, huge offsets, unsampled states, far groups.

    python3 -m venv venv && venv/bin/pip install 'pymbar>=4,<5'
    cargo build --release
    venv/bin/python benches/clashes.py target/release/diffclf

For each input: the free energy of the last state relative to the first by both, and whether they agree to 1e-6 (relative to their size)
or both refuse. An answer of pymbar whose error bar exceeds 100 kT, or is not a number, counts as a refusal: such states share no samples.
"""

import json
import logging
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

logging.disable(logging.CRITICAL)
from pymbar import MBAR  # noqa: E402

PROGRAM = sys.argv[1]


def harmonic(centres, widths, counts, rng, extra=None):
    """Energies of samples of Gaussians in all of them, and the samples."""
    samples = np.concatenate([c + w * rng.standard_normal(n) for c, w, n in zip(centres, widths, counts)])
    u = np.array([0.5 * ((samples - c) / w) ** 2 for c, w in zip(centres, widths)])
    return (u if extra is None else u + extra(samples)), samples


def walled(counts, wall, rng):
    """Exponentials of different rate, the second with a wall below 0.5."""
    first, second = rng.exponential(1.0, counts[0]), 0.5 + rng.exponential(0.5, counts[1])
    x = np.concatenate([first, second])
    return np.array([x, np.where(x < 0.5, wall, 2.0 * x)])


def repulsive(counts, rng, lengths):
    """Distances in a harmonic trap with a repulsion (length/r)^12, by rejection, some states without."""
    def energy(r, length):
        with np.errstate(divide="ignore", over="ignore"):
            return 0.5 * (r - 1.0) ** 2 / 0.3**2 + (length / np.maximum(np.abs(r), 1e-30)) ** 12

    rows = []
    for length, count in zip(lengths, counts):
        found = []
        while len(found) < count:
            r = 1.0 + 0.3 * rng.standard_normal(4 * count)
            with np.errstate(over="ignore", divide="ignore"):
                keep = rng.uniform(size=len(r)) < np.exp(-((length / np.maximum(np.abs(r), 1e-30)) ** 12))
            found.extend(r[keep])
        rows.append(np.array(found[:count]))
    x = np.concatenate(rows)
    return np.array([energy(x, length) for length in lengths])


def cases():
    rng = np.random.default_rng(0)
    yield "hard wall, infinite", walled([500, 400], np.inf, rng), [500, 400]
    yield "wall of 1000 kT", walled([500, 400], 1000.0, rng), [500, 400]
    yield "wall of 1e6 kT", walled([500, 400], 1e6, rng), [500, 400]
    yield "wall of 1e300 kT", walled([500, 400], 1e300, rng), [500, 400]
    yield "r^-12, two states", repulsive([400, 400], rng, [0.0, 0.8]), [400, 400]
    yield "r^-12, five states", repulsive([300] * 5, rng, [0.0, 0.3, 0.6, 0.8, 0.9]), [300] * 5
    yield "r^-12, ends alone", repulsive([2000, 2000], rng, [0.0, 0.9]), [2000, 2000]
    u, _ = harmonic([0, 1, 2], [1, 1, 1], [300, 0, 300], rng)
    yield "an unsampled state between", u, [300, 0, 300]
    u, _ = harmonic([0, 1, 2, 9], [1, 1, 1, 1], [300, 300, 300, 0], rng)
    yield "an unsampled state far away", u, [300, 300, 300, 0]
    u, _ = harmonic([0, 0.5], [1, 0.7], [300, 0], rng)
    yield "one sampled state", u, [300, 0]
    u, _ = harmonic([0, 1], [1, 1], [400, 300], rng)
    yield "offsets of 1e6 kT", u + np.array([[0.0], [1e6]]), [400, 300]
    yield "offsets of 1e6 kT to each sample", u + 1e6 * rng.standard_normal(700), [400, 300]
    yield "offsets of 1e9 kT", u + np.array([[1e9], [0.0]]), [400, 300]
    u, _ = harmonic([0, 1, 40, 41], [1, 1, 1, 1], [300] * 4, rng)
    yield "two far groups", u, [300] * 4
    u, _ = harmonic([0, 30], [1, 1], [300, 300], rng)
    yield "two far states", u, [300, 300]
    u, _ = harmonic([0, 4, 8, 12], [1, 1, 1, 1], [3000] * 4, rng)
    yield "a thin chain", u, [3000] * 4
    u, _ = harmonic([0, 0, 0], [1, 0.01, 100], [500, 500, 500], rng)
    yield "widths 1, 0.01, 100", u, [500, 500, 500]
    u, _ = harmonic([0, 1], [1, 1], [2, 5000], rng)
    yield "two samples beside 5000", u, [2, 5000]
    u, _ = harmonic([0, 0.3, 0.6], [1, 1, 1], [300, 300, 300], rng)
    clash = rng.uniform(size=900) < 0.3
    u[2, clash & (np.arange(900) < 600)] = np.inf
    yield "a third of the samples forbidden", u, [300, 300, 300]
    u, _ = harmonic([0, 0.3, 0.6], [1, 1, 1], [300, 300, 300], rng)
    u[1, :300] += 1e12 * (rng.uniform(size=300) < 0.9)
    yield "nine in ten clash with 1e12 kT", u, [300, 300, 300]
    u, _ = harmonic([0, 0.2], [1, 1], [300, 300], rng)
    yield "identical samples", np.repeat(u[:, :1], 600, axis=1), [300, 300]


def theirs(u, counts):
    try:
        with np.errstate(all="ignore"):
            found = MBAR(u, np.array(counts), solver_protocol="robust").compute_free_energy_differences()
        value, error = found["Delta_f"][0, -1], found["dDelta_f"][0, -1]
        return (value, error) if np.isfinite(value) and np.isfinite(error) and error < 100 else None
    except Exception:  # pymbar has no one family of errors
        return None


def ours(u, counts, folder):
    np.save(folder / "u.npy", u)
    out = folder / "out.json"
    command = [PROGRAM, "free-energy", "mbar", folder / "u.npy", "--counts", ",".join(map(str, counts)), "--json", out, "--force", "--quiet"]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        return None, done.stderr.strip().splitlines()[-1][:110]
    last = json.loads(out.read_text())["relative_to_state_0"][-1]
    return (-last["mean"], last["error"]), ""


def main():
    wrong = 0
    with tempfile.TemporaryDirectory() as name:
        for what, u, counts in cases():
            peer = theirs(u, counts)
            own, words = ours(u, counts, Path(name))
            if peer is None or own is None:
                same = peer is None and own is None
            else:
                same = abs(own[0] - peer[0]) < 1e-6 * (1 + abs(peer[0]))
            wrong += not same
            shown = lambda pair: "refused" if pair is None else f"{pair[0]:.6f} ± {pair[1]:.4f}"
            print(f"{'same ' if same else 'DIFFER'} {what:35} pymbar {shown(peer):28} ours {shown(own)} {words}", flush=True)
    print(f"{wrong} differ")
    return wrong


if __name__ == "__main__":
    sys.exit(min(main(), 1))
