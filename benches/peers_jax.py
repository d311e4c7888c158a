"""JAX's side of the benchmark: `plain`, jitted as one would write it in a script, and `tuned`.

Tuned: many steps per call inside lax.scan, gradient by hand (byhand.py), time features and schedule from tables of the
grid's levels, a counter-based generator that fuses, flat weights, donated buffers, fast-math flags.
"""

import argparse
import math
import os
from functools import partial

FAST_MATH = (
    "--xla_cpu_enable_fast_math=true --xla_cpu_fast_math_honor_nans=false --xla_cpu_fast_math_honor_infs=false "
    "--xla_cpu_fast_math_honor_division=false --xla_cpu_fast_math_honor_functions=false"
)


def variant_from_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("variant", choices=("plain", "tuned"))
    return parser.parse_args().variant


# XLA reads its flags when JAX is imported.
VARIANT = variant_from_arguments() if __name__ == "__main__" else None
if VARIANT == "tuned":
    os.environ["XLA_FLAGS"] = f"{FAST_MATH} {os.environ.get('XLA_FLAGS', '')}".strip()
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax import lax  # noqa: E402

import byhand  # noqa: E402
import common  # noqa: E402
from common import BETA1, BETA2, CLIP, EPSILON, EVAL_TIME, HIDDEN, LEARNING_RATE, SAMPLES  # noqa: E402

float32 = partial(jnp.asarray, dtype=jnp.float32)


def inputs(arrays):
    """Inputs of one step: the source rows, z, levels."""
    x = [float32(arrays[name]) for name in ("x0", "x1") if name in arrays]
    return x, float32(arrays["z"]), jnp.asarray(arrays["levels"].astype(np.int32))


class Peer:
    """What both variants share: data and strata."""

    def __init__(self, case):
        self.case = case
        if case.kind == "eval":
            self.points = float32(np.random.default_rng(9).standard_normal((case.batch, case.dim)))
        else:
            self.data = [float32(common.mixture(case.dim, seed)) for seed in ((1, 2) if case.kind == "si" else (1,))]
        self.first, self.size = (jnp.asarray(part) for part in common.strata(case.levels))

    def evaluate(self, points, time):
        return tuple(np.asarray(part) for part in self.energy_score(float32(points), time))


# --- plain: jit of the natural code ---------------------------------------------------------------------------------


class Plain(Peer):
    """Energy as a function of one batch, jax.grad for the score, jax.value_and_grad for the loss, one jit per step."""

    def __init__(self, case, params=None):
        super().__init__(case)
        self.params = jax.tree.map(float32, params or common.parameters(case))
        self.state = self.params, jax.tree.map(jnp.zeros_like, self.params), jax.tree.map(jnp.zeros_like, self.params)
        schedule = common.interpolant_tables() if case.kind == "si" else common.vp_tables()
        self.table = {name: float32(value) for name, value in schedule.items()}
        self.frequencies = float32(common.FREQUENCIES)
        self.key, self.count = jax.random.key(0), 0
        self.jitted = jax.jit(self.step, donate_argnums=0)
        self.jitted_evaluation = jax.jit(self.energy_and_score)

    def network(self, params, prefix, tau, x):
        p = lambda name: params[prefix + name]  # noqa: E731
        angle = tau[..., None] * self.frequencies
        features = jnp.concatenate([jnp.sin(angle), jnp.cos(angle)], -1)
        a = jax.nn.silu(x @ p("wx") + features @ p("wt") + p("b0"))
        for layer in range(1, HIDDEN):
            a = jax.nn.silu(a @ p(f"w{layer}") + p(f"b{layer}"))
        return a @ p("wo") + p("bo")

    def energy(self, params, at, y):
        """`at` holds the schedule's values at the level of each row."""
        if self.case.kind == "si":
            vector, scalar = self.network(params, "net1.", at["tau"], y), self.network(params, "net2.", at["tau"], y)
            return (y * vector).sum(-1) + scalar[..., 0]
        a_in = jnp.sqrt(at["scale"] ** 2 + at["noise"] ** 2)
        x = y / a_in[..., None]
        scalar = (x * self.network(params, "", at["tau"], x)).sum(-1)
        constant = self.case.dim / 2 * jnp.log(2 * math.pi * a_in**2)
        return (x * x).sum(-1) / 2 + constant - scalar / at["noise_level"]

    def energy_and_score(self, params, at, y):
        energy, pull = jax.vjp(lambda y: self.energy(params, at, y), y)
        return energy, -pull(jnp.ones_like(energy))[0]

    def loss_of(self, params, x, z, levels):
        at = jax.tree.map(lambda column: column[levels], self.table)
        noise = at["noise"][..., None]
        if self.case.kind == "si":
            t = at["time"][..., None]
            centre = (1 - t) * x[0][:, None] + t * x[1][:, None]
            y = centre + noise * z
            own, plus = self.energy_and_score(params, at, y)
            minus = self.energy_and_score(params, at, centre - noise * z)[1]
            both = (noise**2 * ((plus + z / noise) ** 2 + (minus - z / noise) ** 2)).sum(-1)
            loss = both.mean() / 2
        else:
            y = at["scale"][..., None] * x[0][:, None] + noise * z
            own, score = self.energy_and_score(params, at, y)
            weight = at["noise"] ** 2 * (at["noise_level"] ** 2 + 1)
            loss = (weight * ((score + z / noise) ** 2).sum(-1)).mean()
        if self.case.levels > 1:
            shifted = jnp.stack([jnp.roll(levels, -k, 1) for k in range(1, self.case.levels)])
            at = jax.tree.map(lambda column: column[shifted], self.table)
            others = self.energy(params, at, jnp.broadcast_to(y, shifted.shape + y.shape[-1:]))
            free = params["free_energy"]
            logits = jnp.concatenate([(free[levels] - own)[None], free[shifted] - others])
            loss = loss + (jax.nn.logsumexp(logits, 0) - logits[0]).mean()
        return loss

    def step(self, state, key, count):
        params, m, v = state
        case = self.case
        keys = jax.random.split(jax.random.fold_in(key, count), 3)
        x = [q[jax.random.randint(jax.random.fold_in(keys[0], i), (case.batch,), 0, SAMPLES)] for i, q in enumerate(self.data)]
        levels = self.first + (jax.random.uniform(keys[1], (case.batch, case.levels)) * self.size).astype(jnp.int32)
        z = jax.random.normal(keys[2], (case.batch, case.levels, case.dim))
        loss, grads = jax.value_and_grad(self.loss_of)(params, x, z, levels)
        norm = jnp.sqrt(sum(jnp.sum(g * g) for g in jax.tree.leaves(grads)))
        grads = jax.tree.map(lambda g: g * jnp.minimum(1.0, CLIP / (norm + 1e-12)), grads)
        m = jax.tree.map(lambda m, g: BETA1 * m + (1 - BETA1) * g, m, grads)
        v = jax.tree.map(lambda v, g: BETA2 * v + (1 - BETA2) * g * g, v, grads)
        c1, c2 = 1 - BETA1**count, 1 - BETA2**count
        params = jax.tree.map(
            lambda p, m, v: p - LEARNING_RATE * (m / c1) / (jnp.sqrt(v / c2) + EPSILON), params, m, v
        )
        return (params, m, v), loss

    def block(self):
        if self.case.kind == "eval":
            jax.block_until_ready(self.energy_score(self.points, EVAL_TIME))
            return 1
        for _ in range(4):
            self.count += 1
            self.state, _ = self.jitted(self.state, self.key, np.float32(self.count))
        jax.block_until_ready(self.state)
        return 4

    def loss(self, arrays):
        return float(jax.jit(self.loss_of)(self.params, *inputs(arrays)))

    def energy_score(self, points, time):
        schedule = common.vp_schedule(np.array([time]))
        at = {name: jnp.broadcast_to(float32(value), (len(points),)) for name, value in schedule.items()}
        return self.jitted_evaluation(self.params, at, points)


# --- tuned ----------------------------------------------------------------------------------------------------------


class Ops:
    """The array operations of byhand.py."""

    exp, log, sqrt, sin, cos, minimum = jnp.exp, jnp.log, jnp.sqrt, jnp.sin, jnp.cos, jnp.minimum
    cat, stack, zeros = jnp.concatenate, jnp.stack, jnp.zeros
    sigmoid = staticmethod(lambda x: 1 / (1 + jnp.exp(-x)))
    logsumexp = partial(jax.nn.logsumexp, axis=0)
    affine = staticmethod(lambda bias, left, right: left @ right + bias)
    roll = staticmethod(lambda x, k: jnp.roll(x, k, 1))
    repeat = staticmethod(lambda x, count: jnp.repeat(x, count, 0))
    column_sum = staticmethod(lambda x: x.sum(0))
    scatter_add = staticmethod(lambda size, index, x: jnp.zeros(size).at[index].add(x))
    shift_right = staticmethod(lambda x, bits: x >> np.uint32(bits))
    int32 = staticmethod(np.uint32)
    iota = staticmethod(lambda count: lax.iota(jnp.uint32, count))
    float32 = staticmethod(lambda x: x.astype(jnp.float32))
    index = staticmethod(lambda x: x.astype(jnp.int32))


# Steps per call of the scan, by kind and levels: about a quarter of a second.
SCAN = {"dsm": 24, "si": 16, "clf": 8}


class Tuned(Peer):
    def __init__(self, case, params=None):
        super().__init__(case)
        params = byhand.arranged(params or common.parameters(case))
        self.shapes = {name: value.shape for name, value in params.items()}
        flat = jnp.concatenate([float32(value).reshape(-1) for value in params.values()])
        self.state = flat, jnp.zeros_like(flat), jnp.zeros_like(flat), jnp.float32(0), jnp.uint32(1)
        schedule = common.interpolant_tables() if case.kind == "si" else common.vp_tables()
        self.tables = {
            "columns": float32(common.columns(case, schedule)),
            "features": float32(common.time_features(schedule["tau"])),
        }
        self.scan = jax.jit(
            lambda state: lax.scan(lambda s, _: self.step(s), state, length=SCAN[case.kind]), donate_argnums=0
        )
        self.evaluation = jax.jit(lambda flat, *rest: byhand.evaluation(Ops, self.values(flat), *rest))

    def values(self, flat):
        ends = np.cumsum([math.prod(shape) for shape in self.shapes.values()])
        parts = jnp.split(flat, ends[:-1])
        return {name: part.reshape(shape) for (name, shape), part in zip(self.shapes.items(), parts)}

    def loss_and_gradient(self, flat, x, z, levels):
        loss, grads = byhand.loss_and_gradient(Ops, self.case, self.tables, self.values(flat), x, z, levels)
        return loss, jnp.concatenate([grads[name].reshape(-1) for name in self.shapes])

    def step(self, state):
        flat, m, v, count, key = state
        x, z, levels = byhand.draw(Ops, self.case, self.data, self.first, self.size, key)
        loss, gradient = self.loss_and_gradient(flat, x, z, levels)
        count = count + 1
        return (*byhand.adam(Ops, flat, m, v, count, gradient), count, key + np.uint32(1)), loss

    def block(self):
        if self.case.kind == "eval":
            jax.block_until_ready(self.energy_score(self.points, EVAL_TIME))
            return 1
        self.state, _ = self.scan(self.state)
        jax.block_until_ready(self.state)
        return SCAN[self.case.kind]

    def loss(self, arrays):
        return float(jax.jit(self.loss_and_gradient)(self.state[0], *inputs(arrays))[0])

    def energy_score(self, points, time):
        schedule = common.vp_schedule(np.array([time]))
        row = float32(common.columns(self.case, schedule)[0])
        return self.evaluation(self.state[0], points, row, float32(common.time_features(schedule["tau"])[0]))


VARIANTS = {"plain": Plain, "tuned": Tuned}

if __name__ == "__main__":
    common.serve(VARIANTS[VARIANT])
