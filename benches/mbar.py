"""MBAR beside pymbar in one run: the same matrix, the same tolerance, seconds and memory of both.

    python3 -m venv venv && venv/bin/pip install 'pymbar>=4,<5'
    cargo build --release
    venv/bin/python benches/mbar.py target/release/diffclf            # 50 states x 20,000 samples each, about 400 MB
    venv/bin/python benches/mbar.py target/release/diffclf --states 10 --samples 2000

Ours is timed as a whole process, reading the file, error bars and overlap included; pymbar from the array in memory to the
matrix of differences with errors. Both run on all cores.
"""

import argparse
import json
import logging
import os
import subprocess
import tempfile
import time

import numpy as np

logging.disable(logging.CRITICAL)
from pymbar import MBAR  # noqa: E402

parser = argparse.ArgumentParser()
parser.add_argument("program")
parser.add_argument("--states", type=int, default=50)
parser.add_argument("--samples", type=int, default=20_000)
parser.add_argument("--tolerance", type=float, default=1e-7)
parser.add_argument("--rounds", type=int, default=1)
args = parser.parse_args()
K, n = args.states, args.samples


def peak_while_running(command):
    """Runs it and gives the peak of its resident memory in bytes; getrusage would count our own from before the exec."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    peak = 0
    while process.poll() is None:
        try:
            lines = open(f"/proc/{process.pid}/status").read().splitlines()
        except OSError:
            break
        peak = max([peak] + [int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM")])
        time.sleep(0.005)
    if process.wait() != 0:
        raise SystemExit("the program failed; its message stands above")
    return peak


rng = np.random.default_rng(0)
centres, springs = np.linspace(0, 0.25 * K, K), np.geomspace(1, 8, K)
x = np.concatenate([c + rng.standard_normal(n) / np.sqrt(s) for c, s in zip(centres, springs)])
u_kn = 0.5 * springs[:, None] * (x[None, :] - centres[:, None]) ** 2
N_k = np.full(K, n)
size = u_kn.nbytes

with tempfile.TemporaryDirectory() as folder:
    path, record = os.path.join(folder, "u_kn.npy"), os.path.join(folder, "record.json")
    np.save(path, u_kn)
    for _ in range(args.rounds):
        begin = time.perf_counter()
        command = [args.program, "free-energy", "mbar", path, "--counts", f"{n}x{K}", "--tolerance", str(args.tolerance), "--json", record, "--force", "--quiet"]
        peak = peak_while_running(command)
        ours = time.perf_counter() - begin
        begin = time.perf_counter()
        mbar = MBAR(u_kn, N_k, relative_tolerance=args.tolerance)
        theirs_result = mbar.compute_free_energy_differences()
        theirs = time.perf_counter() - begin
        found = json.load(open(record))["relative_to_state_0"]
        delta = -np.array([e["mean"] for e in found])
        error = np.array([e["error"] for e in found])
        exact = 0.5 * np.log(springs / springs[0])
        print(f"{K} states x {n} samples, {size / 1e6:.0f} MB, tolerance {args.tolerance:g}")
        print(f"  diffclf {ours:8.2f} s   peak memory {peak / size:.2f} x input (the mapped file counts)")
        print(f"  pymbar  {theirs:8.2f} s   ratio {theirs / ours:.1f}")
        print(f"  largest difference: free energy {np.abs(delta - theirs_result['Delta_f'][0]).max():.1e} kT, error "
              f"{np.abs(error[1:] / theirs_result['dDelta_f'][0][1:] - 1).max():.1e} relative; largest z {np.abs((delta - exact)[1:] / error[1:]).max():.2f}")
