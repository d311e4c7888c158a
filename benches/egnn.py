"""An EGNN energy, its score and the training losses in array operations that JAX and PyTorch share.

Written from the formulas of `core/src/network/egnn.rs`, not from its code: pairs are an n x n grid with the diagonal masked, which needs no
gather and suits both compilers better than a list of edges; the first layer of the messages is split into two products over particles by
hand. Derivatives are the libraries' own. `ops` holds what the libraries name differently.
"""

import math

import numpy as np

import common

# By element, as in bench_step.
TYPES = np.array([0, 1, 0, 0, 1, 2, 3, 0, 1, 0, 1, 0, 0, 0, 1, 2, 3, 0, 1, 0, 0, 0])
ATOMS = len(TYPES)
MASK = 1.0 - np.eye(ATOMS)
RANGE = 15.0
DIM = 3 * ATOMS


def parse(name):
    """`clf2-egnn64x4`: kind, levels, width, depth."""
    kind, size = name.split("-egnn")
    width, depth = map(int, size.split("x"))
    return ("clf", int(kind[3:]), width, depth) if kind.startswith("clf") else (kind, 1, width, depth)


def load(name, folder):
    """Parameters by name and arrays that `bench_step --dump` wrote; gradient and parameters in one order."""
    _, _, width, depth = parse(name)
    flat = {path.name[: -len(".npy")]: np.load(path) for path in (folder / "params").glob("*.npy")}
    column = ("g", "phi_o")
    params = {}
    for key, value in flat.items():
        part = key.rsplit(".", 1)[-1]
        if part in column:
            value = value.reshape(-1, 1)
        elif part == "squares":
            value = value.reshape(-1, width)
        params[key] = value
    return params, {path.name[: -len(".npy")]: np.load(path) for path in folder.glob("*.npy")}


def tables():
    """Per level: S, gamma, sigma, 1/a, and the time features."""
    schedule = common.vp_tables()
    a = np.sqrt(schedule["scale"] ** 2 + schedule["noise"] ** 2)
    columns = np.stack([schedule["scale"], schedule["noise"], schedule["noise_level"], a], -1)
    return columns, common.time_features(schedule["tau"])


def network(ops, p, depth, features, x):
    """How far each particle moves, without the mean: x is (B, n, 3)."""
    mask = ops.mask
    h = (features @ p["wt"] + p["b0"])[:, None, :] + p["types"][ops.types]
    position, first = x, None
    for layer in range(depth):
        q = lambda name: p[f"l{layer}.{name}"]  # noqa: E731
        gap = position[:, :, None, :] - position[:, None, :, :]
        square = (gap * gap).sum(-1)
        first = square if first is None else first
        own, other = h @ q("own") + q("a"), h @ q("other")
        z = own[:, :, None, :] + other[:, None, :, :] + square[..., None] * q("squares")[0]
        if layer > 0:
            z = z + first[..., None] * q("squares")[1]
        message = ops.silu(ops.silu(z) @ q("m") + q("b"))
        message = message * ops.sigmoid(message @ q("g") + q("g0"))
        pull = ops.tanh(ops.silu(message @ q("phi_w") + q("phi_b")) @ q("phi_o"))[..., 0]
        pull = pull * mask * (RANGE / depth) / (ops.sqrt(square + 1e-8) + 1.0)
        if layer + 1 < depth:
            heard = (message * mask[:, :, None]).sum(2)
            h = h + ops.silu(h @ q("p") + q("p0") + heard @ q("q")) @ q("n") + q("n0")
        position = position + (gap * pull[..., None]).sum(2)
    moved = position - x
    return moved - moved.mean(1)[:, None, :]


def energies(ops, p, depth, columns, features, y):
    """U at rows y (B, 66), with the columns and features of their levels."""
    sigma, a = columns[:, 2], columns[:, 3]
    x = y / a[:, None]
    moved = network(ops, p, depth, features, x.reshape(-1, ATOMS, 3)).reshape(-1, DIM)
    constant = DIM / 2 * ops.log(2 * math.pi * a * a)
    return (x * x).sum(-1) / 2 + constant - (x * moved).sum(-1) / sigma


def loss(ops, p, case, columns, features, x0, z, levels):
    """Mean over rows of DSM, plus DiffCLF if there are several levels: x0 (B, d), z (B, N, d), levels (B, N)."""
    kind, count, _, depth = case
    rows = lambda array: array.reshape(-1, array.shape[-1])  # noqa: E731
    at, phi = columns[levels], features[levels]
    y = at[..., 0:1] * x0[:, None, :] + at[..., 1:2] * z
    flat = rows(at), rows(phi), rows(y)
    score = -ops.gradient(lambda y: energies(ops, p, depth, flat[0], flat[1], y).sum(), flat[2])
    weight = flat[0][:, 1] ** 2 * (flat[0][:, 2] ** 2 + 1)
    total = (weight * ((score + rows(z / at[..., 1:2])) ** 2).sum(-1)).mean()
    if kind != "clf":
        return total
    own = energies(ops, p, depth, *flat).reshape(-1, count)
    free = p["free_energy"][levels]
    logits = [free - own]
    for k in range(1, count):
        turned = ops.roll(levels, -k)
        others = energies(ops, p, depth, rows(columns[turned]), rows(features[turned]), flat[2])
        logits.append(p["free_energy"][turned] - others.reshape(-1, count))
    logits = ops.stack(logits)
    return total + (ops.logsumexp(logits) - logits[0]).mean()
