"""The Python package beside the Rust calls it makes: what a call, a training and an import cost on top.

    pip install ./python          # or a wheel: the release profile
    cargo build --release -p diffclf-cli && cargo build --release -p diffclf --example evaluate_points
    python benches/python.py      # writes benches/python-results.json

Ratios are of medians of alternating rounds in one run, so that neighbours on the machine hit both sides alike. The Rust side is
`core/examples/evaluate_points.rs`: the same model file, the same points, `log_density` of the energy in the data's coordinates.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import diffclf

ROOT = Path(__file__).resolve().parent.parent
RELEASE = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release"
ROUNDS = int(os.environ.get("ROUNDS", "7"))
STEPS = int(os.environ.get("STEPS", "150"))


def rust(model: Path, points: Path, repeats: int) -> float:
    """Median seconds of a call in Rust."""
    line = [str(RELEASE / "examples" / "evaluate_points"), str(model), str(points), str(repeats)]
    return float(subprocess.run(line, check=True, capture_output=True, text=True).stdout)


def python(model: diffclf.Model, points: np.ndarray, repeats: int) -> float:
    """Median seconds of a call here."""
    model.log_density(points)
    seconds = []
    for _ in range(repeats):
        begin = time.perf_counter()
        model.log_density(points)
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds)


def calls(folder: Path, results: dict[str, object]) -> None:
    x = diffclf.system("mog40", dim=8).sample(8192, seed=1)
    model = diffclf.fit(x, name="x.npy", steps=50, score_steps=50, batch=512, progress=False)
    model.save(folder / "model.safetensors")
    for name, count, repeats in (("log_density of 65,536 x 8", 65_536, 5), ("log_density of one point", 1, 2000)):
        points = diffclf.system("mog40", dim=8).sample(count, seed=2).astype(np.float64)
        np.save(folder / "points.npy", points)
        there, here = [], []
        for _ in range(ROUNDS):
            there.append(rust(folder / "model.safetensors", folder / "points.npy", repeats))
            here.append(python(model, points, repeats))
        a, b = statistics.median(there), statistics.median(here)
        results[name] = {"rust_s": a, "python_s": b, "ratio": b / a, "above_us": 1e6 * (b - a)}


def training(folder: Path, results: dict[str, object]) -> None:
    x = diffclf.system("mog40", dim=8).sample(20_000, seed=1)
    np.save(folder / "x.npy", x)
    settings = {"steps": STEPS, "score_steps": STEPS, "base": "gaussian", "log_every": 10, "patience": 0}
    flags = [part for name, value in settings.items() for part in (f"--{name.replace('_', '-')}", str(value))]
    there, here = [], []
    for round_ in range(max(3, ROUNDS // 2)):
        line = [str(RELEASE / "diffclf"), "train", "x.npy", "-o", f"run{round_}", "--no-report", "--quiet", *flags]
        begin = time.perf_counter()
        subprocess.run(line, check=True, cwd=folder)
        there.append(time.perf_counter() - begin)
        begin = time.perf_counter()
        model = diffclf.fit(x, name="x.npy", progress=False, **settings)
        here.append(time.perf_counter() - begin)
        same = (folder / f"run{round_}" / "model.safetensors").read_bytes() == model.to_bytes()
        assert same, "the bytes differ"
    a, b = statistics.median(there), statistics.median(here)
    results[f"training, {2 * STEPS} steps of 2048 x 8"] = {"command_s": a, "python_s": b, "ratio": b / a, "same_bytes": True}


def imports(results: dict[str, object]) -> None:
    code = "import time; t = time.perf_counter(); import diffclf; print(time.perf_counter() - t)"
    alone = "import time; t = time.perf_counter(); import numpy; print(time.perf_counter() - t)"

    def run(code: str) -> float:
        return float(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)

    whole = [run(code) for _ in range(2 * ROUNDS)]
    numpy_ = [run(alone) for _ in range(2 * ROUNDS)]
    results["import"] = {"ms": 1e3 * statistics.median(whole), "of_which_numpy_ms": 1e3 * statistics.median(numpy_)}


def in_place(results: dict[str, object]) -> None:
    from diffclf import _native
    from diffclf._arrays import rows

    x = np.zeros((1000, 8), np.float32)
    results["C-contiguous float32 is read in place"] = _native.rows_address(rows(x)) == x.ctypes.data


def main() -> None:
    results: dict[str, object] = {}
    begin = os.times()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        imports(results)
        calls(folder, results)
        training(folder, results)
    in_place(results)
    wheel = os.environ.get("WHEEL")
    if wheel:
        results["wheel_MB"] = os.path.getsize(wheel) / 1e6
    record = {
        "command": "python benches/python.py",
        "machine": {
            "processor": _processor(),
            "cores": os.cpu_count(),
            "load": os.getloadavg(),
            "python": platform.python_version(),
            "numpy": np.__version__,
        },
        "seconds": os.times().elapsed - begin.elapsed,
        "rounds": ROUNDS,
        "results": results,
    }
    Path(__file__).with_name("python-results.json").write_text(json.dumps(record, indent=2) + "\n")
    print(json.dumps(record, indent=2))


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor()


main()
