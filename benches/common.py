"""The step that every side of the benchmark computes: cases, schedules, initial weights, and a float64 reference.

Nothing here is timed. The reference is plain numpy with hand-written derivatives, so that it shares no
differentiation code with any of the programs it judges.
"""

import json
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter as time_now

import numpy as np

LEVELS = 512
SAMPLES = 60_000
FREQUENCIES = np.geomspace(1.0, 16.0, 32)
HIDDEN = 4
LEARNING_RATE, BETA1, BETA2, EPSILON, CLIP = 1e-3, 0.9, 0.999, 1e-8, 1.0


@dataclass(frozen=True)
class Case:
    """One row of the table. `kind` is dsm, clf, si (interpolant) or eval; `levels` is N."""

    name: str
    kind: str
    dim: int
    levels: int
    batch: int
    width: int


CASES = {
    case.name: case
    for case in [
        Case("dsm-d8", "dsm", 8, 1, 2048, 128),
        Case("dsm-d128", "dsm", 128, 1, 2048, 128),
        Case("clf2-d8", "clf", 8, 2, 2048, 128),
        Case("clf4-d8", "clf", 8, 4, 2048, 128),
        Case("clf2-d128", "clf", 128, 2, 2048, 128),
        Case("clf4-d128", "clf", 128, 4, 2048, 128),
        Case("si2-d8", "si", 8, 2, 1024, 64),
        Case("eval-d8", "eval", 8, 1, 65_536, 128),
        Case("eval-d128", "eval", 128, 1, 65_536, 128),
    ]
}

# The time at which the evaluation cases are timed.
EVAL_TIME = 0.3


def vp_schedule(time):
    """Variance-preserving schedule in float64: scale S, noise gamma, noise_level sigma and the network's input tau.

    tau is the log-SNR standardised over the grid of levels, 0.3 (log-SNR - mean) / std - 0.3.
    """

    def noise_level(time):
        integral = 0.1 * time + 19.9 * time**2 / 2
        return integral, np.sqrt(np.expm1(integral))

    grid = -2 * np.log(noise_level(np.linspace(1e-4, 1 - 1e-4, LEVELS))[1])
    integral, sigma = noise_level(np.asarray(time, np.float64))
    return {
        "scale": np.exp(-integral / 2),
        "noise": np.sqrt(-np.expm1(-integral)),
        "noise_level": sigma,
        "tau": 0.3 * (-2 * np.log(sigma) - grid.mean()) / grid.std() - 0.3,
    }


def vp_tables():
    """The variance-preserving schedule at every level of the grid."""
    return vp_schedule(np.linspace(1e-4, 1 - 1e-4, LEVELS))


def interpolant_tables():
    """Linear interpolant on the grid, in float64: time, noise gamma = sqrt(t(1-t)), network input tau = 2t-1."""
    time = np.linspace(1e-3, 1 - 1e-3, LEVELS)
    return {"time": time, "noise": np.sqrt(time * (1 - time)), "tau": 2 * time - 1}


def columns(case, schedule):
    """What the hand-written step gathers per level; diffusion: S, gamma, 1/a_in, 1/sigma, weight, d/2 log(2 pi a_in^2)."""
    if case.kind == "si":
        return np.stack([schedule["time"], schedule["noise"]], -1)
    scale, noise, sigma = schedule["scale"], schedule["noise"], schedule["noise_level"]
    a_in = np.sqrt(scale**2 + noise**2)
    constant = case.dim / 2 * np.log(2 * np.pi * a_in**2)
    return np.stack([scale, noise, 1 / a_in, 1 / sigma, noise**2 * (sigma**2 + 1), constant], -1)


def time_features(tau):
    """[sin(tau w_k), cos(tau w_k)] with 32 frequencies, geometric from 1 to 16."""
    angle = np.asarray(tau)[..., None] * FREQUENCIES
    return np.concatenate([np.sin(angle), np.cos(angle)], axis=-1)


def mlp_parameters(rng, dim, width, out, prefix=""):
    """Weights of one network by name; He-like scaling, and a last layer that is not zero so every term is exercised."""

    def weight(rows, cols):
        return (rng.standard_normal((rows, cols)) / math.sqrt(rows)).astype(np.float32)

    params = {"wx": weight(dim, width), "wt": weight(2 * len(FREQUENCIES), width), "b0": np.zeros(width, np.float32)}
    for layer in range(1, HIDDEN):
        params[f"w{layer}"] = weight(width, width)
        params[f"b{layer}"] = np.zeros(width, np.float32)
    params["wo"] = 0.1 * weight(width, out)
    params["bo"] = np.zeros(out, np.float32)
    return {prefix + name: value for name, value in params.items()}


def parameters(case, seed=0):
    """All parameters of a case, as float32 arrays by name."""
    rng = np.random.default_rng(seed)
    if case.kind == "si":
        params = mlp_parameters(rng, case.dim, case.width, case.dim, "net1.")
        params |= mlp_parameters(rng, case.dim, case.width, 1, "net2.")
    else:
        params = mlp_parameters(rng, case.dim, case.width, case.dim)
    params["free_energy"] = np.zeros(LEVELS, np.float32)
    return params


def mixture(dim, seed=1):
    """60,000 samples of a 40-component Gaussian mixture, standardised to zero mean and unit scalar variance."""
    rng = np.random.default_rng(seed)
    means = rng.uniform(-40, 40, (40, dim))
    x = means[rng.integers(0, 40, SAMPLES)] + math.sqrt(math.log(1 + math.e)) * rng.standard_normal((SAMPLES, dim))
    x -= x.mean(axis=0)
    return (x / math.sqrt((x**2).mean())).astype(np.float32)


def strata(levels):
    """First level and size of each of the N strata of the grid; one level is drawn from each, so they are distinct."""
    edges = np.linspace(0, LEVELS, levels + 1).astype(np.int32)
    return edges[:-1], np.diff(edges)


# --- float64 reference -------------------------------------------------------------------------------------------


def _silu(h):
    s = 1 / (1 + np.exp(-h))
    return h * s, s * (1 + h * (1 - s))


def _network(params, prefix, features, x, cotangent):
    """Output of the MLP, and the gradient of cotangent . output with respect to x (back-propagation by hand)."""
    p = {name[len(prefix) :]: value for name, value in params.items() if name.startswith(prefix)}
    activation, slope = _silu(x @ p["wx"] + features @ p["wt"] + p["b0"])
    slopes = [slope]
    for layer in range(1, HIDDEN):
        activation, slope = _silu(activation @ p[f"w{layer}"] + p[f"b{layer}"])
        slopes.append(slope)
    output = activation @ p["wo"] + p["bo"]
    back = cotangent @ p["wo"].T
    for layer in range(HIDDEN - 1, 0, -1):
        back = (back * slopes[layer]) @ p[f"w{layer}"].T
    return output, (back * slopes[0]) @ p["wx"].T


def _diffusion_energy(params, tables, level, y):
    """U and score of the preconditioned diffusion energy (data mean 0, sd 1) at rows y with one level each."""
    scale, noise, sigma, tau = (tables[key][level][:, None] for key in ("scale", "noise", "noise_level", "tau"))
    a_in = np.sqrt(scale**2 + noise**2)
    x = y / a_in
    vector, pulled = _network(params, "", time_features(tau[:, 0]), x, x)
    energy = (
        (x**2).sum(1) / 2
        + y.shape[1] / 2 * np.log(2 * np.pi * a_in[:, 0] ** 2)
        - (x * vector).sum(1) / sigma[:, 0]
    )
    return energy, -(x - (vector + pulled) / sigma) / a_in


def _interpolant_energy(params, tables, level, y):
    """U = x . net1 + net2 and score of the interpolant energy at rows y with one level each."""
    features = time_features(tables["tau"][level])
    vector, pulled = _network(params, "net1.", features, y, y)
    scalar, gradient = _network(params, "net2.", features, y, np.ones((len(y), 1)))
    return (y * vector).sum(1) + scalar[:, 0], -(vector + pulled + gradient)


def _classification(energy, params, tables, levels, y):
    """-(1/N) sum_i log softmax_j(-U(t_j, y_i) + F(t_j))[i], averaged over rows; `y` is (B, N, d)."""
    batch, count, dim = y.shape
    logits = np.empty((batch, count, count))
    for j in range(count):
        for i in range(count):
            logits[:, i, j] = params["free_energy"][levels[:, j]] - energy(params, tables, levels[:, j], y[:, i])[0]
    top = logits.max(axis=2, keepdims=True)
    log_total = top[..., 0] + np.log(np.exp(logits - top).sum(axis=2))
    return (log_total - np.einsum("bii->bi", logits)).mean()


def reference_loss(case, params, inputs):
    """Loss of one step in float64; `inputs` holds x0 (B,d), [x1], z (B,N,d) and levels (B,N)."""
    params = {name: value.astype(np.float64) for name, value in params.items()}
    levels = inputs["levels"].astype(np.int64).reshape(case.batch, case.levels)
    z = inputs["z"].astype(np.float64).reshape(case.batch, case.levels, case.dim)
    x0 = inputs["x0"].astype(np.float64)[:, None, :]
    flat = lambda array: array.reshape(-1, array.shape[-1])  # noqa: E731
    if case.kind == "si":
        tables, energy = interpolant_tables(), _interpolant_energy
        time, noise = tables["time"][levels][..., None], tables["noise"][levels][..., None]
        centre = (1 - time) * x0 + time * inputs["x1"].astype(np.float64)[:, None, :]
        y = centre + noise * z
        loss = 0.0
        for sign in (1.0, -1.0):
            score = energy(params, tables, levels.ravel(), flat(centre + sign * noise * z))[1]
            loss += 0.5 * (flat(noise) ** 2 * (score + sign * flat(z / noise)) ** 2).sum(1).mean()
        return loss + _classification(energy, params, tables, levels, y)
    tables, energy = vp_tables(), _diffusion_energy
    scale, noise = tables["scale"][levels][..., None], tables["noise"][levels][..., None]
    y = scale * x0 + noise * z
    weight = (noise**2 * (tables["noise_level"][levels][..., None] ** 2 + 1))[..., 0].ravel()
    score = energy(params, tables, levels.ravel(), flat(y))[1]
    loss = (weight * ((score + flat(z / noise)) ** 2).sum(1)).mean()
    if case.kind == "clf":
        loss += _classification(energy, params, tables, levels, y)
    return loss


def reference_evaluation(params, points, time=EVAL_TIME):
    """Energy and score of all points at one time, in float64."""
    params = {name: value.astype(np.float64) for name, value in params.items()}
    tables = vp_schedule(np.array([time]))
    return _diffusion_energy(params, tables, np.zeros(len(points), np.int64), points.astype(np.float64))


# --- a peer as a server ------------------------------------------------------------------------------------------


def load_dump(case, folder):
    """Parameters and arrays that `bench_step --dump` wrote; vectors get the shapes of this file back."""
    shapes = {name: value.shape for name, value in parameters(case).items()}
    params = {name: np.load(folder / "params" / f"{name}.npy").reshape(shape) for name, shape in shapes.items()}
    return params, {path.stem: np.load(path) for path in folder.glob("*.npy")}


def relative(found, expected):
    return float(np.abs(np.asarray(found, np.float64) - expected).max() / np.abs(expected).max())


def serve(build):
    """Answers commands on standard input, one JSON line each; so that rounds interleave without compiling again.

    `build(case, params=None)` returns an object with `block()` (runs some steps or one evaluation, returns how many),
    `loss(inputs)` and `evaluate(points, time)`. Commands: `prepare CASE`, `time CASE SECONDS`, `check CASE FOLDER`.
    """
    ready = {}
    for line in sys.stdin:
        command, name, *rest = line.split()
        case = CASES[name]
        if command == "prepare":
            begin = time_now()
            ready[name] = build(case)
            ready[name].block()
            answer = {"case": name, "compile_s": time_now() - begin}
            ready[name].block()
        elif command == "time":
            times, begin = [], time_now()
            while len(times) < 3 or time_now() - begin < float(rest[0]):
                start = time_now()
                count = ready[name].block()
                times.append((time_now() - start) / count * 1e3)
            answer = {"case": name, "ms": float(np.median(times)), "best_ms": min(times)}
        else:
            params, arrays = load_dump(case, Path(rest[0]))
            peer = build(case, params)
            if case.kind == "eval":
                time = float(arrays["time"][0])
                found = peer.evaluate(arrays["points"], time)
                exact = reference_evaluation(params, arrays["points"], time)
                answer = {"case": name, "peer": 0.0, "ours": 0.0}
                for ours, peers, reference in zip((arrays["energy"], arrays["score"]), found, exact):
                    answer["ours"] = max(answer["ours"], relative(ours, reference))
                    answer["peer"] = max(answer["peer"], relative(peers, reference))
            else:
                exact = np.array(reference_loss(case, params, arrays))
                ours, found = float(arrays["loss"].reshape(())), peer.loss(arrays)
                answer = {"case": name, "reference": float(exact), "peer": relative(found, exact), "ours": relative(ours, exact)}
        print(json.dumps(answer), flush=True)
