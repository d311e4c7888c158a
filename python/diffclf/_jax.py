"""``Model.jax()``: the log-density as a function that jax differentiates and compiles, by callbacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ._model import Model

if TYPE_CHECKING:
    from collections.abc import Callable


def density(model: Model, t: float | None = None) -> Callable[[Any], Any]:
    """``log_density(x)`` with x of shape (..., columns): its derivative is the score, the next one a Hessian-vector product."""
    try:
        import jax
        import jax.numpy as jnp
    except ImportError as missing:
        raise ImportError("model.jax() needs jax; install it with: pip install jax") from missing

    def rows(x: Any) -> Any:
        return np.ascontiguousarray(np.asarray(x, dtype=np.float64)).reshape(-1, model.dim)

    def call(function: Callable[..., Any], like: Any, shape: Any, *arrays: Any) -> Any:
        kind = jax.ShapeDtypeStruct(shape, like.dtype)

        def host(*arrays: Any) -> Any:
            values = function(*(rows(array) for array in arrays))
            first = np.asarray(arrays[0])
            return np.asarray(values, dtype=like.dtype).reshape(first.shape[: first.ndim - 1 + (values.ndim - 1)])

        return jax.pure_callback(host, kind, *arrays, vmap_method="broadcast_all")

    def product(x: Any, along: Any) -> Any:
        return call(lambda x, along: model.hessian_product(x, along, t), x, x.shape, x, along)

    @jax.custom_jvp
    def score(x: Any) -> Any:
        return call(lambda x: model.score(x, t), x, x.shape, x)

    @score.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        (x,), (along,) = primals, tangents
        # The Hessian is symmetric: its transpose is itself.
        bend = jax.custom_derivatives.linear_call(product, product, x, along)
        return score(x), bend

    @jax.custom_jvp
    def log_density(x: Any) -> Any:
        return call(lambda x: model.log_density(x, t), x, x.shape[:-1], x)

    @log_density.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        (x,), (along,) = primals, tangents
        return log_density(x), jnp.sum(score(x) * along, axis=-1)

    def checked(x: Any) -> Any:
        """log p(x) of a diffclf model."""
        x = jnp.asarray(x)
        if not jnp.issubdtype(x.dtype, jnp.floating):
            x = x.astype(jnp.result_type(float))
        return log_density(x)

    return checked
