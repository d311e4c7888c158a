"""``Model.torch()``: the log-density as a function that torch differentiates, twice."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._model import Model


def density(model: Model) -> Any:
    """A ``torch.nn.Module``: ``forward(x, t=None)`` is log p, its gradient the score, its second derivatives Hessian-vector products."""
    try:
        import torch
    except ImportError as missing:
        raise ImportError("model.torch() needs torch; install it with: pip install torch") from missing

    def rows(x: Any) -> Any:
        return np.ascontiguousarray(x.detach().to("cpu", torch.float64).numpy()).reshape(-1, model.dim)

    def back(values: Any, like: Any, shape: Any) -> Any:
        return torch.from_numpy(np.ascontiguousarray(values)).to(dtype=like.dtype, device=like.device).reshape(shape)

    class Score(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, t: Any) -> Any:
            ctx.save_for_backward(x)
            ctx.time = t
            return back(model.score(rows(x), t), x, x.shape)

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx: Any, along: Any) -> Any:
            (x,) = ctx.saved_tensors
            # The Hessian is symmetric: its product from the left is that from the right.
            return back(model.hessian_product(rows(x), rows(along), ctx.time), x, x.shape), None

    class LogDensity(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, t: Any) -> Any:
            ctx.save_for_backward(x)
            ctx.time = t
            return back(model.log_density(rows(x), t), x, x.shape[:-1])

        @staticmethod
        def backward(ctx: Any, along: Any) -> Any:
            (x,) = ctx.saved_tensors
            return along.unsqueeze(-1) * Score.apply(x, ctx.time), None

    class TorchDensity(torch.nn.Module):
        """log p(x, t) of a diffclf model; ``x`` has the shape (..., columns), ``t`` is one time."""

        def forward(self, x: Any, t: float | None = None) -> Any:
            return LogDensity.apply(x, t)

        def score(self, x: Any, t: float | None = None) -> Any:
            """The gradient of log p."""
            return Score.apply(x, t)

    return TorchDensity()
