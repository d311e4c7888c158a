"""A training step on states beside JAX: batch 1024, 16 spins, a perceptron of three layers of 128, score entropy over all sites.

    cargo build --release -p diffclf --example bench_states
    python -m venv /tmp/jax && /tmp/jax/bin/pip install jax
    /tmp/jax/bin/python benches/states.py [--rounds 5] [--seconds 3] [--levels 1] [--sites 16]

Both draw noise, compute the loss and its gradient, clip it and take a step of Adam, in 32-bit floats on the same two threads, in turns. The JAX
step is jitted on data of the device, ten steps in one `lax.scan` with donated buffers and fast-math flags; its first layer is shared between a row and its
changes, as ours is. `--out FILE` writes the figures as JSON.
"""

import argparse
import json
import os
import statistics
import subprocess
import time
from pathlib import Path

FLAGS = "--xla_cpu_multi_thread_eigen=true intra_op_parallelism_threads=2 --xla_cpu_enable_fast_math=true"
os.environ.setdefault("XLA_FLAGS", FLAGS)
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402

BATCH, SITES, WIDTH, DEPTH, FEATURES, LEVELS = 1024, 16, 128, 3, 32, 128
# Steps of JAX in one call.
SCANNED = 10


def parameters(key):
    keys = jax.random.split(key, DEPTH + 2)
    scale = lambda k, n, m: jax.random.normal(k, (n, m)) / n**0.5
    return {
        "wx": scale(keys[0], 2 * SITES, WIDTH),
        "wt": scale(keys[1], FEATURES, WIDTH),
        "b0": jnp.zeros(WIDTH),
        "hidden": [(scale(keys[l + 1], WIDTH, WIDTH), jnp.zeros(WIDTH)) for l in range(1, DEPTH)],
        "wo": jnp.zeros(WIDTH),
        "bo": jnp.zeros(()),
        "free_energy": jnp.zeros(LEVELS),
    }


def tail(p, z):
    for w, b in p["hidden"]:
        z = jax.nn.silu(z) @ w + b
    return jax.nn.silu(z) @ p["wo"] + p["bo"]


def step_of(n, sites):
    place = jnp.linspace(0, 1, LEVELS)
    times = (1e-4 ** (1 / 3) + (1 - 1e-4 ** (1 / 3)) * place) ** 3
    keep = 1 - (1 - 1e-3) * times
    waves = 3 * place[:, None] * 16 ** (jnp.arange(FEATURES // 2) / (FEATURES // 2 - 1))
    features = jnp.concatenate([jnp.sin(waves), jnp.cos(waves)], 1)

    def loss(p, x, key):
        ks = jax.random.split(key, 4)
        level = jax.random.randint(ks[0], (x.shape[0], n), 0, LEVELS)
        alpha = keep[level][..., None]
        hit = jax.random.uniform(ks[1], (x.shape[0], n, SITES)) > alpha
        y = jnp.where(hit, jax.random.bernoulli(ks[2], 0.5, hit.shape), x[:, None] == 1).astype(jnp.int32)
        one_hot = jax.nn.one_hot(y, 2).reshape(x.shape[0], n, 2 * SITES)
        space = one_hot @ p["wx"]
        table = features @ p["wt"] + p["b0"]
        first = space + table[level]
        own = tail(p, first)
        weights = p["wx"].reshape(SITES, 2, WIDTH)
        if sites == SITES:
            chosen = jnp.broadcast_to(jnp.arange(SITES), y.shape)
        else:
            chosen = jnp.argsort(jax.random.uniform(ks[3], y.shape))[..., :sites]
        shown = jnp.take_along_axis(y, chosen, -1)
        change = (weights[:, 1] - weights[:, 0])[chosen] * (1 - 2 * shown)[..., None]
        moved = tail(p, first[..., None, :] + change)
        log_ratio = alpha * (moved - own[..., None])
        start = jnp.take_along_axis(jnp.broadcast_to(x[:, None], y.shape), chosen, -1)
        chance = lambda same: alpha * same + (1 - alpha) / 2
        target = chance(start != shown) / chance(start == shown)
        weight = (1 - alpha) / 2 * SITES / sites
        entropy = jnp.exp(log_ratio) - target * log_ratio + target * (jnp.log(target) - 1)
        total = (weight * entropy).sum((1, 2)) / n
        if n > 1:
            every = tail(p, space[:, :, None] + table[level][:, None, :])
            log_p = -SITES * jnp.log(2.0) + keep[level][:, None, :] * every + p["free_energy"][level][:, None, :]
            total = total - jnp.trace(jax.nn.log_softmax(log_p, -1), axis1=1, axis2=2) / n
        return total.mean()

    def step(state, data, number):
        p, m, v, key = state
        key, rows, noise = jax.random.split(key, 3)
        x = data[jax.random.randint(rows, (BATCH,), 0, data.shape[0])]
        gradient = jax.grad(loss)(p, x, noise)
        norm = jnp.sqrt(sum(jnp.sum(g * g) for g in jax.tree.leaves(gradient)))
        gradient = jax.tree.map(lambda g: g * jnp.minimum(1.0, 1.0 / norm), gradient)
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, gradient)
        v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, gradient)
        a, b = 1 - 0.9**number, 1 - 0.999**number
        p = jax.tree.map(lambda p, m, v: p - 1e-3 * (m / a) / (jnp.sqrt(v / b) + 1e-8), p, m, v)
        return p, m, v, key

    def many(state, data, first):
        body = lambda state, number: (step(state, data, number), None)
        return jax.lax.scan(body, state, first + jnp.arange(SCANNED, dtype=jnp.float32))[0]

    return jax.jit(many, donate_argnums=0)


def time_jax(n, sites, seconds):
    p = parameters(jax.random.key(0))
    zeros = lambda: jax.tree.map(jnp.zeros_like, p)
    data = jax.random.bernoulli(jax.random.key(1), 0.6, (60000, SITES)).astype(jnp.int32)
    step, state = step_of(n, sites), (p, zeros(), zeros(), jax.random.key(2))
    state = step(state, data, 1.0)
    jax.block_until_ready(state)
    times, begin = [], time.perf_counter()
    while time.perf_counter() - begin < seconds:
        start = time.perf_counter()
        state = step(state, data, 10.0)
        jax.block_until_ready(state)
        times.append(1e3 * (time.perf_counter() - start) / SCANNED)
    return statistics.median(times)


def main():
    arguments = argparse.ArgumentParser()
    for name, default in [("rounds", 5), ("seconds", 3), ("levels", 1), ("sites", SITES), ("threads", 2)]:
        arguments.add_argument(f"--{name}", type=int, default=default)
    arguments.add_argument("--out", type=Path)
    a = arguments.parse_args()
    binary = Path(__file__).parent.parent / "target/release/examples/bench_states"
    ours, theirs = [], []
    for _ in range(a.rounds):
        words = [str(x) for x in (BATCH, a.sites, a.levels, a.seconds, a.threads)]
        ours.append(float(subprocess.check_output([binary, *words], text=True).split()[0]))
        theirs.append(time_jax(a.levels, a.sites, a.seconds))
    own, other = statistics.median(ours), statistics.median(theirs)
    print(f"batch {BATCH}, {SITES} spins, {a.sites} sites changed, {a.levels} levels, {DEPTH} x {WIDTH}, {a.threads} threads")
    print(f"diffclf {own:.2f} ms, JAX {jax.__version__} {other:.2f} ms, ratio {own / other:.2f}")
    if a.out:
        case = {"batch": BATCH, "spins": SITES, "changed": a.sites, "levels": a.levels, "network": f"{DEPTH} x {WIDTH}", "threads": a.threads}
        found = {"diffclf_ms": own, "jax_ms": other, "ratio": own / other, "rounds": {"diffclf": ours, "jax": theirs}}
        known = json.loads(a.out.read_text()) if a.out.is_file() else []
        a.out.write_text(json.dumps([*known, {**case, "jax": jax.__version__, **found}], indent=1) + "\n")
    print("rounds:", [f"{x:.2f}" for x in ours], [f"{x:.2f}" for x in theirs])


if __name__ == "__main__":
    main()
