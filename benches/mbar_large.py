"""MBAR from a file larger than memory, on several processes: 50 harmonic states of 2,000,000 samples each are 40 GB of energies.

    cargo build --release --features mpi
    python3 benches/mbar_large.py target/release/diffclf [--states 50] [--samples 2000000] [--processes 4] [--folder /scratch] [--json OUT]

The states are u_k(x) = a_k (x - c_k)^2 / 2, of which log(Z_k / Z_0) = log(a_0 / a_k) / 2 is known. What memory a process has of its own (RssAnon) and with the pages of the
mapped file that the system may take back at any time (VmRSS) is looked at every half second. Needs numpy, and MPI for more than one process.
"""

import argparse
import json
import os
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from numpy.lib.format import open_memmap


def write(path, states, samples):
    """The file, state after state; a and c of all states."""
    c, a = 0.4 * np.arange(states), 1.0 + 0.5 * np.sin(np.arange(states))
    x = np.empty(states * samples, dtype=np.float32)
    random = np.random.default_rng(1)
    for k in range(states):
        x[k * samples : (k + 1) * samples] = c[k] + random.standard_normal(samples, dtype=np.float32) / np.sqrt(a[k])
    energies = open_memmap(path, mode="w+", dtype=np.float64, shape=(states, states * samples))
    for k in range(states):
        for start in range(0, len(x), 1 << 22):
            part = x[start : start + (1 << 22)].astype(np.float64)
            energies[k, start : start + len(part)] = 0.5 * a[k] * (part - c[k]) ** 2
        print(f"\rwritten {k + 1} of {states}", end="", flush=True)
    energies.flush()
    print()
    return a


class Memory(threading.Thread):
    """Looks at the memory of all processes of a program."""

    def __init__(self, program):
        super().__init__(daemon=True)
        self.program, self.own, self.all, self.done = program, 0, 0, threading.Event()

    def run(self):
        while not self.done.wait(0.5):
            for process in Path("/proc").glob("[0-9]*"):
                try:
                    if os.readlink(process / "exe") != self.program:
                        continue
                    fields = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
                    self.own = max(self.own, int(fields["RssAnon"].split()[0]))
                    self.all = max(self.all, int(fields["VmRSS"].split()[0]))
                except (OSError, KeyError, ValueError):
                    continue


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--states", type=int, default=50)
    parser.add_argument("--samples", type=int, default=2_000_000, help="of each state")
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--folder", help="where there is room")
    parser.add_argument("--json")
    asked = parser.parse_args()
    program = str(Path(asked.program).resolve())
    folder = Path(tempfile.mkdtemp(prefix="mbar-", dir=asked.folder))
    path, out = folder / "energies.npy", folder / "found.json"
    try:
        begin = time.perf_counter()
        a = write(path, asked.states, asked.samples)
        print(f"{path.stat().st_size / 1e9:.1f} GB in {time.perf_counter() - begin:.0f} s")
        launch = [] if asked.processes == 1 else ["mpirun", "--oversubscribe", "--quiet", "--bind-to", "none", "-n", str(asked.processes)]
        command = [program, "free-energy", "mbar", path, "--counts", f"{asked.samples}x{asked.states}", "--threads", str(asked.threads), "--tolerance", "1e-7"]
        environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        memory = Memory(program)
        memory.start()
        begin = time.perf_counter()
        subprocess.run([*launch, *command, "--json", out, "--quiet"], check=True, env=environment, stdout=subprocess.DEVNULL)
        seconds = time.perf_counter() - begin
        memory.done.set()
        found = json.loads(out.read_text())
        size = path.stat().st_size
    finally:
        path.unlink(missing_ok=True)
    exact = 0.5 * np.log(a[0] / a)
    values, errors = estimates(found)
    z = (values[1:] - exact[1:]) / errors[1:]
    figures = {
        "states": asked.states,
        "samples of each": asked.samples,
        "bytes": size,
        "processes": asked.processes,
        "threads of each": asked.threads,
        "seconds": seconds,
        "largest memory of a process, GB": memory.own / 1e6,
        "the same with mapped pages of the file, GB": memory.all / 1e6,
        "largest error against the exact answer, kT": float(np.abs(values - exact).max()),
        "root mean square of error over stated error": float(np.sqrt(np.mean(z**2))),
    }
    print(json.dumps(figures, indent=1))
    if asked.json:
        Path(asked.json).write_text(json.dumps(figures, indent=1) + "\n")


def estimates(found):
    """log(Z_k / Z_0) and its error of every state."""
    rows = found["relative_to_state_0"]
    return np.array([row["mean"] for row in rows]), np.array([row["error"] for row in rows])


if __name__ == "__main__":
    main()
