"""Coverage of the stated free-energy intervals with trained models: many sets of rows, a small network trained on each.

    cargo build --release
    python3 benches/coverage.py target/release/diffclf --replicates 50 --folder target/coverage

Both states are normalised mixtures, so the exact answer is 0; beyond two dimensions the other columns are Gaussians of different width. Each replicate draws
rows of its own, trains on them and estimates from them, as a user does. `--correlated` makes them series: the mode changes with probability 0.1, and within
it rows follow an AR(1) of 0.8. Replicates that are in the folder's results.jsonl are not repeated. For each objective and route: how many 95 % intervals
hold the answer, the root mean square of the error, and the mean of the stated error.
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
parser.add_argument("--dim", type=int, default=2)
parser.add_argument("--correlated", action="store_true")
parser.add_argument("--steps", type=int, default=400, help="of each of two stages")
parser.add_argument("--path", type=int, nargs=2, default=[65, 1000], metavar=("LEVELS", "SAMPLES"), help="times along the path, and samples at each")
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


# Standard deviations of the other columns.
WIDTHS = {"a": [0.5 + 0.1 * k for k in range(args.dim - 2)], "b": [0.8 - 0.05 * k for k in range(args.dim - 2)]}
KEPT = 0.8


def series(state, generator):
    """Rows of a state: independent, or with the state's law at every row and a memory from row to row."""
    modes, rest = STATES[state], WIDTHS[state]
    pick = lambda: generator.choices(range(len(modes)), [m[0] for m in modes])[0]
    mode, noise = pick(), [generator.gauss(0, 1) for _ in range(args.dim)]
    rows = []
    for _ in range(args.rows):
        if not args.correlated or generator.random() < 0.1:
            mode = pick()
        keep = KEPT if args.correlated else 0.0
        noise = [keep * z + math.sqrt(1 - keep * keep) * generator.gauss(0, 1) for z in noise]
        _, mean, spread = modes[mode]
        rows.append([m + spread * z for m, z in zip(mean, noise)] + [w * z for w, z in zip(rest, noise[2:])])
    return rows


def energy(state, x):
    terms = (
        w * math.exp(-sum((a - b) ** 2 for a, b in zip(x[:2], m)) / (2 * s * s)) / (2 * math.pi * s * s) for w, m, s in STATES[state]
    )
    rest = sum(0.5 * (y / w) ** 2 + math.log(w) + 0.5 * math.log(2 * math.pi) for y, w in zip(x[2:], WIDTHS[state]))
    return rest - math.log(sum(terms))


def save(path, shape, values):
    header = str({"descr": "<f8", "fortran_order": False, "shape": shape}).encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + struct.pack(f"<{len(values)}d", *values))


def replicate(objective, seed):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        generator = random.Random(seed)
        for state in STATES:
            rows = series(state, generator)
            save(folder / f"{state}.npy", (args.rows, args.dim), [x for row in rows for x in row])
            save(folder / f"u_{state}.npy", (args.rows,), [energy(state, row) for row in rows])
        stages = {"dsm": (0, 2 * args.steps)}.get(objective, (args.steps, args.steps))
        files = {k: str(folder / k) for k in ["a.npy", "b.npy", "u_a.npy", "u_b.npy", "run", "out.json"]}
        command = [args.program, "free-energy", "learn", files["a.npy"], files["b.npy"], "--energy-a", files["u_a.npy"],
                   "--energy-b", files["u_b.npy"], "--seed", str(seed), "--objective", objective,
                   "--score-steps", str(stages[0]), "--steps", str(stages[1]), "--rate", "0.003", "--average", "0.99",
                   "--batch", "256", "--levels", "4", "--width", "32", "--depth", "2", "--grid-levels", "64",
                   "--path-levels", str(args.path[0]), "--path-samples", str(args.path[1]), "--threads", "1", "-o", files["run"], "--json", files["out.json"], "--quiet"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        document = json.loads((folder / "out.json").read_text())
    return {route: [document[route]["mean"], document[route]["error"]] for route in ROUTES if document.get(route)}


CASE = {"rows": args.rows, "steps": args.steps, "dim": args.dim, "correlated": args.correlated, "path": args.path}


def of_case(found):
    return all(found.get(key, {"dim": 2, "correlated": False, "path": [65, 1000]}.get(key)) == value for key, value in CASE.items())


done = [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []
known = {(d["objective"], d["seed"]) for d in done if of_case(d)}
for seed in range(args.replicates):
    for objective in ["dsm", "dsm+diffclf"]:
        if (objective, seed) not in known:
            found = {"objective": objective, "seed": seed, **CASE, **replicate(objective, seed)}
            done.append(found)
            with results.open("a") as log:
                log.write(json.dumps(found) + "\n")

print(f"{args.rows} rows of each state, dimension {args.dim}, {'series' if args.correlated else 'independent'}, {args.steps} + {args.steps} steps; exact answer 0")
for objective in ["dsm", "dsm+diffclf"]:
    for route in ROUTES:
        pairs = [d[route] for d in done if d["objective"] == objective and route in d and of_case(d)]
        if pairs:
            inside = sum(abs(mean) <= 1.96 * error for mean, error in pairs)
            rms = math.sqrt(sum(mean * mean for mean, _ in pairs) / len(pairs))
            stated = sum(error for _, error in pairs) / len(pairs)
            print(f"{objective:12} {route:12} {inside:3} of {len(pairs)}  rms {rms:.4f}  stated {stated:.4f}")
