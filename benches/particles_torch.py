"""PyTorch's side of the particle benchmark: one compiled function for loss and gradient of a micro-batch, derivatives by torch.func.

Started by `particles`; answers `check CASE FOLDER` and `time CASE SECONDS` on standard input.
"""

from pathlib import Path

import numpy as np
import torch

import egnn
import particles_server

torch.set_num_threads(particles_server.THREADS)


class Ops:
    silu, sigmoid, tanh = torch.nn.functional.silu, torch.sigmoid, torch.tanh
    sqrt, log = torch.sqrt, torch.log
    mask, types = torch.tensor(egnn.MASK, dtype=torch.float32), torch.tensor(egnn.TYPES)
    gradient = staticmethod(lambda f, x: torch.func.grad(f)(x))
    roll = staticmethod(lambda x, k: torch.roll(x, k, 1))
    stack = staticmethod(torch.stack)
    logsumexp = staticmethod(lambda x: torch.logsumexp(x, 0))


class Peer:
    """One case with its weights and rows; `micro` rows at a time."""

    def __init__(self, name, folder, micro):
        self.case = egnn.parse(name)
        params, arrays = egnn.load(name, Path(folder))
        real = lambda x: torch.tensor(np.asarray(x), dtype=torch.float32)  # noqa: E731
        self.params = {key: real(value) for key, value in params.items()}
        columns, features = (real(x) for x in egnn.tables())
        kind, count, _, depth = self.case
        if kind == "eval":
            at, phi = particles_server.at_time(float(arrays["time"][0]))
            at, phi = (real(x).expand(micro, -1) for x in (at, phi))

            def part(params, y):
                energy = lambda y: egnn.energies(Ops, params, depth, at, phi, y)  # noqa: E731
                value, pull = torch.func.vjp(energy, y)
                return value, -pull(torch.ones_like(value))[0]

            self.inputs = (real(arrays["points"]),)
        else:
            z = real(arrays["z"]).reshape(-1, count, egnn.DIM)
            levels = torch.tensor(arrays["levels"].astype(np.int64)).reshape(-1, count)

            def part(params, *rows):
                of_params = lambda p: egnn.loss(Ops, p, self.case, columns, features, *rows)  # noqa: E731
                gradient, loss = torch.func.grad_and_value(of_params)(params)
                return loss, gradient

            self.inputs = (real(arrays["x0"]), z, levels)
        self.rows, self.micro = self.inputs[0], micro
        self.part = torch.compile(part, dynamic=False)

    def parts(self):
        for start in range(0, len(self.rows), self.micro):
            yield self.part(self.params, *(x[start : start + self.micro] for x in self.inputs))

    def run(self):
        if self.case[0] == "eval":
            return list(self.parts())
        total = None
        for loss, gradient in self.parts():
            if total is None:
                total = loss.clone(), {k: v.clone() for k, v in gradient.items()}
            else:
                total[0].add_(loss)
                torch._foreach_add_(list(total[1].values()), list(gradient.values()))
        return total

    def answer(self):
        result = self.run()
        if self.case[0] == "eval":
            join = lambda k: torch.cat([part[k] for part in result]).numpy()  # noqa: E731
            return {"energy": join(0), "score": join(1)}
        share = self.micro / len(self.rows)
        loss, gradient = result
        return {"loss": (loss * share).numpy().reshape(1)} | {
            f"gradient {k}": (v * share).numpy() for k, v in gradient.items()
        }


particles_server.serve(Peer)
