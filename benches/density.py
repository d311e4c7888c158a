"""Is it a density? The program by default on ordinary data, beside scikit-learn's GaussianMixture and KernelDensity.

    python -m venv target/base-venv && target/base-venv/bin/pip install scikit-learn
    cargo build --release
    target/base-venv/bin/python benches/density.py --alanine ala2_coordinates.npy --out benches/density-results.json

One command trains (`diffclf train rows.npy`), one gives the log-density of rows it has not seen. Reported: mean log-density of these
rows in nats, ours and of both peers (number of components and bandwidth chosen by a fifth of the training rows), the truth where it is
known, and the integral of exp(log p) by importance sampling from scikit-learn's mixture, inflated 1, 1.5, 2 and 3 times. Rows of a
series are held out in blocks of 100. `--alanine` takes 10,000 x 5 x 3 coordinates of beads; without it its three cases are left out.
`--flags` adds flags to the training.
"""

import argparse
import json
import shlex
import subprocess
import tempfile
import warnings
from pathlib import Path
from time import perf_counter

import numpy as np
from base import COMPONENTS, dequantised, dihedral, processor_time, three_modes
from scipy.special import logsumexp
from sklearn import datasets
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import KernelDensity

INFLATIONS = [1.0, 1.5, 2.0, 3.0]
ANGLES = ["alanine phi, psi"]


def three_modes_truth(x):
    centres = np.array([[-4.0, 0.0, 1.0], [3.0, 3.0, -2.0], [1.0, -5.0, 2.0]])
    scales, weights = np.array([0.5, 1.0, 2.0]), np.array([0.5, 0.3, 0.2])
    square = ((x[:, None] - centres) ** 2).sum(-1) / scales**2
    return logsumexp(-0.5 * square - 1.5 * np.log(2 * np.pi) - 3 * np.log(scales) + np.log(weights), axis=1)


def moons_truth(x, noise=0.1):
    angle = np.linspace(0, np.pi, 4001)
    arcs = np.concatenate(
        [np.stack([np.cos(angle), np.sin(angle)], 1), np.stack([1 - np.cos(angle), 0.5 - np.sin(angle)], 1)]
    )
    out = [
        logsumexp(-0.5 * ((part[:, None] - arcs) ** 2).sum(-1) / noise**2, axis=1) for part in np.array_split(x, 50)
    ]
    return np.concatenate(out) - np.log(len(arcs)) - np.log(2 * np.pi * noise**2)


def checkerboard(rng, rows=20_000):
    cells = [(i, j) for i in range(4) for j in range(4) if (i + j) % 2 == 0]
    which = rng.integers(len(cells), size=rows)
    return np.array(cells)[which] + rng.uniform(size=(rows, 2)) - 2.0


def aligned(x):
    x = x - x.mean(1, keepdims=True)
    reference = x[0]
    for _ in range(3):
        u, _, v = np.linalg.svd(np.einsum("nai,aj->nij", x, reference))
        sign = np.sign(np.linalg.det(u @ v))
        u[:, :, -1] *= sign[:, None]
        turned = np.einsum("nai,nij->naj", x, u @ v)
        reference = turned.mean(0)
    return turned.reshape(len(x), -1)


def awkward(rng, rows=5000):
    """Tails and scales that are hard on a table of standardised columns, with their exact log-densities."""
    normal = lambda z: -0.5 * z**2 - 0.5 * np.log(2 * np.pi)
    logs = rng.standard_normal((rows, 3))
    log_normal = lambda x: (normal(np.log(x)) - np.log(x)).sum(1)
    yield "log-normal", np.exp(logs), log_normal
    scales = np.array([1e-6, 1.0, 1e6])
    yield "log-normal, columns times 1e-6, 1, 1e6", np.exp(logs) * scales, lambda x: log_normal(x / scales)
    yield "log-normal plus 1e8", np.exp(logs) + 1e8, lambda x: log_normal(np.maximum(x - 1e8, 1e-7))
    far = rng.uniform(size=rows) < 0.05
    yield (
        "5 % outliers",
        rng.standard_normal((rows, 2)) * np.where(far, 50.0, 1.0)[:, None],
        lambda x: np.logaddexp(np.log(0.95) + normal(x).sum(1), np.log(0.05) + (normal(x / 50.0) - np.log(50.0)).sum(1)),
    )
    yield (
        "a Cauchy column",
        np.stack([rng.standard_cauchy(rows), rng.standard_normal(rows)], 1),
        lambda x: normal(x[:, 1]) - np.log(np.pi * (1 + x[:, 0] ** 2)),
    )


def cases(alanine):
    rng = np.random.default_rng(0)
    yield "three modes", three_modes(rng), three_modes_truth
    yield "two moons", datasets.make_moons(20_000, noise=0.1, random_state=0)[0], moons_truth
    yield "checkerboard", checkerboard(rng), lambda x: np.full(len(x), -np.log(8.0))
    if alanine:
        x = np.load(alanine).astype(float)
        yield "alanine phi, psi", np.stack([dihedral(*x.transpose(1, 0, 2)[i : i + 4]) for i in (0, 1)], axis=1), None
        pairs = [(i, j) for i in range(5) for j in range(i + 1, 5)][:9]
        yield "alanine distances", np.stack([np.linalg.norm(x[:, i] - x[:, j], axis=1) for i, j in pairs], axis=1), None
        # Centred and aligned coordinates have 15 - 6 free directions; a little noise gives the others a width.
        turned = aligned(x)
        yield "alanine coordinates", turned + 0.01 * turned.std() * rng.standard_normal(turned.shape), None
    for name in ["wine", "breast_cancer", "iris"]:
        yield name, getattr(datasets, "load_" + name)().data, None
    for name in ["diabetes", "digits"]:
        yield name + ", dequantised", dequantised(getattr(datasets, "load_" + name)().data, rng), None
    yield from awkward(rng)


def peers(train, test, rng):
    order = rng.permutation(len(train))
    cut = len(train) // 5
    held, rest = train[order[:cut]], train[order[cut:]]
    usable = [k for k in COMPONENTS if k <= len(rest)]
    best = max(usable, key=lambda k: GaussianMixture(k, random_state=0).fit(rest).score(held))
    mixture = GaussianMixture(best, random_state=0).fit(train)
    widths = np.geomspace(0.02, 1.0, 12)
    few = rest[:4000]
    width = max(widths, key=lambda h: KernelDensity(bandwidth=h).fit(few).score(held[:1000]))
    kernels = KernelDensity(bandwidth=width, rtol=1e-4).fit(train)
    return mixture, mixture.score_samples(test), kernels.score_samples(test)


def inflated(mixture, inflation):
    other = GaussianMixture(mixture.n_components)
    other.weights_, other.means_ = mixture.weights_, mixture.means_
    other.covariances_ = mixture.covariances_ * inflation**2
    other.precisions_cholesky_ = mixture.precisions_cholesky_ / inflation
    return other


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--alanine", type=Path)
    parser.add_argument("--program", default="target/release/diffclf")
    parser.add_argument("--flags", default="")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only")
    parser.add_argument("--keep", type=Path, help="folder for the runs")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    results = []
    for name, rows, truth in cases(options.alanine):
        if options.only and not any(word in name for word in options.only.split(",")):
            continue
        rng = np.random.default_rng(1)
        cut = min(2000, len(rows) // 5)
        block = 100 if name.startswith("alanine") else 1
        blocks = rng.permutation(len(rows) // block)
        order = (blocks[:, None] * block + np.arange(block)).ravel()
        test, train = rows[order[:cut]], rows[np.sort(order[cut:])]
        mean, scale = train.mean(0), train.std(0)
        scale[scale == 0] = 1.0
        volume = np.log(scale).sum()
        mixture, of_mixture, of_kernels = peers((train - mean) / scale, (test - mean) / scale, rng)
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(options.keep or folder)
            folder.mkdir(parents=True, exist_ok=True)
            run = folder / name.replace(" ", "-").replace(",", "")

            def log_density(x):
                np.save(folder / "x.npy", x)
                command = [options.program, "density", str(run), str(folder / "x.npy"), "-o", str(folder / "p.npy"), "--force", "--quiet"]
                subprocess.run(command, check=True)
                return np.load(folder / "p.npy")

            np.save(folder / "rows.npy", train)
            begin, spent = perf_counter(), processor_time()
            command = [options.program, "train", str(folder / "rows.npy"), "-o", str(run), "--force", "--no-report", "--quiet"]
            done = subprocess.run(command + shlex.split(options.flags), capture_output=True, text=True)
            seconds, spent = perf_counter() - begin, processor_time() - spent
            if done.returncode:
                print(f"{name}: {done.stderr.strip()}", flush=True)
                continue
            own = log_density(test)
            integrals = []
            for inflation in INFLATIONS:
                proposal = inflated(mixture, inflation)
                x = proposal.sample(20_000)[0]
                log_weight = log_density(x * scale + mean) + volume - proposal.score_samples(x)
                weight = np.exp(np.minimum(log_weight, 600))
                if name in ANGLES:
                    # Angles are recognised, and their density repeats itself: one period is the whole.
                    weight = weight * (np.abs(x * scale + mean) <= np.pi).all(1)
                integrals.append([weight.mean(), weight.std() / np.sqrt(len(weight))])
            largest = log_density(train).max()
        nats = lambda gap: [gap.mean(), gap.reshape(-1, block).mean(1).std() / np.sqrt(len(gap) / block)]
        result = {
            "data": name,
            "rows": len(rows),
            "dim": rows.shape[1],
            "nats": own.mean(),
            "mixture": of_mixture.mean() - volume,
            "kernels": of_kernels.mean() - volume,
            "over mixture": nats(own - of_mixture + volume),
            "over kernels": nats(own - of_kernels + volume),
            "below truth": nats(truth(test) - own) if truth else None,
            "integrals": integrals,
            "above the data": own.max() - largest,
            "seconds": seconds,
            "processor seconds": spent,
        }
        results.append(result)
        shown = lambda pair: "-" if pair is None else f"{pair[0]:+.3f} ± {pair[1]:.3f}"
        print(
            f"| {name} | {len(rows)} x {rows.shape[1]} | {own.mean():.3f} | {result['mixture']:.3f} | {result['kernels']:.3f} | "
            f"{shown(result['over mixture'])} | {shown(result['below truth'])} | "
            + " ".join(f"{value:.3f}({error:.3f})" for value, error in integrals)
            + f" | {seconds:.0f} s | {spent:.0f} s |",
            flush=True,
        )
    if options.out:
        options.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
