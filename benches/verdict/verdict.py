"""Is the verdict right? Twenty models that ought to be good, twenty that are bad on purpose, and what `diffclf diagnose` says of each.

    python -m venv target/verdict-venv && target/verdict-venv/bin/pip install numpy
    cargo build --release
    target/verdict-venv/bin/python benches/verdict/verdict.py --program target/release/diffclf --threads 2

Rows come from known mixtures, so each line also tells the truth: `excess` is the mean of log p(truth) - log p(model) over fresh rows,
`integral` that of exp(log p) by draws from the truth, half of them 1.5 times as wide. Both neglect the blur of the smallest time. Models are kept in --folder: a second
run judges them again without training. Goals: no bad model passes, at most one good model fails.
"""

import argparse
import json
import subprocess
from pathlib import Path
from time import perf_counter

import numpy as np
from cases import BAD, GOOD

JUDGES = 4000
DRAWS = 20_000


def run(program, *words):
    return subprocess.run([str(program), *map(str, words)], capture_output=True, text=True)


def train(program, folder, case, number, threads):
    rng = np.random.default_rng([number, 1])
    rows = case["law"].sample(case["rows"], rng)
    if case["spoil"]:
        rows = case["spoil"](rows, rng)
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / "train.npy", rows)
    rng = np.random.default_rng([number, 2])
    rows = case["law"].sample(JUDGES, rng)
    np.save(folder / "judge.npy", case["judge"](rows, rng) if case["judge"] else rows)
    begin = perf_counter()
    words = case["flags"].split()
    for flag in {word for word in words if word.startswith("--") and words.count(word) > 1}:
        first = words.index(flag)
        del words[first : first + 2]
    done = run(program, "train", folder / "train.npy", "-o", folder / "run", *words, "--force", "--no-report", "--quiet", "--threads", threads)
    if done.returncode:
        raise SystemExit(f"{case['name']}: {done.stderr}")
    (folder / "seconds.txt").write_text(f"{perf_counter() - begin:.1f}")


def truth(program, folder, case, threads):
    """Excess nats of fresh rows, and the integral."""
    if case["judge"]:
        return None, None
    law, rng = case["law"], np.random.default_rng(3)

    def density(rows):
        np.save(folder / "points.npy", rows)
        done = run(program, "density", folder / "run", folder / "points.npy", "-o", folder / "out.npy", "--force", "--quiet", "--threads", threads)
        if done.returncode:
            raise SystemExit(done.stderr)
        return np.load(folder / "out.npy")

    judges = np.load(folder / "judge.npy")
    excess = float(np.mean(law.log_density(judges) - density(judges)))
    points = np.concatenate([law.sample(DRAWS, rng), law.sample(DRAWS, rng, 1.5)])
    drawn = np.logaddexp(law.log_density(points), law.log_density(points, 1.5)) - np.log(2)
    return excess, float(np.mean(np.exp(np.minimum(density(points) - drawn, 700.0))))


def judge(program, folder, case, threads):
    begin = perf_counter()
    out = folder / "verdict.json"
    done = run(program, "diagnose", folder / "run", folder / "judge.npy", "--json", out, "--force", "--quiet", "--threads", threads)
    if done.returncode not in (0, 1, 4):
        raise SystemExit(f"{case['name']}: {done.stderr}")
    (folder / "verdict.txt").write_text(done.stdout)
    found = json.loads(out.read_text())["diagnosis"]
    named = lambda verdict: [check["name"] for check in found["checks"] if check["verdict"] == verdict]
    return dict(verdict=found["verdict"], failed=named("fail"), warned=named("warn"), seconds=round(perf_counter() - begin, 1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="target/release/diffclf", type=Path)
    parser.add_argument("--folder", default="target/verdict", type=Path)
    parser.add_argument("--out", default=None, type=Path, help="results as JSON")
    parser.add_argument("--threads", default=1, type=int)
    parser.add_argument("--only", default="", help="part of the names of the cases to look at")
    parser.add_argument("--train-only", action="store_true")
    args = parser.parse_args()
    args.program = args.program.resolve()
    results = []
    # Bad ones first: most of them are quick.
    for kind, cases in [("bad", BAD), ("good", GOOD)]:
        for number, case in enumerate(cases):
            if args.only not in case["name"]:
                continue
            folder = args.folder / f"{kind}-{number:02}"
            if not (folder / "seconds.txt").exists():
                train(args.program, folder, case, number + 100 * (kind == "good"), args.threads)
            if args.train_only:
                continue
            excess, integral = truth(args.program, folder, case, args.threads)
            found = judge(args.program, folder, case, args.threads)
            trained = float((folder / "seconds.txt").read_text())
            results.append(dict(kind=kind, name=case["name"], trained=trained, excess=excess, integral=integral, **found))
            figures = "      -       -" if excess is None else f"{excess:7.3f} {integral:7.3g}"
            print(f"{kind:5}{case['name']:34}{figures}  {found['verdict']:5} {', '.join(found['failed'] + ['(' + w + ')' for w in found['warned']])}", flush=True)
    if args.train_only:
        return
    count = lambda kind, verdict: sum(r["kind"] == kind and r["verdict"] == verdict for r in results)
    for kind in ["good", "bad"]:
        print(f"{kind}: " + ", ".join(f"{count(kind, verdict)} {verdict}" for verdict in ["pass", "warn", "fail"]))
    met = count("bad", "pass") == 0 and count("good", "fail") <= 1
    print("goals met" if met else "goals missed")
    if args.out:
        args.out.write_text(json.dumps(dict(goals_met=met, models=results), indent=1) + "\n")


if __name__ == "__main__":
    main()
