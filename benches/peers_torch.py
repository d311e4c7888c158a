"""PyTorch's side of the benchmark: `eager`, as one would write it in a script, and `compile`, tuned by hand.

The tuned step is one graph under torch.compile: noise, loss, gradient (byhand.py), clipping and Adam.
"""

import argparse
import math
import os
from functools import partial

THREADS = int(os.environ.setdefault("OMP_NUM_THREADS", "2"))

import numpy as np  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as nn  # noqa: E402

import byhand  # noqa: E402
import common  # noqa: E402
from common import BETA1, BETA2, CLIP, EPSILON, EVAL_TIME, HIDDEN, LEARNING_RATE, SAMPLES  # noqa: E402

torch.set_num_threads(THREADS)


def tensor(array):
    return torch.from_numpy(np.ascontiguousarray(array, dtype=np.float32))


def inputs(arrays):
    """Inputs of one step as tensors: the source rows, z, levels."""
    x = [tensor(arrays[name]) for name in ("x0", "x1") if name in arrays]
    return x, tensor(arrays["z"]), torch.from_numpy(arrays["levels"].astype(np.int64))


class Peer:
    """What both variants share: data, strata, and the server's view of a case."""

    def __init__(self, case):
        self.case = case
        if case.kind == "eval":
            self.points = torch.randn(case.batch, case.dim)
        else:
            self.data = [tensor(common.mixture(case.dim, seed)) for seed in ((1, 2) if case.kind == "si" else (1,))]
        first, size = common.strata(case.levels)
        self.first, self.size = torch.from_numpy(first).long(), tensor(size)

    def block(self):
        if self.case.kind == "eval":
            self.energy_score(self.points, EVAL_TIME)
            return 1
        for _ in range(4):
            self.step()
        return 4

    def evaluate(self, points, time):
        return tuple(part.detach().numpy() for part in self.energy_score(tensor(points), time))


# --- eager: autograd twice, in the most natural form --------------------------------------------------------------


class Eager(Peer):
    """The step as a script would have it: modules of plain tensors, autograd for the score, autograd for the loss."""

    def __init__(self, case, params=None):
        super().__init__(case)
        self.params = {name: tensor(value).requires_grad_() for name, value in (params or common.parameters(case)).items()}
        self.optimizer = torch.optim.Adam(
            self.params.values(), lr=LEARNING_RATE, betas=(BETA1, BETA2), eps=EPSILON, foreach=True
        )
        source = common.interpolant_tables() if case.kind == "si" else common.vp_tables()
        self.table = {name: tensor(value) for name, value in source.items()}
        self.frequencies = tensor(common.FREQUENCIES)

    def network(self, prefix, tau, x):
        p = lambda name: self.params[prefix + name]  # noqa: E731
        angle = tau[..., None] * self.frequencies
        features = torch.cat([angle.sin(), angle.cos()], -1)
        a = nn.silu(x @ p("wx") + features @ p("wt") + p("b0"))
        for layer in range(1, HIDDEN):
            a = nn.silu(a @ p(f"w{layer}") + p(f"b{layer}"))
        return a @ p("wo") + p("bo")

    def energy(self, level, y):
        at = {name: value[level] for name, value in self.table.items()}
        if self.case.kind == "si":
            return (y * self.network("net1.", at["tau"], y)).sum(-1) + self.network("net2.", at["tau"], y)[..., 0]
        a_in = torch.sqrt(at["scale"] ** 2 + at["noise"] ** 2)
        x = y / a_in[..., None]
        scalar = (x * self.network("", at["tau"], x)).sum(-1)
        constant = self.case.dim / 2 * torch.log(2 * math.pi * a_in**2)
        return (x * x).sum(-1) / 2 + constant - scalar / at["noise_level"]

    def energy_and_score(self, level, y, create_graph=True):
        y = y.detach().requires_grad_()
        energy = self.energy(level, y)
        return energy, -torch.autograd.grad(energy.sum(), y, create_graph=create_graph)[0]

    def loss_of(self, x, z, levels):
        """`x` lists the source rows (x0, or x0 and x1), `z` is (B,N,d), `levels` (B,N)."""
        noise = self.table["noise"][levels][..., None]
        if self.case.kind == "si":
            t = self.table["time"][levels][..., None]
            centre = (1 - t) * x[0][:, None] + t * x[1][:, None]
            y = centre + noise * z
            own, plus = self.energy_and_score(levels, y)
            minus = self.energy_and_score(levels, centre - noise * z)[1]
            loss = sum((noise**2 * (s + sign * z / noise) ** 2).sum(-1).mean() for s, sign in ((plus, 1), (minus, -1))) / 2
        else:
            y = self.table["scale"][levels][..., None] * x[0][:, None] + noise * z
            own, score = self.energy_and_score(levels, y)
            weight = noise[..., 0] ** 2 * (self.table["noise_level"][levels] ** 2 + 1)
            loss = (weight * ((score + z / noise) ** 2).sum(-1)).mean()
        if self.case.levels > 1:
            count = self.case.levels
            shifted = [torch.roll(levels, -k, 1) for k in range(1, count)]
            energies = torch.stack([own] + [self.energy(level, y) for level in shifted], -1)
            logits = self.params["free_energy"][torch.stack([levels] + shifted, -1)] - energies
            loss = loss + nn.cross_entropy(logits.reshape(-1, count), torch.zeros(logits.numel() // count, dtype=torch.long))
        return loss

    def step(self):
        case = self.case
        x = [data[torch.randint(0, SAMPLES, (case.batch,))] for data in self.data]
        levels = self.first + (torch.rand(case.batch, case.levels) * self.size).long()
        loss = self.loss_of(x, torch.randn(case.batch, case.levels, case.dim), levels)
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.params.values(), CLIP)
        self.optimizer.step()
        return loss

    def loss(self, arrays):
        return self.loss_of(*inputs(arrays)).item()

    def energy_score(self, points, time):
        schedule = common.vp_schedule(np.array([time]))
        self.table = {name: tensor(value) for name, value in schedule.items()}
        return self.energy_and_score(torch.zeros(len(points), dtype=torch.long), points, create_graph=False)


# --- compile: the whole step as one graph, derivatives by hand -----------------------------------------------------


class Ops:
    """The array operations of byhand.py."""

    sigmoid, exp, log, sqrt, sin, cos = torch.sigmoid, torch.exp, torch.log, torch.sqrt, torch.sin, torch.cos
    cat, stack, affine, zeros = torch.cat, torch.stack, torch.addmm, torch.zeros
    logsumexp = partial(torch.logsumexp, dim=0)
    minimum = staticmethod(lambda x, top: torch.clamp(x, max=top))
    roll = staticmethod(lambda x, k: torch.roll(x, k, 1))
    repeat = staticmethod(lambda x, count: x if count == 1 else x.repeat_interleave(count, 0))
    # A product with ones runs in the BLAS; the generated code for sums over rows is slower.
    column_sum = staticmethod(lambda x: (x.new_ones(1, x.shape[0]) @ x)[0])
    scatter_add = staticmethod(lambda size, index, x: torch.zeros(size).index_add(0, index, x))
    shift_right = staticmethod(lambda x, bits: (x >> bits) & ((1 << (32 - bits)) - 1))
    int32 = staticmethod(lambda x: x - (1 << 32) if x >= 1 << 31 else x)
    iota = staticmethod(lambda count: torch.arange(count, dtype=torch.int32))
    float32 = staticmethod(lambda x: x.to(torch.float32))
    index = staticmethod(lambda x: x.to(torch.int64))


class Compiled(Peer):
    """One compiled graph for the step; weights in one flat vector."""

    def __init__(self, case, params=None):
        super().__init__(case)
        params = byhand.arranged(params or common.parameters(case))
        self.shapes = {name: value.shape for name, value in params.items()}
        self.flat = torch.cat([tensor(value).reshape(-1) for value in params.values()])
        self.m, self.v = torch.zeros_like(self.flat), torch.zeros_like(self.flat)
        self.count, self.key = torch.tensor(0.0), torch.tensor(1, dtype=torch.int32)
        schedule = common.interpolant_tables() if case.kind == "si" else common.vp_tables()
        self.tables = {
            "columns": tensor(common.columns(case, schedule)),
            "features": tensor(common.time_features(schedule["tau"])),
        }
        self.graph = None

    def compiled(self, function):
        import torch._inductor.config as inductor

        inductor.cpp.enable_unsafe_math_opt_flag = True
        inductor.cpp.enable_floating_point_contract_flag = "fast"
        return torch.compile(function, fullgraph=True, dynamic=False)

    def values(self, flat):
        parts = flat.split([math.prod(shape) for shape in self.shapes.values()])
        return {name: part.view(shape) for (name, shape), part in zip(self.shapes.items(), parts)}

    def loss_and_gradient(self, flat, x, z, levels):
        loss, grads = byhand.loss_and_gradient(Ops, self.case, self.tables, self.values(flat), x, z, levels)
        return loss, torch.cat([grads[name].reshape(-1) for name in self.shapes])

    def whole(self, flat, m, v, count, key):
        x, z, levels = byhand.draw(Ops, self.case, self.data, self.first, self.size, key)
        loss, gradient = self.loss_and_gradient(flat, x, z, levels)
        key.add_(1)
        count.add_(1)
        for old, new in zip((flat, m, v), byhand.adam(Ops, flat, m, v, count, gradient)):
            old.copy_(new)
        return loss

    def step(self):
        if self.graph is None:
            self.graph = self.compiled(self.whole)
        with torch.no_grad():
            return self.graph(self.flat, self.m, self.v, self.count, self.key)

    def loss(self, arrays):
        with torch.no_grad():
            return self.compiled(self.loss_and_gradient)(self.flat, *inputs(arrays))[0].item()

    def evaluation(self, flat, points, row, features):
        return byhand.evaluation(Ops, self.values(flat), points, row, features)

    def energy_score(self, points, time):
        if self.graph is None:
            self.graph = self.compiled(self.evaluation)
        schedule = common.vp_schedule(np.array([time]))
        row, features = tensor(common.columns(self.case, schedule)[0]), tensor(common.time_features(schedule["tau"]))
        pieces = points.split(EVAL_PIECE)
        with torch.no_grad():
            results = [self.graph(self.flat, piece, row, features[0]) for piece in pieces]
            return results[0] if len(pieces) == 1 else tuple(map(torch.cat, zip(*results)))


# Points of one call: small enough for the activations to stay in the last-level cache.
EVAL_PIECE = 8192
VARIANTS = {"eager": Eager, "compile": Compiled}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("variant", choices=VARIANTS)
    common.serve(VARIANTS[parser.parse_args().variant])
