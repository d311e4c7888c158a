"""What the peers of the particle benchmark share: the commands they answer and the clock."""

import json
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import common

THREADS = int(os.environ.get("OMP_NUM_THREADS", "2"))


def at_time(time):
    """The columns of egnn.tables and the time features at one time, a row each."""
    at = common.vp_schedule(np.array([time]))
    a = np.sqrt(at["scale"] ** 2 + at["noise"] ** 2)
    return np.stack([at["scale"], at["noise"], at["noise_level"], a], -1), common.time_features(at["tau"])


def measure(work, seconds):
    """Least processor time and median wall time of a call, in milliseconds."""
    cpu, wall, begin = [], [], time.perf_counter()
    while len(wall) < 3 or time.perf_counter() - begin < seconds:
        start = time.process_time(), time.perf_counter()
        work()
        cpu.append((time.process_time() - start[0]) * 1e3)
        wall.append((time.perf_counter() - start[1]) * 1e3)
    return {"cpu_ms": min(cpu), "ms": float(np.median(wall)), "best_ms": min(wall)}


def serve(peer):
    """`check CASE FOLDER` writes what the peer computes into a file and names it; `prepare CASE FOLDER MICRO` compiles; `time CASE SECONDS`
    times what was prepared."""
    ready = {}
    for line in sys.stdin:
        command, name, *rest = line.split()
        if command == "check":
            answer = peer(name, rest[0], 4).answer()
            path = Path(tempfile.mkstemp(suffix=".npz")[1])
            np.savez(path, **answer)
            print(json.dumps({"file": str(path)}), flush=True)
        elif command == "prepare":
            begin = time.perf_counter()
            try:
                ready[name] = peer(name, rest[0], int(rest[1]))
                ready[name].run()
            except Exception as problem:  # noqa: BLE001 - compilers fail in many ways
                print(json.dumps({"error": str(problem)[:200]}), flush=True)
                continue
            print(json.dumps({"compile_s": time.perf_counter() - begin, "units": len(ready[name].rows)}), flush=True)
        else:
            print(json.dumps(measure(ready[name].run, float(rest[0]))), flush=True)
