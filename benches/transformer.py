#!/usr/bin/env python3
"""The graph transformer beside JAX: the same numbers from the same weights, then milliseconds of processor time.

    python benches/transformer.py                # needs jax and numpy; builds our side with cargo
    python benches/transformer.py --check-only

`explicit` is the network as its formula stands, with a row for every ordered pair of particles and jax.grad throughout: it shares
nothing with diffclf's graph and checks it in float64. `folded` is JAX without rows of pairs, with tables of time features, and in an
evaluation with one row of time features for all configurations, so that queries, keys and values of the first layer are computed once, as
in diffclf; `by rows` is the same with time features for each configuration. All are jitted, in micro-batches of the fastest size. Ratios are
against the fastest. One thread, processor time per configuration: 5 beads, width 96, 2 layers, 8 heads of 64.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
GOAL = 0.55
LIMIT = 2e-5


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check-only", action="store_true", help="compare numbers, time nothing")
    parser.add_argument("--binary", type=Path, help="our side as it was built, instead of building it")
    parser.add_argument("--seconds", type=float, default=3.0, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=3, help="measurements of each, alternating")
    parser.add_argument("--json", type=Path, help="write the figures here")
    return parser.parse_args()


OPTIONS = arguments()
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

sys.path.insert(0, str(HERE))
import common  # noqa: E402

jax.config.update("jax_enable_x64", True)

BEADS, WIDTH, DEPTH, HEADS, HEAD = 5, 96, 2, 8, 64
DIM = 3 * BEADS


def norm(h):
    h = h - h.mean(-1, keepdims=True)
    return h / jnp.sqrt((h * h).mean(-1, keepdims=True) + 1e-6)


def gate(new, old, u, w):
    g = jax.nn.sigmoid(new @ u + old @ w)
    return g * new + (1 - g) * old


def heads(x):
    return x.reshape(*x.shape[:-1], HEADS, HEAD)


def scalar(params, features, x, explicit):
    """The sum of read-outs of configurations `x` (..., 15) with time features (..., 64)."""
    x = x.reshape(*x.shape[:-1], BEADS, 3)
    h = (features @ params["wt"] + params["b0"])[..., None, :] + params["types"]
    for layer in range(DEPTH):
        p = lambda name: params[f"l{layer}.{name}"]  # noqa: E731, B023
        n = norm(h)
        q, k, v = heads(n @ p("q") + p("q0")), heads(n @ p("k")), heads(n @ p("v") + p("v0"))
        if explicit:
            # From particle i to particle j.
            edge = heads((x[..., None, :, :] - x[..., :, None, :]) @ p("e"))
            keys, values = k[..., None, :, :, :] + edge, v[..., None, :, :, :] + edge
            weights = jax.nn.softmax(jnp.einsum("...ihc,...ijhc->...hij", q, keys) / HEAD**0.5, -1)
            o = jnp.einsum("...hij,...ijhc->...ihc", weights, values)
        else:
            place = heads(x @ p("e"))
            weights = jax.nn.softmax(jnp.einsum("...ihc,...jhc->...hij", q, k + place) / HEAD**0.5, -1)
            o = jnp.einsum("...hij,...jhc->...ihc", weights, v + place) - place
        new = o.reshape(*o.shape[:-2], HEADS * HEAD) @ p("o") + p("o0")
        h = gate(new, h, p("gu"), p("gw"))
        new = jax.nn.gelu(norm(h) @ p("a") + p("a0"), approximate=True) @ p("b") + p("b0")
        h = gate(new, h, p("hu"), p("hw"))
    return (h.sum(-2) @ params["out"])[..., 0]


def energy(params, at, y, explicit):
    """U of the preconditioned diffusion energy (data mean 0, standard deviation 1)."""
    a = jnp.sqrt(at["scale"] ** 2 + at["noise"] ** 2)
    x = y / a[..., None]
    constant = DIM / 2 * jnp.log(2 * jnp.pi * a**2)
    return (x * x).sum(-1) / 2 + constant - scalar(params, at["features"], x, explicit) / at["noise_level"]


def energy_and_score(params, at, y, explicit):
    value, pull = jax.vjp(lambda y: energy(params, at, y, explicit), y)
    return value, -pull(jnp.ones_like(value))[0]


def tables(schedule, kind):
    columns = {name: jnp.asarray(schedule[name], kind) for name in ("scale", "noise", "noise_level")}
    return columns | {"features": jnp.asarray(common.time_features(schedule["tau"]), kind)}


def loss_of(params, table, x0, z, levels, explicit):
    at = jax.tree.map(lambda column: column[levels], table)
    noise = at["noise"][..., None]
    y = at["scale"][..., None] * x0[:, None] + noise * z
    own, score = energy_and_score(params, at, y, explicit)
    weight = at["noise"] ** 2 * (at["noise_level"] ** 2 + 1)
    loss = (weight * ((score + z / noise) ** 2).sum(-1)).mean()
    if levels.shape[1] > 1:
        others = jnp.roll(levels, -1, 1)
        at = jax.tree.map(lambda column: column[others], table)
        free = params["free_energy"][:, 0]
        logits = jnp.stack([free[levels] - own, free[others] - energy(params, at, y, explicit)])
        loss = loss + (jax.nn.logsumexp(logits, 0) - logits[0]).mean()
    return loss


def load(folder):
    return {path.stem.removeprefix("net."): np.load(path) for path in folder.glob("*.npy")}


def relative(found, expected):
    found, expected = np.asarray(found, np.float64), np.asarray(expected, np.float64)
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def check(folder):
    """Ours in float32 against the explicit formula in float64, and the folded one too."""
    params = {name: jnp.asarray(value, jnp.float64) for name, value in load(folder / "params").items()}
    arrays = load(folder)
    points = jnp.asarray(arrays["points"], jnp.float64)
    at = tables(common.vp_schedule(np.full(len(points), 0.3)), jnp.float64)
    found = {}
    exact = energy_and_score(params, at, points, True)
    other = energy_and_score(params, at | {"features": at["features"][:1]}, points, False)
    for name, value, folded in zip(("energy", "score"), exact, other, strict=True):
        found[name] = relative(arrays[name], value)
        found[f"{name}, folded"] = relative(folded, value)
    table = tables(common.vp_tables(), jnp.float64)
    for case in ("dsm", "clf"):
        inputs = load(folder / case)
        x0, z = jnp.asarray(inputs["x0"], jnp.float64), jnp.asarray(inputs["z"], jnp.float64)
        levels = jnp.asarray(inputs["levels"].astype(np.int64))
        loss, gradient = jax.value_and_grad(loss_of)(params, table, x0, z, levels, True)
        found[f"{case} loss"] = relative(inputs["loss"], np.array([loss]))
        flat = lambda tree: np.concatenate([np.asarray(tree[name]).ravel() for name in sorted(params)])  # noqa: E731
        found[f"{case} gradient"] = relative(flat(load(folder / case / "gradient")), flat(gradient))
    return found


class Peer:
    """One case in JAX, float32, in micro-batches of the fastest size among some."""

    def __init__(self, case, params, explicit, once=False):
        params = {name: jnp.asarray(value, jnp.float32) for name, value in params.items()}
        rng = np.random.default_rng(0)
        levels = {"eval": 1, "dsm": 1, "clf": 2}[case]
        self.params, self.best = params, None
        for size in (32, 128, 512):
            points = jnp.asarray(rng.standard_normal((size, DIM)), jnp.float32)
            if case == "eval":
                at = tables(common.vp_schedule(np.full(size, 0.3)), jnp.float32)
                if once:
                    at["features"] = at["features"][:1]
                call = jax.jit(lambda p, at=at, y=points: energy_and_score(p, at, y, explicit))
            else:
                table = tables(common.vp_tables(), jnp.float32)
                z = jnp.asarray(rng.standard_normal((size, levels, DIM)), jnp.float32)
                first, width = common.strata(levels)
                drawn = jnp.asarray(first + rng.integers(0, width, (size, levels)))
                gradient = jax.value_and_grad(loss_of)
                call = jax.jit(lambda p, t=table, x=points, z=z, k=drawn: gradient(p, t, x, z, k, explicit))
            jax.block_until_ready(call(params))
            used = self.run(call, size, 0.7)
            if self.best is None or used < self.best[0]:
                self.best = (used, call, size)

    def run(self, call, size, seconds):
        begin, used, count = time.perf_counter(), time.process_time(), 0
        while time.perf_counter() - begin < seconds or count < 3:
            jax.block_until_ready(call(self.params))
            count += 1
        return (time.process_time() - used) / count / size * 1e3

    def time(self, seconds):
        return self.run(*self.best[1:], seconds)


def main():
    binary = OPTIONS.binary
    if binary is None:
        subprocess.run(["cargo", "build", "--release", "-p", "diffclf", "--example", "bench_transformer"], cwd=ROOT, check=True)
        binary = ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "release" / "examples" / "bench_transformer"
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([binary, "--dump", folder], check=True)
        found = check(Path(folder))
        params = load(Path(folder) / "params")
    print("Largest difference from the explicit formula in float64, over the largest number:")
    for name, value in found.items():
        print(f"  {name:18} {value:.1e}")
    if max(found.values()) > LIMIT:
        sys.exit(f"The numbers differ by more than {LIMIT:g}: these programs do not compute the same network.")
    if OPTIONS.check_only:
        return
    report = {"agreement": found, "cases": {}}
    header = ["CPU ms per configuration", "ours", "jax explicit", "jax by rows", "jax folded", "ours / best", "goal"]
    print(f"\n| {' | '.join(header)} |\n|{' --- |' * len(header)}")
    for case in ("eval", "dsm", "clf"):
        peers = {"explicit": Peer(case, params, True), "by rows": Peer(case, params, False)}
        if case == "eval":
            peers["folded"] = Peer(case, params, False, once=True)
        measured = {"ours": [], **{name: [] for name in peers}}
        for _ in range(OPTIONS.rounds):
            answer = subprocess.run(
                [binary, "--case", case, "--seconds", str(OPTIONS.seconds)], check=True, capture_output=True, text=True
            )
            measured["ours"].append(json.loads(answer.stdout)["cpu_ms"])
            for name, peer in peers.items():
                measured[name].append(peer.time(OPTIONS.seconds))
        middle = {name: float(np.median(times)) for name, times in measured.items()}
        ratio = middle["ours"] / min(middle[name] for name in peers)
        times = [f"{middle[name]:.3f}" if name in middle else "" for name in ("ours", "explicit", "by rows", "folded")]
        print(f"| {case} | {' | '.join(times)} | {ratio:.2f} | {GOAL} |", flush=True)
        sizes = {name: peer.best[2] for name, peer in peers.items()}
        report["cases"][case] = {"measured": measured, "ratio": ratio, "micro_batches": sizes}
    if OPTIONS.json:
        OPTIONS.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
