"""scikit-learn, torch and jax."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import diffclf

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Rows = NDArray[np.float32]


def _density(**more: Any) -> Any:
    module = pytest.importorskip("diffclf.sklearn", reason="scikit-learn is not installed", exc_type=ImportError)
    return module.DiffclfDensity(steps=5, score_steps=5, width=8, depth=1, base="gaussian", **more)


def test_the_estimator_passes_scikit_learns_checks() -> None:
    density = _density()
    from sklearn.utils.estimator_checks import check_estimator

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(density, on_fail=None)
    failed = {result["check_name"]: str(result["exception"]) for result in results if result["status"] == "failed"}
    assert not failed
    assert len(results) > 30


def test_the_estimator_at_work(x: Rows) -> None:
    density = _density(random_state=3)
    from sklearn.base import clone
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    fitted = clone(density).fit(x)
    assert fitted.score(x) == pytest.approx(fitted.score_samples(x).sum())
    assert np.array_equal(fitted.score_samples(x), fitted.model_.log_density(x))
    assert fitted.sample(7, random_state=1).shape == (7, 2)
    assert make_pipeline(StandardScaler(), density).fit(x).score_samples(x).shape == (len(x),)
    search = GridSearchCV(density, {"width": [4, 8]}, cv=2).fit(x)
    assert search.best_params_["width"] in (4, 8)


def test_torch_differentiates_twice(x: Rows, model: diffclf.Model) -> None:
    torch: Any = pytest.importorskip("torch")
    log_density = model.torch()
    points = torch.tensor(x[:6], dtype=torch.float64, requires_grad=True)
    values = log_density(points, 0.3)
    assert np.allclose(values.detach().numpy(), model.log_density(x[:6], 0.3))
    weights = torch.arange(1.0, 7.0, dtype=torch.float64)
    (slope,) = torch.autograd.grad((weights * values).sum(), points, create_graph=True)
    expected = weights.numpy()[:, None] * model.score(x[:6], 0.3)
    assert np.allclose(slope.detach().numpy(), expected)
    along = torch.tensor([[0.3, -1.0]] * 6, dtype=torch.float64)
    (bend,) = torch.autograd.grad((slope * along).sum(), points)
    product = weights.numpy()[:, None] * model.hessian_product(x[:6].astype(np.float64), along.numpy(), 0.3)
    assert np.allclose(bend.numpy(), product)
    single = log_density(torch.tensor(x[:6]))
    assert single.dtype == torch.float32


def test_jax_differentiates_twice(x: Rows, model: diffclf.Model) -> None:
    jax: Any = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    log_density = model.jax(t=0.3)
    points = x[:6].astype(np.float64)
    assert np.allclose(jax.jit(log_density)(points), model.log_density(points, 0.3))
    slope = jax.grad(lambda y: log_density(y).sum())
    assert np.allclose(jax.jit(slope)(points), model.score(points, 0.3))
    assert np.allclose(jax.vmap(jax.grad(log_density))(points), model.score(points, 0.3))
    along = np.tile([0.3, -1.0], (6, 1))
    product = model.hessian_product(points, along, 0.3)
    assert np.allclose(jax.jvp(slope, (points,), (along,))[1], product)
    assert np.allclose(jax.grad(lambda y: (slope(y) * along).sum())(points), product)
