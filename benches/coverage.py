"""Coverage of the stated free-energy intervals with trained models: many sets of rows, a small network trained on each.

    cargo build --release
    python3 benches/coverage.py target/release/diffclf --replicates 50 --folder target/coverage

Both states are mixtures in the plane that are normalised, so the exact answer is 0. Each replicate draws rows of its own, trains on them
and estimates from them, as a user does. Replicates that are in the folder's results.jsonl are not repeated. For each objective and
route: how many 95 % intervals hold the answer, the root mean square of the error, and the mean of the stated error.
"""

import argparse
import json
import math
import pathlib
import random
import struct
import subprocess
import tempfile

parser = argparse.ArgumentParser()
parser.add_argument("program")
parser.add_argument("--replicates", type=int, default=50)
parser.add_argument("--rows", type=int, default=1000)
parser.add_argument("--steps", type=int, default=400, help="of each of two stages")
parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("target/coverage"))
args = parser.parse_args()
args.folder.mkdir(parents=True, exist_ok=True)
results = args.folder / "results.jsonl"

# Weight, mean, standard deviation of the modes.
STATES = {
    "a": [(0.7, (-1.0, 0.2), 0.4), (0.3, (1.2, -0.4), 0.6)],
    "b": [(0.35, (-0.6, 1.0), 0.5), (0.65, (0.9, 0.1), 0.35)],
}
ROUTES = ["stated", "integration", "mbar", "learned_f"]


def draw(modes, generator):
    _, mean, spread = generator.choices(modes, [m[0] for m in modes])[0]
    return [generator.gauss(m, spread) for m in mean]


def energy(modes, x):
    terms = (w * math.exp(-sum((a - b) ** 2 for a, b in zip(x, m)) / (2 * s * s)) / (2 * math.pi * s * s) for w, m, s in modes)
    return -math.log(sum(terms))


def save(path, shape, values):
    header = str({"descr": "<f8", "fortran_order": False, "shape": shape}).encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + struct.pack(f"<{len(values)}d", *values))


def replicate(objective, seed):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        generator = random.Random(seed)
        for state, modes in STATES.items():
            rows = [draw(modes, generator) for _ in range(args.rows)]
            save(folder / f"{state}.npy", (args.rows, 2), [x for row in rows for x in row])
            save(folder / f"u_{state}.npy", (args.rows,), [energy(modes, row) for row in rows])
        stages = {"dsm": (0, 2 * args.steps)}.get(objective, (args.steps, args.steps))
        files = {k: str(folder / k) for k in ["a.npy", "b.npy", "u_a.npy", "u_b.npy", "run", "out.json"]}
        command = [args.program, "free-energy", "learn", files["a.npy"], files["b.npy"], "--energy-a", files["u_a.npy"],
                   "--energy-b", files["u_b.npy"], "--seed", str(seed), "--objective", objective,
                   "--score-steps", str(stages[0]), "--steps", str(stages[1]), "--rate", "0.003", "--average", "0.99",
                   "--batch", "256", "--levels", "4", "--width", "32", "--depth", "2", "--grid-levels", "64",
                   "--threads", "1", "-o", files["run"], "--json", files["out.json"], "--quiet"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        document = json.loads((folder / "out.json").read_text())
    return {route: [document[route]["mean"], document[route]["error"]] for route in ROUTES if document.get(route)}


done = [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []
known = {(d["objective"], d["seed"], d["rows"], d["steps"]) for d in done}
for seed in range(args.replicates):
    for objective in ["dsm", "dsm+diffclf"]:
        if (objective, seed, args.rows, args.steps) not in known:
            found = {"objective": objective, "seed": seed, "rows": args.rows, "steps": args.steps, **replicate(objective, seed)}
            done.append(found)
            with results.open("a") as log:
                log.write(json.dumps(found) + "\n")

print(f"{args.rows} rows of each state, {args.steps} + {args.steps} steps; exact answer 0")
for objective in ["dsm", "dsm+diffclf"]:
    for route in ROUTES:
        pairs = [d[route] for d in done if d["objective"] == objective and route in d and (d["rows"], d["steps"]) == (args.rows, args.steps)]
        if pairs:
            inside = sum(abs(mean) <= 1.96 * error for mean, error in pairs)
            rms = math.sqrt(sum(mean * mean for mean, _ in pairs) / len(pairs))
            stated = sum(error for _, error in pairs) / len(pairs)
            print(f"{objective:12} {route:12} {inside:3} of {len(pairs)}  rms {rms:.4f}  stated {stated:.4f}")
