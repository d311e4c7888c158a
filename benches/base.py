"""Our fitted mixture beside scikit-learn's GaussianMixture: log-density of the same held-out rows, in nats per row.

    python -m venv target/base-venv && target/base-venv/bin/pip install scikit-learn
    cargo build --release -p diffclf --example bench_base
    target/base-venv/bin/python benches/base.py --alanine ala2_coordinates.npy --out target/base.json

Columns are standardised by the training rows; a fifth of the rows (at most 2000) is held out for the verdict, in blocks of 100 where
they are a series. Data on a grid are dequantised (a density of repeated values is unbounded). scikit-learn: full
covariances, one start, number of components (1 to 64) by a fifth of the training rows, then fitted to all of them. Ours: one
call of `fit`. The verdict is met if ours is not worse by more than one standard error of the difference.
`--alanine` takes 10,000 x 5 x 3 coordinates of beads; without it these two cases are left out.
"""

import argparse
import json
import resource
import subprocess
import tempfile
import warnings
from pathlib import Path
from time import perf_counter

import numpy as np
from sklearn import datasets
from sklearn.mixture import GaussianMixture

COMPONENTS = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64]


def three_modes(rng):
    centres = np.array([[-4.0, 0.0, 1.0], [3.0, 3.0, -2.0], [1.0, -5.0, 2.0]])
    which = rng.choice(3, 20_000, p=[0.5, 0.3, 0.2])
    return centres[which] + rng.standard_normal((20_000, 3)) * np.array([0.5, 1.0, 2.0])[which, None]


def processor_time():
    """Of all programs that were called: on a machine with other work, what the clock says is not ours."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def dihedral(a, b, c, d):
    u, v, w = b - a, c - b, d - c
    n, m = np.cross(u, v), np.cross(v, w)
    return np.arctan2((np.cross(n, m) * v).sum(-1) / np.linalg.norm(v, axis=-1), (n * m).sum(-1))


def cases(alanine):
    rng = np.random.default_rng(0)
    yield "three modes", three_modes(rng)
    yield "two moons", datasets.make_moons(20_000, noise=0.1, random_state=0)[0]
    if alanine:
        x = np.load(alanine).astype(float)
        yield "alanine phi, psi", np.stack([dihedral(*x.transpose(1, 0, 2)[i : i + 4]) for i in (0, 1)], axis=1)
        pairs = [(i, j) for i in range(5) for j in range(i + 1, 5)][:9]
        yield "alanine distances", np.stack([np.linalg.norm(x[:, i] - x[:, j], axis=1) for i, j in pairs], axis=1)
    for name in ["wine", "breast_cancer", "iris"]:
        yield name, getattr(datasets, "load_" + name)().data
    for name in ["diabetes", "digits"]:
        yield name + ", dequantised", dequantised(getattr(datasets, "load_" + name)().data, rng)


def dequantised(rows, rng):
    """Uniform noise as wide as the typical step, for columns of which most values are repeated."""
    rows = rows.copy()
    for column in rows.T:
        values = np.unique(column)
        if len(values) <= len(column) / 2:
            step = np.median(np.diff(values)) if len(values) > 1 else 1.0
            column += step * rng.uniform(size=len(column))
    return rows


def theirs(train, test, rng):
    order = rng.permutation(len(train))
    cut = len(train) // 5
    held, rest = train[order[:cut]], train[order[cut:]]
    usable = [k for k in COMPONENTS if k <= len(rest)]
    score = lambda k: GaussianMixture(k, random_state=0).fit(rest).score(held)
    best = max(usable, key=score)
    return best, GaussianMixture(best, random_state=0).fit(train).score_samples(test)


def ours(program, train, test):
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(Path(folder) / name) for name in ("train.npy", "test.npy")]
        for path, rows in zip(paths, (train, test)):
            np.save(path, rows)
        return json.loads(subprocess.run([program, *paths], capture_output=True, check=True, text=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--alanine", type=Path)
    parser.add_argument("--program", default="target/release/examples/bench_base")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    results = []
    print("| data | rows, d | ours | seconds | scikit-learn | seconds | difference | met |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, rows in cases(options.alanine):
        if options.only and options.only not in name:
            continue
        rng = np.random.default_rng(1)
        cut = min(2000, len(rows) // 5)
        block = 100 if name.startswith("alanine") else 1
        blocks = rng.permutation(len(rows) // block)
        order = (blocks[:, None] * block + np.arange(block)).ravel()
        # The training rows keep the order of the file, as a user's would.
        test, train = rows[order[:cut]], rows[np.sort(order[cut:])]
        mean, scale = train.mean(0), train.std(0)
        scale[scale == 0] = 1.0
        train, test = (train - mean) / scale, (test - mean) / scale
        own = ours(options.program, train, test)
        begin = perf_counter()
        count, other = theirs(train, test, rng)
        seconds = perf_counter() - begin
        own_scores = np.array(own.pop("log_densities"))
        gap = own_scores - other
        means = gap.reshape(-1, block).mean(1)
        error = means.std() / np.sqrt(len(means))
        chosen = own["chosen"]
        met = bool(gap.mean() >= -error)
        shape = chosen["shape"] if isinstance(chosen["shape"], str) else "low-rank({low-rank})".format(**chosen["shape"])
        broad = f" + {chosen['background']}" if chosen["background"] else ""
        print(
            f"| {name} | {len(rows)} x {rows.shape[1]} | {own_scores.mean():.3f} ({chosen['members']} x {chosen['components']} {shape}, "
            f"tie {chosen['tie']:.2g}{broad}) | {own['seconds']:.1f} | {other.mean():.3f} ({count}) | {seconds:.1f} | "
            f"{gap.mean():+.3f} +- {error:.3f} | {'yes' if met else 'no'} |",
            flush=True,
        )
        results.append(
            {
                "data": name,
                "rows": len(rows),
                "dim": rows.shape[1],
                "ours": {"nats": own_scores.mean(), "chosen": chosen, "seconds": own["seconds"], "block": own["block"]},
                "scikit-learn": {"nats": other.mean(), "components": count, "seconds": seconds},
                "difference": gap.mean(),
                "error": error,
                "met": met,
            }
        )
    if options.out:
        options.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
