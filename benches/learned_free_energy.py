"""Learned thermodynamic integration between two unlike mixtures, over seeds, with and without DiffCLF.

    cargo build --release
    python3 benches/learned_free_energy.py target/release/diffclf --dim 2 --seeds 10 --folder target/learned-2

The exact answer is 0 (both densities are normalised). A run that is finished already in the folder is not repeated. For each
objective: how many stated 95 % intervals hold the answer (and how many standard errors do), the root mean square of the error, and
what was stated.
"""

import argparse
import json
import pathlib
import subprocess

parser = argparse.ArgumentParser()
parser.add_argument("program")
parser.add_argument("--dim", type=int, default=2)
parser.add_argument("--seeds", type=int, default=10)
parser.add_argument("--steps", type=int, default=1000, help="of each of two stages")
parser.add_argument("--width", type=int, default=64)
parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("target/learned-free-energy"))
args = parser.parse_args()
args.folder.mkdir(parents=True, exist_ok=True)

print(f"d = {args.dim}, {args.steps} + {args.steps} steps of 512 rows x 4 levels, width {args.width}; delta (exact: 0), stated error")
for objective in ["dsm", "dsm+diffclf"]:
    found = []
    for seed in range(args.seeds):
        name = f"{objective}-{seed}"
        record = args.folder / f"{name}.json"
        if not record.exists():
            subprocess.run(
                [args.program, "free-energy", "learn", "--system", "pair-a", "--end-system", "pair-b", "--dim", str(args.dim),
                 "--seed", str(seed), "--objective", objective, "--score-steps", str(args.steps), "--steps", str(args.steps),
                 "--batch", "512", "--levels", "4", "--width", str(args.width), "--depth", "3", "--grid-levels", "128",
                 "-o", str(args.folder / name), "--json", str(record), "--force", "--quiet"],
                check=True, stdout=subprocess.DEVNULL)
        document = json.loads(record.read_text())
        found.append(document)
        print(f"  {name:16} {document['stated']['mean']:+.4f}  {document['stated']['error']:.4f}", flush=True)
    inside = lambda k: sum(abs(d["stated"]["mean"]) <= k * d["stated"]["error"] for d in found)  # noqa: E731
    rms = lambda value: (sum(value(d) ** 2 for d in found) / len(found)) ** 0.5  # noqa: E731
    print(f"{objective}: {inside(1.96)} of {len(found)} within the stated 95 % interval, {inside(1)} within one standard error; rms error TI "
          f"{rms(lambda d: d['integration']['mean']):.4f}, MBAR {rms(lambda d: d['mbar']['mean']):.4f}, learned F "
          f"{rms(lambda d: d['learned_f']['mean']):.4f}; stated {rms(lambda d: d['stated']['error']):.4f}")
