"""Factors of matrices that are wanted themselves: Cholesky, LU, QR, and solving with them.

Keeps     gradients are recorded operators.
Touches   lapack, checks, factors, autograd.Function.
Not here  singular values and eigenvalues (spectra.py).
"""

from __future__ import annotations

import ctypes
from typing import Any

from flambeau.autograd.function import Function
from flambeau.gradients.autocast import in_float32
from flambeau.gradients.recording.drawn import shows
from flambeau.linalg import checks
from flambeau.linalg.factors import (
    LinalgSolveTriangular,
    eliminated,
    info_of,
    named,
    of_one_batch,
    solve_triangular,
)
from flambeau.linalg.lapack import call, columns, copied, each, with_workspace, work
from flambeau.tensor import creation
from flambeau.tensor import functions as t
from flambeau.tensor.inplace import takes_out
from flambeau.tensor.public.composed import diag_embed
from flambeau.tensor.tensor import result_tuple


@named
class LinalgCholeskyEx(Function):
    """L of A = L L^H."""

    @staticmethod
    def forward(ctx: Any, matrices: Any, upper: bool, infos: list[int]) -> Any:
        given = matrices.detach()
        factor = copied(t.triu(given) if upper else t.tril(given))
        size = factor.shape[-1]
        for (at,) in each((factor, 2)):
            infos.append(call("potrf", factor.dtype, "U" if upper else "L", size, at, max(1, size)))
        ctx.upper = upper
        ctx.save_for_backward(factor)
        return factor

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (factor,) = ctx.saved_tensors
        if ctx.upper:  # the adjoint of the lower factor of the same matrix
            factor, grad = factor.mH, grad.mH
        inner = t.tril(factor.mH.matmul(grad))
        inner = inner + t.tril(inner, -1).mH
        half = solve_triangular(factor.mH, inner, upper=True)
        return 0.5 * solve_triangular(factor, half, upper=False, left=False), None, None


@in_float32
@takes_out
def cholesky_ex(input: Any, *, upper: bool = False, check_errors: bool = False) -> Any:
    """Cholesky factors and, for each matrix, 0 or the order of the minor that is not positive."""
    return _cholesky_ex("linalg.cholesky", input, upper, check_errors)


def _cholesky_ex(name: str, input: Any, upper: bool, check_errors: bool) -> Any:
    checks.square(name, input)
    checks.floating(name, input)
    infos: list[int] = []
    factor = LinalgCholeskyEx.apply(input, upper, infos)
    if check_errors:
        checks.succeeded(name, "cholesky", infos, input.dim() > 2)
    return result_tuple("linalg_cholesky_ex", ("L", "info"), (factor, info_of(infos, input)))


@in_float32
@takes_out
def cholesky(input: Any, *, upper: bool = False) -> Any:
    """L of A = L L^H for Hermitian positive definite matrices; upper: its adjoint.

    >>> import flambeau as torch
    >>> torch.linalg.cholesky(torch.tensor([[4.0, 2.0], [2.0, 5.0]]))
    tensor([[2., 0.],
            [1., 2.]])
    """
    return _cholesky_ex("linalg.cholesky", input, upper, True)[0]


@in_float32
@takes_out
def old_cholesky(input: Any, upper: bool = False) -> Any:
    """torch.cholesky."""
    return _cholesky_ex("cholesky", input, upper, True)[0]


@named
class CholeskySolve(Function):
    """X of A X = B from the Cholesky factor of A."""

    @staticmethod
    def forward(ctx: Any, right: Any, factor: Any, upper: bool) -> Any:
        lower = factor.mH if upper else factor
        half = LinalgSolveTriangular.apply(lower, right, False, True, False)
        made = LinalgSolveTriangular.apply(lower.mH, half, True, True, False)
        ctx.save_for_backward(factor, made)
        ctx.upper = upper
        return made

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        factor, made = ctx.saved_tensors
        into_right = cholesky_solve(grad, factor, ctx.upper)
        inner = into_right.matmul(made.mH)
        inner = inner + inner.mH
        into_factor = factor.matmul(inner) if ctx.upper else inner.matmul(factor)
        return into_right, -into_factor, None


@in_float32
@takes_out
def cholesky_solve(B: Any, L: Any, upper: bool = False) -> Any:
    """X of A X = B from the Cholesky factor of A."""
    if B.dim() < 2:
        raise RuntimeError(f"b should have at least 2 dimensions, but has {B.dim()} dimensions")
    if L.dim() < 2:
        raise RuntimeError(f"u should have at least 2 dimensions, but has {L.dim()} dimensions")
    checks.square("cholesky_solve", L)
    checks.floating("cholesky_solve", L)
    if L.shape[-1] != B.shape[-2]:
        raise RuntimeError(
            f"Incompatible matrix sizes for cholesky_solve: each A matrix is {L.shape[-1]} by "
            f"{L.shape[-1]} but each b matrix is {B.shape[-2]} by {B.shape[-1]}"
        )
    return CholeskySolve.apply(*of_one_batch(B, L), upper)


@named
class CholeskyInverse(Function):
    """The inverse of A from its Cholesky factor."""

    @staticmethod
    def forward(ctx: Any, factor: Any, upper: bool) -> Any:
        eye = t.eye(factor.shape[-1], dtype=factor.dtype).expand(factor.shape)
        made = CholeskySolve.apply(eye, factor, upper)
        ctx.save_for_backward(factor, made)
        ctx.upper = upper
        return made

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        factor, made = ctx.saved_tensors
        inner = made.matmul(grad + grad.mH).matmul(made)
        return -(factor.matmul(inner) if ctx.upper else inner.matmul(factor)), None


@in_float32
@takes_out
def cholesky_inverse(L: Any, upper: bool = False) -> Any:
    """The inverse of A from its Cholesky factor."""
    checks.square("cholesky_inverse", L)
    checks.floating("cholesky_inverse", L)
    return CholeskyInverse.apply(L, upper)


@named
class LinalgLuFactorEx(Function):
    """L and U in one matrix, pivots beside."""

    @staticmethod
    def forward(ctx: Any, matrices: Any, infos: list[int]) -> Any:
        factor, pivots, found = eliminated(matrices)
        infos += found
        ctx.save_for_backward(factor, pivots)
        ctx.mark_non_differentiable(pivots)
        return factor, pivots

    @staticmethod
    def backward(ctx: Any, grad: Any, _: Any) -> Any:
        factor, pivots = ctx.saved_tensors
        permutation, lower, upper = lu_unpack(factor, pivots)
        size = min(factor.shape[-2:])
        into_lower, into_upper = t.tril(grad[..., :size], -1), t.triu(grad[..., :size, :])
        return permutation.matmul(_lu_backward(lower, upper, into_lower, into_upper)), None


def _lu_backward(lower: Any, upper: Any, into_lower: Any, into_upper: Any) -> Any:
    """The cotangent of P^T A: of its square corner, of the rows below or the columns beside it."""
    size = lower.shape[-1]
    corner, below, beside = lower[..., :size, :], lower[..., size:, :], upper[..., size:]
    square, into_below, into_beside = (
        upper[..., :size], into_lower[..., size:, :], into_upper[..., size:],
    )  # fmt: skip
    of_lower = corner.mH.matmul(into_lower[..., :size, :]) - into_beside.matmul(beside.mH)
    of_upper = into_upper[..., :size].matmul(square.mH) - below.mH.matmul(into_below)
    inner = t.tril(of_lower, -1) + t.triu(of_upper)
    half = t.cat([solve_triangular(square.mH, inner, upper=False, left=False), into_beside], -1)
    made = solve_triangular(corner.mH, half, upper=True, unitriangular=True)
    rest = solve_triangular(square.mH, into_below, upper=False, left=False)
    return t.cat([made, rest], -2) if below.shape[-2] else made


@in_float32
@takes_out
def lu_factor_ex(A: Any, *, pivot: bool = True, check_errors: bool = False) -> Any:
    """lu_factor, and where U has a zero."""
    made = _lu_factor("torch.lu_factor", A, pivot, check_errors, "torch.linalg.lu_factor_ex")
    return result_tuple("linalg_lu_factor_ex", ("LU", "pivots", "info"), made)


def _lu_factor(
    name: str, matrices: Any, pivot: bool, check_errors: bool, failing: str = ""
) -> tuple[Any, Any, Any]:
    if matrices.dim() < 2:
        raise RuntimeError(
            f"{name}: Expected tensor with 2 or more dimensions. Got size: {list(matrices.shape)} "
            "instead"
        )
    checks.floating(name, matrices)
    if not pivot:
        raise RuntimeError("linalg.lu_factor: LU without pivoting is not implemented on the CPU")
    infos: list[int] = []
    factor, pivots = LinalgLuFactorEx.apply(matrices, infos)
    if check_errors:
        checks.succeeded(failing, "lu_factor", infos, matrices.dim() > 2, RuntimeError)
    return factor, pivots, info_of(infos, matrices)


@in_float32
@takes_out
def lu_factor(A: Any, *, pivot: bool = True) -> Any:
    """L and U of A = P L U in one matrix, and the pivots."""
    factor, pivots, _ = _lu_factor("torch.lu_factor", A, pivot, True, "torch.linalg.lu_factor")
    return result_tuple("linalg_lu_factor", ("LU", "pivots"), (factor, pivots))


@shows("LuUnpackBackward0")
@takes_out
def lu_unpack(
    LU_data: Any, LU_pivots: Any, unpack_data: bool = True, unpack_pivots: bool = True
) -> Any:
    """P, L and U from what lu_factor returns."""
    rows, width = LU_data.shape[-2:]
    size = min(rows, width)
    lower = t.tril(LU_data[..., :size], -1) + t.eye(rows, size, dtype=LU_data.dtype)
    upper = t.triu(LU_data[..., :size, :])
    permutation = _permutation(LU_pivots, rows, LU_data)
    nothing = LU_data.new_empty((0,))
    if not unpack_data:
        lower = upper = nothing
    if not unpack_pivots:
        permutation = nothing
    return result_tuple("lu_unpack", ("P", "L", "U"), (permutation, lower, upper))


def _permutation(pivots: Any, rows: int, like: Any) -> Any:
    orders = []
    shape = (*like.shape[:-2], rows, rows)
    if not pivots.shape[-1]:
        return t.eye(rows, dtype=like.dtype).expand(shape).clone()
    for swaps in pivots.reshape(-1, pivots.shape[-1]).tolist() if pivots.numel() else []:
        order = list(range(rows))
        for place, other in enumerate(swaps):
            order[place], order[other - 1] = order[other - 1], order[place]
        orders.append(order)
    if not orders:
        return t.zeros(shape, dtype=like.dtype)
    eye = t.eye(rows, dtype=like.dtype)
    index = creation.tensor(orders)
    turned = eye.index_select(0, index.reshape(-1)).reshape(-1, rows, rows).mT
    return turned.contiguous().reshape(shape)


@in_float32
@takes_out
def lu(A: Any, *, pivot: bool = True) -> Any:
    """P, L and U of A = P L U."""
    factor, pivots, _ = _lu_factor("linalg.lu", A, pivot, False)
    return result_tuple("linalg_lu", ("P", "L", "U"), tuple(lu_unpack(factor, pivots)))


@shows("LinalgLuSolveBackward0")
@in_float32
@takes_out
def lu_solve(LU: Any, pivots: Any, B: Any, *, left: bool = True, adjoint: bool = False) -> Any:
    """X of A X = B from what lu_factor returns."""
    permutation, lower, upper = lu_unpack(LU, pivots)
    if not left:
        return lu_solve(LU, pivots, B.mH, adjoint=not adjoint).mH
    if adjoint:
        half = solve_triangular(upper.mH, B, upper=False)
        made = solve_triangular(lower.mH, half, upper=True, unitriangular=True)
        return permutation.matmul(made)
    half = solve_triangular(lower, permutation.mT.matmul(B), upper=False, unitriangular=True)
    return solve_triangular(upper, half, upper=True)


@in_float32
@takes_out
def old_lu_solve(b: Any, LU_data: Any, LU_pivots: Any) -> Any:
    """torch.lu_solve: the old order of arguments."""
    return lu_solve(LU_data, LU_pivots, b)


def old_lu(A: Any, pivot: bool = True, get_infos: bool = False) -> Any:
    """torch.lu: factors in one, pivots, and infos where asked."""
    factor, pivots, info = lu_factor_ex(A, pivot=pivot)
    if get_infos:
        return result_tuple("_lu_with_info", ("LU", "pivots", "info"), (factor, pivots, info))
    return factor, pivots


@named
class LinalgQr(Function):
    """Q and R of A = Q R."""

    @staticmethod
    def forward(ctx: Any, matrices: Any, mode: str) -> Any:
        rows, width = matrices.shape[-2:]
        size = rows if mode == "complete" else min(rows, width)
        factor = copied(matrices)
        basis = columns((*matrices.shape[:-2], rows, max(size, width)), matrices)
        for at, to in each((factor, 2), (basis, 2)):
            scales = work(factor.dtype, min(rows, width))
            with_workspace("geqrf", factor.dtype, rows, width, at, max(1, rows), scales)
            if mode != "r":
                _copy_columns(at, to, rows * width * factor.element_size())
                with_workspace(
                    "orgqr", factor.dtype, rows, size, min(rows, width), to, max(1, rows), scales
                )
        upper = copied(t.triu(factor)[..., :size, :])
        basis = copied(basis[..., :size]) if basis.shape[-1] != size else basis
        if mode == "r":
            basis = creation.empty((0,), dtype=matrices.dtype)
        ctx.mode = mode
        ctx.save_for_backward(basis, upper)
        return basis, upper

    @staticmethod
    def backward(ctx: Any, into_basis: Any, into_upper: Any) -> Any:
        basis, upper = ctx.saved_tensors
        if ctx.mode == "r":
            raise RuntimeError(
                "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. "
                "Please use linalg.qr(A, mode='reduced') if you are going to require gradients."
            )
        rows, width = basis.shape[-2], upper.shape[-1]
        if ctx.mode == "complete" and rows > width:
            raise RuntimeError(
                "The QR decomposition is not differentiable when mode='complete' and nrows > ncols."
            )
        if rows >= width:
            return _qr_backward(basis, upper, into_basis, into_upper), None
        # A = [X | Y], Q and the first columns of R belong to X, the others are Q^H Y.
        first, others = upper[..., :rows], into_upper[..., rows:]
        rest = basis.matmul(upper[..., rows:])
        into = into_basis + rest.matmul(others.mH)
        into_first = _qr_backward(basis, first, into, into_upper[..., :rows])
        return t.cat([into_first, basis.matmul(others)], -1), None


def _copy_columns(source: Any, target: Any, n_bytes: int) -> None:
    ctypes.memmove(target.value, source.value, n_bytes)


def _qr_backward(basis: Any, upper: Any, into_basis: Any, into_upper: Any) -> Any:
    inner = upper.matmul(into_upper.mH) - into_basis.mH.matmul(basis)
    below = t.tril(inner, -1)
    hermitian = below + below.mH + diag_embed(inner.diagonal(0, -2, -1).real)
    whole = into_basis + basis.matmul(hermitian)
    return solve_triangular(upper.mH, whole, upper=False, left=False)


@in_float32
@takes_out
def qr(A: Any, mode: str = "reduced") -> Any:
    """Q and R of A = Q R."""
    checks.matrices("linalg.qr", A)
    checks.floating("linalg.qr", A)
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', "
            "or 'complete'"
        )
    return result_tuple("linalg_qr", ("Q", "R"), LinalgQr.apply(A, mode))


@in_float32
@takes_out
def old_qr(input: Any, some: bool = True) -> Any:
    """torch.qr."""
    return result_tuple("qr", ("Q", "R"), tuple(qr(input, "reduced" if some else "complete")))
