"""Periodic columns: phi and psi of alanine dipeptide, beside scikit-learn's GaussianMixture and KernelDensity.

    python -m venv target/base-venv && target/base-venv/bin/pip install scikit-learn
    cargo build --release
    target/base-venv/bin/python benches/columns.py --alanine ala2_coordinates.npy --out benches/columns-results.json

`--alanine` takes 10,000 x 5 x 3 coordinates of beads. One command trains on all rows but the held-out ones (blocks of 100), `--flags` adds
flags to it. Reported: mean log-density of the held-out rows in nats, ours and of both peers; P(phi > 0) in data, density and samples;
the root mean square difference of the free-energy surface from the histogram of all rows where it has 20 counts; the largest jump of the
log-density across the seams; the time of the training.
"""

import argparse
import json
import subprocess
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np
from base import dihedral
from density import peers


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--alanine", type=Path, required=True)
    parser.add_argument("--program", default="target/release/diffclf")
    parser.add_argument("--flags", default="")
    parser.add_argument("--threads", default="1")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    beads = np.load(asked.alanine).astype(float)
    angles = np.stack([dihedral(*beads.transpose(1, 0, 2)[i : i + 4]) for i in (0, 1)], axis=1)
    rng = np.random.default_rng(0)
    blocks = np.arange(len(angles)) // 100
    held = np.isin(blocks, rng.permutation(blocks.max() + 1)[: (blocks.max() + 1) // 5])
    train, test = angles[~held], angles[held]
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        table = folder / "train.csv"
        np.savetxt(table, train, delimiter=",", header="phi,psi", comments="")
        np.save(folder / "test.npy", test)
        np.save(folder / "all.npy", angles)

        def run(*words):
            command = [str(Path(asked.program).resolve()), *map(str, words), "--threads", asked.threads, "--quiet"]
            subprocess.run(command, check=True, cwd=folder, capture_output=True)

        begin = perf_counter()
        run("train", table, "-o", "m", "--no-report", *asked.flags.split())
        seconds = perf_counter() - begin

        def log_density(points):
            np.save(folder / "points.npy", points)
            run("density", "m", "points.npy", "-o", "p.npy", "--force")
            return np.load(folder / "p.npy")

        ours = log_density(test)
        _, mixture, kernels = peers(train, test, rng)
        run("weight", "m", "all.npy", "--where", "phi > 0", "--json", "w.json")
        weights = json.loads((folder / "w.json").read_text())["weights"][0]
        run("surface", "m", "all.npy", "--along", "phi", "--along", "psi", "--bins", 36, "--draws", 400_000, "--json", "f.json")
        surface = json.loads((folder / "f.json").read_text())
        # On both sides of each seam, 200 places each.
        other = np.linspace(-np.pi, np.pi, 200, endpoint=False)
        jumps = []
        for column in (0, 1):
            sides = [np.full((200, 2), sign * (np.pi - 1e-7)) for sign in (1, -1)]
            for side in sides:
                side[:, 1 - column] = other
            a, b = (log_density(side) for side in sides)
            jumps.append(float(np.abs(a - b).max()))

    density = np.array([np.nan if x is None else x for x in surface["density"]["free_energy"]])
    data = np.array([np.nan if x is None else x for x in surface["histogram"]["free_energy"]])
    counts = np.array(surface["histogram"]["share"]) * len(angles)
    seen = (counts >= 20) & ~np.isnan(density)
    gap = (density - data)[seen]
    # What counts alone would differ by.
    by_chance = float(np.sqrt((1 / counts[seen]).mean()))
    result = {
        "flags": asked.flags,
        "threads": asked.threads,
        "seconds": seconds,
        "rows": [len(train), len(test)],
        "held_out_nats": {
            "ours": [float(ours.mean()), float(ours.std() / np.sqrt(len(ours)))],
            "mixture": float(np.mean(mixture)),
            "kernels": float(np.mean(kernels)),
            "over_mixture": [float((ours - mixture).mean()), float((ours - mixture).std() / np.sqrt(len(ours)))],
            "over_kernels": [float((ours - kernels).mean()), float((ours - kernels).std() / np.sqrt(len(ours)))],
        },
        "phi_positive": weights,
        "surface_rms_kt": float(np.sqrt(((gap - gap.mean()) ** 2).mean())),
        "surface_rms_by_counting_kt": by_chance,
        "surface_bins": int(seen.sum()),
        "seam_jumps_kt": jumps,
    }
    print(json.dumps(result, indent=1))
    if asked.out:
        old = json.loads(asked.out.read_text()) if asked.out.exists() else []
        asked.out.write_text(json.dumps([*old, result], indent=1) + "\n")


if __name__ == "__main__":
    main()
