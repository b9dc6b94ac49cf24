"""Least squares: what comes nearest to solving systems of any shape.

Keeps     gradients are recorded operators. Each driver finds what LAPACK's of that name does.
Touches   lapack, checks, factors, spectra, autograd.Function.
Not here  systems with one solution (factors.py)."""

from __future__ import annotations

import ctypes
from typing import Any

from flambeau.autograd.function import Function
from flambeau.base import dtypes
from flambeau.gradients.autocast import in_float32
from flambeau.linalg import checks
from flambeau.linalg.factors import named, of_one_batch
from flambeau.linalg.lapack import copied, each, integers, real_work, with_workspace
from flambeau.linalg.spectra import pinv, pinv_backward
from flambeau.tensor import creation
from flambeau.tensor import functions as t
from flambeau.tensor.public.queries import finfo
from flambeau.tensor.tensor import result_tuple


@named
class LinalgLstsq(Function):
    """X that makes |A X - B| least, and residuals where there are none: no elements."""

    @staticmethod
    def forward(ctx: Any, matrices: Any, right: Any, solution: Any) -> Any:
        ctx.save_for_backward(matrices, right)
        return solution.view_as(solution), solution.new_empty((0,), dtype=solution.dtype.to_real())

    @staticmethod
    def backward(ctx: Any, grad: Any, _: Any) -> Any:
        matrices, right = ctx.saved_tensors
        inverse = pinv(matrices)
        into_inverse = grad.matmul(right.mH)
        return (pinv_backward(into_inverse, inverse, matrices), inverse.mH.matmul(grad), None)


_DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


def _right_hand_side(input: Any, b: Any, driver: Any) -> tuple[Any, bool]:
    """(b as matrices, whether it was vectors); refuses what lstsq cannot take."""
    name = "torch.linalg.lstsq"
    if input.dim() < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    checks.floating("linalg.lstsq", input)
    if b.dim() < 1:
        raise RuntimeError(f"{name}: other must have at least 1 dimension.")
    if driver is not None and driver not in _DRIVERS:
        raise RuntimeError(
            f"{name}: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)"
        )
    is_vector = input.dim() - 1 == b.dim() and b.shape == input.shape[:-1]
    right = b.unsqueeze(-1) if is_vector else b
    if not is_vector and not 0 <= input.dim() - b.dim() <= 1:
        raise RuntimeError(
            f"{name}: input.dim() must be greater or equal to other.dim() and (input.dim() - "
            "other.dim()) <= 1"
        )
    if right.dim() < 2 or right.shape[-2] != input.shape[-2]:
        place = -1 if is_vector else -2
        raise RuntimeError(f"{name}: input.size(-2) should match other.size({place})")
    if b.dtype is not input.dtype:
        raise RuntimeError(
            f"{name}: Expected input and other to have the same dtype, but got input's dtype "
            f"{input.dtype} and other's dtype {b.dtype}"
        )
    return right, is_vector


@in_float32
def lstsq(input: Any, b: Any, rcond: Any = None, *, driver: Any = None) -> Any:
    """Least squares: solution, residuals, rank, singular values."""
    right, is_vector = _right_hand_side(input, b, driver)
    matrices, right = of_one_batch(input, right)
    chosen = driver or "gelsy"
    solution, rank, values = _least(chosen, matrices, right, rcond)
    residuals = creation.empty((0,), dtype=input.dtype.to_real())
    if input.requires_grad or b.requires_grad:
        solution, residuals = LinalgLstsq.apply(matrices, right, solution)
    *batch, rows, width = input.shape
    if chosen != "gelsy" and rows > width and (rank is None or bool(t.eq(rank, width).all())):
        away = matrices.matmul(solution) - right
        residuals = (away * away.conj()).real.sum(-2)
    solution = solution.squeeze(-1) if is_vector else solution
    rank = _of_batch(rank, batch, dtypes.int64)
    values = _of_batch(values, (*batch, min(rows, width)), input.dtype.to_real())
    return result_tuple(
        "linalg_lstsq", ("solution", "residuals", "rank", "singular_values"),
        (solution, residuals, rank, values),
    )  # fmt: skip


def _of_batch(found: Any, shape: Any, element: Any) -> Any:
    """What is equal along the dims that the matrices were repeated over, once; no elements where
    nothing was found."""
    if found is None:
        return creation.empty((0,), dtype=element)
    for dim in range(found.dim() - len(shape)):
        found = found.select(dim, 0)
    for dim, size in enumerate(shape):
        found = found.narrow(dim, 0, size)
    return found.clone()


def _least(driver: str, matrices: Any, right: Any, rcond: Any) -> tuple[Any, Any, Any]:
    """(solution, rank or None, singular values or None)."""
    element = matrices.dtype
    *batch, rows, width = matrices.shape
    longest = max(rows, width)
    factor, made = copied(matrices), copied(right, longest)
    columns_of = made.shape[-1]
    size = min(rows, width)
    values = creation.empty((*batch, size), dtype=element.to_real())
    limit = finfo(element).eps * longest if rcond is None else float(rcond)
    ranks = []
    for at, to, s in each((factor, 2), (made, 2), (values, 1)):
        sizes = (rows, width, columns_of)
        places = (at, max(1, rows), to, max(1, longest))
        rank = integers(1)
        if driver == "gels":
            with_workspace("gels", element, "N", *sizes, *places)
        elif driver == "gelsy":
            after = real_work(element, 2 * width)
            pivots = integers(width)
            with_workspace("gelsy", element, *sizes, *places, pivots, limit, rank, after=after)
        elif driver == "gelss" or not columns_of:  # gelsd refuses what has no columns
            after = real_work(element, 5 * size)
            with_workspace("gelss", element, *sizes, *places, s, limit, rank, after=after)
        else:
            # More than its formula asks for: subproblems of 25, at most 32 levels of them.
            n_real = (60 + 8 * 32 + columns_of * 2) * size + 75 * columns_of + 26 * 26
            after = (*real_work(element, n_real), integers(64 * size + 4096))
            with_workspace("gelsd", element, *sizes, *places, s, limit, rank, after=after)
        ranks.append(ctypes.c_int32.from_address(rank.value).value)
    solution = made.narrow(-2, 0, width)
    if not rows:
        solution.zero_()
    if driver == "gels":
        return solution, None, None
    found_ranks = creation.tensor(ranks, dtype=dtypes.int64).reshape(tuple(batch))
    return solution, found_ranks, None if driver == "gelsy" else values
