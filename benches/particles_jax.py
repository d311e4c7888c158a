"""JAX's side of the particle benchmark: jit, micro-batches in lax.map, fast-math flags; and the float64 reference.

Started by `particles`; answers `check CASE FOLDER` and `time CASE SECONDS` on standard input.
"""

import os
import sys
from pathlib import Path

REFERENCE = sys.argv[1:] == ["reference"]
if not REFERENCE:
    import peers_jax

    # Without infinities the exponentials of this network's activations overflow into NaN at small times.
    honest = "--xla_cpu_fast_math_honor_infs=true --xla_cpu_fast_math_honor_nans=true"
    os.environ["XLA_FLAGS"] = f"{peers_jax.FAST_MATH} {honest} {os.environ.get('XLA_FLAGS', '')}".strip()
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

import egnn  # noqa: E402
import particles_server  # noqa: E402

jax.config.update("jax_enable_x64", REFERENCE)
REAL = jnp.float64 if REFERENCE else jnp.float32


class Ops:
    silu, sigmoid, tanh, sqrt, log = jax.nn.silu, jax.nn.sigmoid, jnp.tanh, jnp.sqrt, jnp.log
    mask, types = jnp.asarray(egnn.MASK, REAL), jnp.asarray(egnn.TYPES)
    gradient = staticmethod(lambda f, x: jax.grad(f)(x))
    roll = staticmethod(lambda x, k: jnp.roll(x, k, 1))
    stack = staticmethod(jnp.stack)
    logsumexp = staticmethod(lambda x: jax.nn.logsumexp(x, axis=0))


class Peer:
    """One case with its weights and rows; `micro` rows at a time."""

    def __init__(self, name, folder, micro):
        self.case = egnn.parse(name)
        params, arrays = egnn.load(name, Path(folder))
        self.params = {key: jnp.asarray(value, REAL) for key, value in params.items()}
        columns, features = (jnp.asarray(x, REAL) for x in egnn.tables())
        kind, count, _, depth = self.case
        cut = lambda x: x.reshape(-1, micro, *x.shape[1:])  # noqa: E731
        if kind == "eval":
            self.rows = jnp.asarray(arrays["points"], REAL)
            at, phi = particles_server.at_time(float(arrays["time"][0]))
            at, phi = (jnp.broadcast_to(jnp.asarray(x, REAL), (micro, x.shape[-1])) for x in (at, phi))

            def part(params, y):
                energy = lambda y: egnn.energies(Ops, params, depth, at, phi, y)  # noqa: E731
                value, pull = jax.vjp(energy, y)
                return value, -pull(jnp.ones_like(value))[0]

            self.function = jax.jit(lambda params, y: jax.lax.map(lambda y: part(params, y), cut(y)))
            self.inputs = (self.rows,)
        else:
            x0, z = jnp.asarray(arrays["x0"], REAL), jnp.asarray(arrays["z"], REAL)
            levels = jnp.asarray(arrays["levels"].astype(np.int32)).reshape(-1, count)
            z = z.reshape(len(x0), count, egnn.DIM)
            self.rows = x0

            def part(params, rows):
                return jax.value_and_grad(lambda p: egnn.loss(Ops, p, self.case, columns, features, *rows))(params)

            def whole(params, *rows):
                if len(rows[0]) == micro:
                    return part(params, rows)
                add = lambda total, rows: (jax.tree.map(jnp.add, total, part(params, rows)), None)  # noqa: E731
                zero = jnp.zeros((), REAL), jax.tree.map(jnp.zeros_like, params)
                total, _ = jax.lax.scan(add, zero, jax.tree.map(cut, rows))
                return jax.tree.map(lambda x: x * (micro / len(rows[0])), total)

            self.function = jax.jit(whole)
            self.inputs = (x0, z, levels)

    def run(self):
        return jax.block_until_ready(self.function(self.params, *self.inputs))

    def answer(self):
        """Energy and score, or loss and gradient by name, as numpy arrays."""
        first, second = self.run()
        if self.case[0] == "eval":
            return {"energy": np.asarray(first).reshape(-1), "score": np.asarray(second).reshape(-1, egnn.DIM)}
        return {"loss": np.asarray(first).reshape(1)} | {f"gradient {k}": np.asarray(v) for k, v in second.items()}


particles_server.serve(Peer)
