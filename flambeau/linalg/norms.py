"""Norms and condition numbers of matrices.

Keeps     dims of the matrices may be any two; the others are a batch.
Touches   spectra, tensor.functions.
Not here  norms of vectors (ops.reduction.norms)."""

from __future__ import annotations

from typing import Any

from flambeau.base.errors import present
from flambeau.gradients.autocast import in_float32
from flambeau.linalg import checks
from flambeau.ops.reduction.norms import wider
from flambeau.tensor import Tensor
from flambeau.tensor import functions as t
from flambeau.tensor.arguments.refusals import refusal
from flambeau.tensor.inplace import takes_out
from flambeau.tensor.public import forms

_INFINITY = float("inf")


def vector_norm(
    x: Any, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None,
    out: Any = None,
) -> Any:  # fmt: skip
    """Norms of vectors: the elements along `dim`, or all of them."""
    made = t.vector_norm(x, ord, dim, keepdim, dtype=dtype)
    return made if out is None else out.copy_(made)


def matrix_norm(
    A: Any, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, *,
    dtype: Any = None, out: Any = None,
) -> Any:  # fmt: skip
    """Norms of matrices: "fro", "nuc", inf, -inf, 1, -1, 2, -2."""
    name = "linalg.matrix_norm"
    if isinstance(ord, str) and ord not in ("fro", "nuc"):
        raise RuntimeError(f"{name}: Order {ord} not supported.")
    checks.matrices(name, A)
    checks.floating(name, A, low=ord != "nuc")
    dims = tuple(dim)
    if len(dims) != 2:
        raise RuntimeError(f"{name}: dim must be a 2-tuple. Got {', '.join(map(str, dims))}")
    first, second = (d % A.dim() for d in dims)
    if first == second:
        raise RuntimeError(f"{name}: dims must be different. Got ({dims[0]}, {dims[1]})")
    given = A if dtype is None else A.to(wider(name, A.dtype, dtype))
    made = _matrix_norm(given, ord, first, second, keepdim)
    return made if out is None else out.copy_(made)


def _matrix_norm(given: Any, ord: Any, first: int, second: int, keepdim: bool) -> Any:
    if ord == "fro":
        return t.vector_norm(given, 2, (first, second), keepdim)
    if ord != "nuc" and (isinstance(ord, str) or abs(ord) not in (1, 2, _INFINITY)):
        word = f"Order {ord} not supported."
        if isinstance(ord, float) and ord == int(ord):
            word = f"Order {int(ord)} not supported."
        raise RuntimeError(f"linalg.matrix_norm: {word}")
    if ord == "nuc" or abs(ord) == 2:
        from flambeau.linalg.spectra import svdvals

        values = svdvals(given.movedim((first, second), (-2, -1)))
        if ord == "nuc" or (ord > 0 and not values.shape[-1]):
            made = values.sum(-1)
        else:
            made = values.amax(-1) if ord > 0 else values.amin(-1)
        if not keepdim:
            return made
        return made.unsqueeze(min(first, second)).unsqueeze(max(first, second))
    summed, kept = (first, second) if abs(ord) == 1 else (second, first)
    totals = given.abs().sum(summed, keepdim=True)
    if ord > 0 and not totals.shape[kept]:
        made = totals.sum(kept, keepdim=True)
    else:
        made = totals.amax(kept, keepdim=True) if ord > 0 else totals.amin(kept, keepdim=True)
    return made if keepdim else made.squeeze(max(first, second)).squeeze(min(first, second))


def norm(
    A: Any, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None,
    out: Any = None,
) -> Any:  # fmt: skip
    """Norms of vectors or matrices, as ord and dim say.

    >>> import flambeau as torch
    >>> torch.linalg.norm(torch.tensor([[3.0, 4.0], [0.0, 0.0]]), ord="fro")
    tensor(5.)
    """
    dims = (dim,) if isinstance(dim, int) else dim
    if ord is None:
        return vector_norm(A, 2, dims, keepdim, dtype=dtype, out=out)
    if dims is None:
        if isinstance(ord, str):
            return matrix_norm(A, ord, (-2, -1), keepdim, dtype=dtype, out=out)
        if A.dim() not in (1, 2):
            raise RuntimeError(
                "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got "
                f"{A.dim()}D."
            )
        dims = tuple(range(A.dim()))
    if isinstance(ord, str) or len(dims) == 2:
        return matrix_norm(A, ord, dims, keepdim, dtype=dtype, out=out)
    return vector_norm(A, ord, dims, keepdim, dtype=dtype, out=out)


@in_float32
@takes_out
def cond(A: Any, p: Any = None) -> Any:
    """How much solving with matrices may enlarge errors."""
    checks.matrices("linalg.cond", A)
    checks.floating("linalg.cond", A)
    if not A.shape[-1] or not A.shape[-2]:
        return t.zeros(A.shape[:-2], dtype=A.dtype.to_real())
    if p is None or p in (2, -2):
        from flambeau.linalg.spectra import svdvals

        values = svdvals(A)
        largest, smallest = values[..., 0], values[..., -1]
        return smallest / largest if p == -2 else largest / smallest
    checks.square("linalg.cond", A)
    from flambeau.linalg.factors import inv_ex

    inverse, info = inv_ex(A)
    made = matrix_norm(A, p) * matrix_norm(inverse, p)
    return t.where(t.eq(info, 0), made, _INFINITY)


def norm_of_tensor(
    input: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, out: Any = None,
    dtype: Any = None,
) -> Tensor:  # fmt: skip
    """torch.norm: of a vector, or for p="nuc" the sum of the singular values of matrices."""
    dims = dim if dim is None or hasattr(dim, "__len__") else (dim,)
    if isinstance(p, str) and p != "fro":
        dims = tuple(range(input.dim())) if dims is None else dims
        found: Tensor = matrix_norm(input, p, dims, keepdim, dtype=dtype, out=out)
        return found
    if isinstance(dim, bool):
        raise present(_misfit(input, p, dims, keepdim, dtype, out), "a bool is no dim")
    try:
        return forms.norm(input, p, dims, keepdim, out, dtype)
    except Exception:
        told = _misfit(input, p, dims, keepdim, dtype, out)
        if told is None:
            raise
        raise told from None


def _misfit(input: Any, p: Any, dims: Any, keepdim: Any, dtype: Any, out: Any) -> TypeError | None:
    """torch's error for arguments that its vector norm does not take."""
    order = 2 if p is None or isinstance(p, str) else p
    named = {"dtype": dtype, "out": out}
    return refusal("linalg_vector_norm", (input, order, dims, keepdim), named, False)


norm_of_tensor.__name__ = norm_of_tensor.__qualname__ = "norm"
