"""phi and psi of alanine dipeptide, from rows to answers: a first model in a minute, a final one in five.

    python -m venv target/base-venv && target/base-venv/bin/pip install scikit-learn
    cargo build --release
    target/base-venv/bin/python benches/dihedrals.py ala2_coordinates.npy --out benches/dihedrals-results.json

Takes 10,000 x 5 x 3 coordinates of beads. Trains with --quick and by default, and asks each model for the weight of phi > 0 (data, density, samples), for the
free-energy surface beside the histogram (root mean square of the difference in kT over cells of 36 x 36 with 20 counts or more; what counting alone
makes of it stands beside: the square root of the mean of 1/count), and for the density on both sides of the seam.
"""

import argparse
import csv
import json
import subprocess
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np
from base import dihedral, processor_time

BINS = 36


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("coordinates", type=Path)
    parser.add_argument("--program", default="target/release/diffclf")
    parser.add_argument("--keep", type=Path, help="folder for the runs")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    x = np.load(options.coordinates).astype(float).transpose(1, 0, 2)
    angles = np.stack([dihedral(*x[i : i + 4]) for i in (0, 1)], axis=1)
    counts = np.histogram2d(*angles.T, bins=BINS, range=[[-np.pi, np.pi]] * 2)[0]
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(options.keep or folder)
        folder.mkdir(parents=True, exist_ok=True)
        rows = folder / "angles.csv"
        np.savetxt(rows, angles, delimiter=",", header="phi,psi", comments="")
        results = [judged(options.program, folder, rows, name, flags, counts) for name, flags in (("quick", ["--quick"]), ("final", []))]
    if options.out:
        options.out.write_text(json.dumps(results, indent=1) + "\n")


def judged(program, folder, rows, name, flags, counts):
    run = folder / name

    def call(*words):
        subprocess.run([program, *map(str, words), "--force", "--quiet"], check=True)

    begin, spent = perf_counter(), processor_time()
    call("train", rows, "-o", run, "--no-report", *flags)
    seconds, spent = perf_counter() - begin, processor_time() - spent
    call("weight", run, rows, "--where", "phi > 0", "--json", folder / "weight.json")
    weights = json.loads((folder / "weight.json").read_text())["weights"][0]
    call("surface", run, rows, "--along", "phi", "--along", "psi", "--bins", BINS, "-o", folder / "surface.csv")
    with open(folder / "surface.csv") as file:
        table = list(csv.DictReader(file))
    learned = np.array([float(line["free_energy"] or "inf") for line in table]).reshape(BINS, BINS)
    learned += np.log(np.exp(-learned).sum())
    enough = counts >= 20
    off = (learned + np.log(np.where(enough, counts, 1) / counts.sum()))[enough]
    # Both sides of each seam, along all of the other angle.
    along = np.linspace(-np.pi, np.pi, 721)
    sides = []
    for side in (-np.pi, np.pi):
        points = np.concatenate([np.stack([np.full_like(along, side), along], 1), np.stack([along, np.full_like(along, side)], 1)])
        np.save(folder / "x.npy", points)
        call("density", run, folder / "x.npy", "-o", folder / "p.npy")
        sides.append(np.load(folder / "p.npy"))
    result = {
        "model": name,
        "seconds": seconds,
        "processor seconds": spent,
        "phi > 0": {of: weights[of] for of in ("data", "density", "samples")},
        "surface rms": float(np.sqrt((off**2).mean())),
        "surface rms of counting": float(np.sqrt((1 / counts[enough]).mean())),
        "cells": int(enough.sum()),
        "seam": float(np.abs(sides[0] - sides[1]).max()),
    }
    print(json.dumps(result), flush=True)
    return result


if __name__ == "__main__":
    main()
