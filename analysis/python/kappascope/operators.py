"""Symmetric operators of anybody's, given by their products, and the Hessians of PyTorch and JAX."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from kappascope.arguments import plain
from kappascope.names import Array, Module, Tensor

Product = Callable[[Array], Any]
# How far products may be from symmetric, and from what they were before, in units of a product's entries.
_NEAR = {"f64": 1e-7, "f32": 1e-3}
_EXACT = 1e-2  # how far products in float32 may be from those in float64, of their norm


class Operator:
    """A symmetric matrix A that is given by its products, for kappascope.analyze.

        a = kappascope.Operator(lambda x: h @ x, n=len(h))
        kappascope.analyze(a)["lambda_max"]

    product    a function: x, an array of n float64 numbers that it must not change, -> A x, n numbers as
               NumPy's asarray takes them
    n          the order of A
    precision  of the products, "f64" or "f32"
    exact      for "f32": a function like `product` whose products are in float64. It certifies the bounds;
               without it, they are not certified

    `a @ v` is a product, also of a matrix [n, k]; scipy.sparse.linalg.aslinearoperator(a) takes it, too. Only
    one thread at a time may use an operator. An operator has no layers, no null space that is known from an
    architecture, and no reference results: what they say of a critic's file is missing."""

    def __init__(
        self, product: Product, n: int, precision: str = "f64", exact: Product | None = None
    ) -> None:
        if not callable(product) or not (exact is None or callable(exact)):
            raise TypeError(f"product: expected a function, found {product if exact is None else exact!r}")
        if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or not 1 <= n < 2**31:
            raise ValueError(f"n: expected a whole number from 1 to 2147483647, found {n!r}")
        if precision not in _NEAR:
            raise ValueError(f"precision: expected f64 or f32, found {precision!r}")
        if exact is not None and precision == "f64":
            raise ValueError("exact: expected with precision='f32', found f64, whose products are exact")
        self.shape, self.dtype = (int(n), int(n)), np.dtype(np.float64)
        self.product, self.exact, self.precision = product, exact, precision
        self._used = threading.Lock()

    @contextlib.contextmanager
    def use(self) -> Iterator[None]:
        """Fails if another thread, or a product of its own, is at it."""
        if not self._used.acquire(blocking=False):
            raise RuntimeError("operator: expected one user at a time, found it in use")
        try:
            yield
        finally:
            self._used.release()

    def multiply(self, x: Array, exact: bool = False) -> Array:
        """A x, checked. Raises ValueError, and what the product raises."""
        y = plain((self.exact if exact and self.exact else self.product)(x))
        if y.dtype.kind not in "fiu":
            raise TypeError(f"product: expected real numbers, found an array of {y.dtype}")
        if y.shape != x.shape:
            raise ValueError(f"product: expected {len(x)} numbers, found an array of shape {list(y.shape)}")
        y = y.astype(np.float64)
        if not np.isfinite(y).all():
            at = int(np.argmin(np.isfinite(y)))
            raise ValueError(f"product: expected finite numbers, found {y[at]} at element {at}")
        return y

    def matvec(self, v: Any) -> Array:
        return self @ np.asarray(v).reshape(-1)

    def __matmul__(self, v: Any) -> Array:
        x = np.asarray(v, dtype=np.float64)
        if x.ndim not in (1, 2) or len(x) != self.shape[0]:
            raise ValueError(
                f"product: expected [{self.shape[0]}] or [{self.shape[0]}, k], found {list(x.shape)}"
            )
        with self.use():
            return self.multiply(x) if x.ndim == 1 else np.stack([self.multiply(c) for c in x.T.copy()], 1)

    def _check_exact(self, u: Array, au: Array) -> None:
        """Twice a product in float64, the second time of a loss that is computed again: it is about A u."""
        for _ in range(2 if self.exact else 0):
            wide = self.multiply(u, True)
            if np.linalg.norm(wide - au) > _EXACT * max(np.linalg.norm(au), np.linalg.norm(wide)):
                raise ValueError(
                    "exact: expected about the product in float32, found another one in float64: does the "
                    "loss draw random numbers, or call what does not compute in float64, such as TorchScript?"
                )

    def check(self) -> None:
        """Products with random vectors: the same one twice is the same, also about the same in float64, and
        u'Av = v'Au. Raises ValueError."""
        n = self.shape[0]
        u, v = np.random.default_rng(0).standard_normal((2, n))
        au, av, again = self.multiply(u), self.multiply(v), self.multiply(u)
        near = _NEAR[self.precision]
        size = np.linalg.norm(au)
        if np.linalg.norm(again - au) > near * size:
            moved = np.linalg.norm(again - au) / size
            raise ValueError(
                f"product: expected the same product of the same vector, found one that differs by "
                f"{moved:.2g} of its norm: does it draw random numbers, or change what it depends on?"
            )
        self._check_exact(u, au)
        left, right = float(v @ au), float(u @ av)
        entry = max(size * np.linalg.norm(v), np.linalg.norm(av) * np.linalg.norm(u)) / np.sqrt(n)
        if abs(left - right) > near * entry:
            raise ValueError(
                f"product: expected a symmetric operator, found v'Au = {left:.10g} and u'Av = {right:.10g} "
                "for random vectors u and v"
            )


def torch_hessian(loss: Callable[[], Tensor], parameters: Any) -> Operator:
    """The Hessian of a loss in PyTorch at the parameters' present values.

        h = kappascope.torch_hessian(lambda: mse(critic(x), y), critic.parameters())
        kappascope.analyze(h)

    loss        a function without arguments that computes the loss, a scalar; it must compute the same each
                time: no dropout, no new minibatch
    parameters  of which the Hessian is taken, or a module. Their order is that of the coordinates; one that
                is given twice counts once

    Of float32 parameters, products are in float32 and certificates in float64: for those the loss is computed
    with parameters and all other tensors in float64. If it cannot be, bounds are not certified, and a warning
    says so. The graph of the gradient is kept, so memory is about that of a training step."""
    import torch

    given = parameters.parameters() if hasattr(parameters, "parameters") else parameters
    given = list({id(p): p for p in given}.values())
    tensors = [p for p in given if getattr(p, "requires_grad", False)]
    if not tensors:
        raise ValueError(f"parameters: expected tensors that require a gradient, found {len(given)} others")
    dtypes = {p.dtype for p in tensors}
    if not dtypes <= {torch.float32, torch.float64}:
        raise TypeError(f"parameters: expected float32 or float64, found {sorted(map(str, dtypes))}")
    sizes = [p.numel() for p in tensors]
    kept: list[Any] = []
    before = [p.detach().clone() for p in tensors]

    def gradient(of: list[Tensor], mode: Any) -> list[Tensor | None]:
        with mode:
            value = loss()
        if getattr(value, "numel", lambda: 0)() != 1:
            raise ValueError(f"loss: expected a scalar tensor, found {getattr(value, 'shape', type(value))}")
        with torch.enable_grad():
            found = list(torch.autograd.grad(value.sum(), of, create_graph=True, allow_unused=True))
        if of is tensors and all(g is None for g in found):
            raise ValueError("parameters: expected some on which the loss depends, found none")
        return found

    def multiply(of: list[Tensor], gradients: list[Tensor | None], x: Array) -> Array:
        if not all(torch.allclose(p, q, 0, 0, equal_nan=True) for p, q in zip(before, tensors)):
            raise RuntimeError(
                "parameters: expected them as they were, found them changed: make a new operator"
            )
        parts = torch.from_numpy(np.array(x)).split(sizes)
        pairs = [
            (g, v.reshape(p.shape).to(device=p.device, dtype=p.dtype))
            for g, v, p in zip(gradients, parts, of)
            if g is not None and g.requires_grad
        ]
        if not pairs:  # a linear loss
            return np.zeros_like(x)
        products = torch.autograd.grad(
            [g for g, _ in pairs], of, [v for _, v in pairs], retain_graph=True, allow_unused=True
        )
        return np.concatenate(
            [
                np.zeros(p.numel()) if y is None else y.detach().reshape(-1).double().cpu().numpy()
                for y, p in zip(products, of)
            ]
        )

    def product(x: Array) -> Array:
        if not kept:
            kept.append(gradient(tensors, contextlib.nullcontext()))
        return multiply(tensors, kept[0], x)

    def exact(x: Array) -> Array:
        wide = [p.detach().double().requires_grad_() for p in tensors]
        return multiply(wide, gradient(wide, _widening(torch, tensors, wide)), x)

    n = sum(sizes)
    if dtypes == {torch.float64}:
        return Operator(product, n)
    kept.append(gradient(tensors, contextlib.nullcontext()))  # first, as a loss may keep what it makes
    try:
        exact(np.zeros(n))
    except Exception as error:
        import warnings

        text = " ".join(str(error).split())
        warnings.warn(
            f"bounds will not be certified: the loss cannot be computed in float64: {text}", stacklevel=2
        )
        return Operator(product, n, "f32")
    return Operator(product, n, "f32", exact)


def _widening(torch: Module, tensors: list[Tensor], wide: list[Tensor]) -> Any:
    """Functions of PyTorch get wide[i] in place of tensors[i], and every other float32 tensor in float64."""
    from torch.overrides import TorchFunctionMode

    places = {id(p): one for p, one in zip(tensors, wide)}

    def widen(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            value = places.get(id(value), value)
            return value.double() if value.dtype == torch.float32 else value
        if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
            return type(value)(map(widen, value))
        return torch.float64 if value is torch.float32 else value

    class Widening(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, function: Any, _: Any, args: Any = (), kwargs: Any = None) -> Any:
            if getattr(function, "__name__", "") == "float":  # x.float()
                function = torch.Tensor.double
            given = {key: widen(one) for key, one in (kwargs or {}).items()}
            return widen(function(*map(widen, args), **given))  # such as zeros(), in which the loss writes

    return Widening()


def jax_float64() -> Any:
    """In which arrays of JAX may be in float64."""
    import jax
    import jax.experimental

    return (jax if hasattr(jax, "enable_x64") else jax.experimental).enable_x64(True)  # since version 0.8


def jax_hessian(loss: Callable[[Any], Any], parameters: Any) -> Operator:
    """The Hessian of a loss in JAX at parameters, a tree of arrays: loss(parameters) is a scalar.

        h = kappascope.jax_hessian(lambda p: mse(critic.apply(p, x), y), params)
        kappascope.analyze(h)

    Coordinates are in the order of jax.flatten_util.ravel_pytree. Of float32 parameters, products are in
    float32, and certificates in float64 by jax.enable_x64, where arrays of the loss's own widen as
    JAX widens them; what the loss itself casts to float32 stays so."""
    import jax
    from jax.flatten_util import ravel_pytree

    flat, unravel = ravel_pytree(parameters)

    def products(point: Any, rebuild: Callable[[Any], Any]) -> Callable[[Any], Any]:
        slope = jax.grad(lambda q: loss(rebuild(q)))
        return jax.jit(lambda v: jax.jvp(slope, (point,), (v,))[1])  # type: ignore[no-any-return]

    of_flat = products(flat, unravel)

    def product(x: Array) -> Array:
        return np.asarray(of_flat(jax.numpy.asarray(x, dtype=flat.dtype)))

    if flat.dtype == np.float64:
        return Operator(product, flat.size)
    kept: list[Any] = []

    def exact(x: Array) -> Array:
        with jax_float64():
            if not kept:
                wide = jax.tree_util.tree_map(lambda a: np.asarray(a, dtype=np.float64), parameters)
                kept.append(products(*ravel_pytree(wide)))
            return np.asarray(kept[0](jax.numpy.asarray(x)))

    return Operator(product, flat.size, "f32", exact)
