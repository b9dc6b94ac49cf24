"""Singular values and eigenvalues, and what rests on them: pseudoinverse and rank.

Keeps     gradients are recorded operators. Vectors are LAPACK's, their signs included.
Touches   lapack, checks, factors, autograd.Function.
Not here  norms (norms.py), least squares (least_squares.py)."""

from __future__ import annotations

from typing import Any

from flambeau.autograd.function import Function
from flambeau.base import dtypes
from flambeau.gradients.autocast import in_float32
from flambeau.linalg import checks
from flambeau.linalg.factors import named, solve
from flambeau.linalg.lapack import (
    call,
    columns,
    copied,
    each,
    integers,
    real_work,
    with_workspace,
    work,
)
from flambeau.ops.define import type_name
from flambeau.tensor import creation
from flambeau.tensor import functions as t
from flambeau.tensor.inplace import takes_out
from flambeau.tensor.public.composed import diag_embed
from flambeau.tensor.public.queries import finfo
from flambeau.tensor.tensor import result_tuple


@named
class LinalgSvd(Function):
    """U, S and V^H of A = U diag(S) V^H."""

    @staticmethod
    def forward(ctx: Any, matrices: Any, full: bool, name: str) -> Any:
        *batch, rows, width = matrices.shape
        size = min(rows, width)
        values = creation.empty((*batch, size), dtype=matrices.dtype.to_real())
        left = columns((*batch, rows, rows if full else size), matrices)
        right = columns((*batch, width if full else size, width), matrices)
        infos = []
        if size:
            checks.finite(name, matrices)
            given = copied(matrices)
            n_real = size * max(5 * size + 7, 2 * max(rows, width) + 2 * size + 1)
            after = (*real_work(given.dtype, n_real), integers(8 * size))
            for at, s, u, v in each((given, 2), (values, 1), (left, 2), (right, 2)):
                infos.append(with_workspace(
                    "gesdd", given.dtype, "A" if full else "S", rows, width, at, max(1, rows), s,
                    u, max(1, rows), v, max(1, right.shape[-2]), after=after,
                ))  # fmt: skip
        else:
            left.copy_(t.eye(*left.shape[-2:], dtype=left.dtype).expand(left.shape))
            right.copy_(t.eye(*right.shape[-2:], dtype=right.dtype).expand(right.shape))
        checks.succeeded(name, "svd", infos, matrices.dim() > 2)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(left, values, right)
        return left, values, right

    @staticmethod
    def backward(ctx: Any, into_left: Any, into_values: Any, into_right: Any) -> Any:
        left, values, right = ctx.saved_tensors
        size = values.shape[-1]
        left, right = left[..., :size], right[..., :size, :]
        if into_left is None and into_right is None:  # equal values are no trouble here
            return (left * into_values.unsqueeze(-2)).matmul(right), None, None
        into_left = t.zeros_like(left) if into_left is None else into_left[..., :size]
        into_right = t.zeros_like(right) if into_right is None else into_right[..., :size, :]
        turned = into_right.mH
        squares = values * values
        apart = squares.unsqueeze(-2) - squares.unsqueeze(-1) + _eye(values)
        in_left, in_right = _skew(left.mH.matmul(into_left)), _skew(right.matmul(turned))
        inner = in_left / apart * values.unsqueeze(-2) + values.unsqueeze(-1) * (in_right / apart)
        if into_values is not None:
            inner = inner + diag_embed(into_values)
        if left.dtype.is_complex:
            angles = in_left.diagonal(0, -2, -1)
            checks.free_of_angle(
                "svd_backward", "singular vectors", angles + in_right.diagonal(0, -2, -1)
            )
            inner = inner + diag_embed(angles / (2.0 * values))
        made = left.matmul(inner).matmul(right)
        if left.shape[-2] > size:
            scaled = into_left / values.unsqueeze(-2)
            made = made + (scaled - left.matmul(left.mH.matmul(scaled))).matmul(right)
        if right.shape[-1] > size:
            scaled = (turned / values.unsqueeze(-2)).mH
            made = made + left.matmul(scaled - scaled.matmul(right.mH).matmul(right))
        return made, None, None


def _eye(values: Any) -> Any:
    return t.eye(values.shape[-1], dtype=values.dtype)


def _skew(inner: Any) -> Any:
    return inner - inner.mH


@in_float32
@takes_out
def svd(A: Any, full_matrices: bool = True, *, driver: Any = None) -> Any:
    """U, S and V^H of A = U diag(S) V^H."""
    _check_svd("linalg.svd", A, driver)
    made = LinalgSvd.apply(A, full_matrices, "linalg.svd")
    return result_tuple("linalg_svd", ("U", "S", "Vh"), made)


def _check_svd(name: str, given: Any, driver: Any) -> None:
    checks.matrices(name, given)
    checks.floating(name, given)
    if driver is not None:
        raise RuntimeError(f"{name}: keyword argument `driver=` is only supported on CUDA inputs "
                           "with cuSOLVER backend.")  # fmt: skip


@in_float32
@takes_out
def svdvals(A: Any, *, driver: Any = None) -> Any:
    """Singular values, the largest first."""
    _check_svd("linalg.svd", A, driver)
    return LinalgSvd.apply(A, False, "linalg.svd")[1]


@in_float32
@takes_out
def old_svd(input: Any, some: bool = True, compute_uv: bool = True) -> Any:
    """torch.svd: V, not its transpose."""
    if input.dim() < 2:
        raise RuntimeError(
            f"linalg.svd: input should have at least 2 dimensions, but has {input.dim()} "
            "dimensions instead"
        )
    left, values, right = svd(input, not some)
    if not compute_uv:
        rows, width = input.shape[-2:]
        left, right = (input.new_zeros((*input.shape[:-2], n, n)) for n in (rows, width))
    return result_tuple("svd", ("U", "S", "V"), (left, values, right.mH))


@named
class LinalgEigh(Function):
    """Eigenvalues and vectors of Hermitian matrices."""

    @staticmethod
    def forward(ctx: Any, matrices: Any, part: str) -> Any:
        vectors = copied(matrices)
        values = creation.empty(matrices.shape[:-1], dtype=matrices.dtype.to_real())
        size = matrices.shape[-1]
        infos = [_eigh_one(vectors.dtype, part, size, at, to)
                 for at, to in each((vectors, 2), (values, 1))]  # fmt: skip
        checks.succeeded("linalg.eigh", "eigh", infos, matrices.dim() > 2)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(values, vectors)
        return values, vectors

    @staticmethod
    def backward(ctx: Any, into_values: Any, into_vectors: Any) -> Any:
        values, vectors = ctx.saved_tensors
        if into_vectors is None:
            return (vectors * into_values.unsqueeze(-2)).matmul(vectors.mH), None
        apart = values.unsqueeze(-2) - values.unsqueeze(-1) + _eye(values)
        turning = vectors.mH.matmul(into_vectors)
        if vectors.dtype.is_complex:
            checks.free_of_angle(
                "linalg_eigh_backward", "eigenvectors", turning.diagonal(0, -2, -1)
            )
        inner = 0.5 * _skew(turning) / apart
        if into_values is not None:
            inner = inner + diag_embed(into_values)
        return vectors.matmul(inner).matmul(vectors.mH), None


def _eigh_one(element: Any, part: str, size: int, at: Any, to: Any) -> int:
    if not size:
        return 0
    n_work, n_real = 1 + 6 * size + 2 * size * size, 1 + 5 * size + 2 * size * size
    real = [each for memory in real_work(element, n_real) for each in (memory, n_real)]
    return call(
        "syevd", element, "V", part, size, at, size, to, work(element, n_work), n_work, *real,
        integers(3 + 5 * size), 3 + 5 * size,
    )  # fmt: skip


@in_float32
@takes_out
def eigh(A: Any, UPLO: str = "L") -> Any:
    """Eigenvalues, the smallest first, and eigenvectors of Hermitian matrices."""
    return result_tuple("linalg_eigh", ("eigenvalues", "eigenvectors"), _eigh("eigh", A, UPLO))


def _eigh(name: str, given: Any, part: str) -> Any:
    checks.square(f"linalg.{name}", given)
    checks.floating(f"linalg.{name}", given)
    if part.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {part}")
    return LinalgEigh.apply(given, part.upper())


@in_float32
@takes_out
def eigvalsh(A: Any, UPLO: str = "L") -> Any:
    """Eigenvalues of Hermitian matrices, the smallest first.

    >>> import flambeau as torch
    >>> torch.linalg.eigvalsh(torch.tensor([[3.0, 0.0], [0.0, 2.0]]))
    tensor([2., 3.])
    """
    return _eigh("eigvalsh", A, UPLO)[0]


@in_float32
@takes_out
def eig(A: Any) -> Any:
    """Eigenvalues and vectors of square matrices, complex."""
    return result_tuple("linalg_eig", ("eigenvalues", "eigenvectors"), _eig("linalg.eig", A))


@in_float32
@takes_out
def eigvals(A: Any) -> Any:
    """Eigenvalues of square matrices, complex."""
    return _eig("linalg.eigvals", A)[0]


def _eig(name: str, given: Any) -> tuple[Any, Any]:
    checks.square(name, given)
    checks.floating(name, given)
    if not bool(given.isfinite().all()):
        raise RuntimeError("torch.linalg.eig: input tensor should not contain infs or NaNs.")
    made: tuple[Any, Any] = LinalgEig.apply(given, name)
    return made


@named
class LinalgEig(Function):
    """Eigenvalues and vectors of square matrices."""

    @staticmethod
    def forward(ctx: Any, given: Any, name: str) -> Any:
        factor = copied(given)
        values, vectors, infos = (_eig_complex if given.dtype.is_complex else _eig_real)(factor)
        checks.succeeded(name, "eigh", infos, given.dim() > 2)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(values, vectors)
        ctx.is_real = not given.dtype.is_complex
        return values, vectors

    @staticmethod
    def backward(ctx: Any, into_values: Any, into_vectors: Any) -> Any:
        values, vectors = ctx.saved_tensors
        adjoint = vectors.mH
        if into_vectors is None:
            inner = into_values.unsqueeze(-1) * adjoint
        else:
            turning = adjoint.matmul(into_vectors)
            angles = turning.diagonal(0, -2, -1)
            checks.free_of_angle("linalg_eig_backward", "eigenvectors", angles)
            turning = turning - adjoint.matmul(vectors) * angles.real.unsqueeze(-2)
            apart = values.unsqueeze(-2) - values.unsqueeze(-1) + _eye(values)
            inner = turning / apart.conj()
            inner = inner - diag_embed(inner.diagonal(0, -2, -1))
            if into_values is not None:
                inner = inner + diag_embed(into_values)
            inner = inner.matmul(adjoint)
        made = solve(adjoint, inner)
        return made.real if ctx.is_real else made, None


def _eig_complex(matrices: Any) -> tuple[Any, Any, list[int]]:
    element, size = matrices.dtype, matrices.shape[-1]
    values = creation.empty(matrices.shape[:-1], dtype=element)
    vectors = columns(tuple(matrices.shape), matrices)
    infos = [
        with_workspace(
            "geev", element, "N", "V", size, at, max(1, size), to, work(element, 1), 1, vector,
            max(1, size), after=real_work(element, 2 * size),
        )
        for at, to, vector in each((matrices, 2), (values, 1), (vectors, 2))
    ]  # fmt: skip
    return values, vectors, infos


def _eig_real(matrices: Any) -> tuple[Any, Any, list[int]]:
    element, size = matrices.dtype, matrices.shape[-1]
    real, imaginary = (creation.empty(matrices.shape[:-1], dtype=element) for _ in range(2))
    vectors = columns(tuple(matrices.shape), matrices)
    infos = [
        with_workspace(
            "geev", element, "N", "V", size, at, max(1, size), re, im, work(element, 1), 1, to,
            max(1, size),
        )
        for at, re, im, to in each((matrices, 2), (real, 1), (imaginary, 1), (vectors, 2))
    ]  # fmt: skip
    return (*_complex_pairs(real, imaginary, vectors), infos)


def _complex_pairs(real: Any, imaginary: Any, vectors: Any) -> tuple[Any, Any]:
    """LAPACK's real pairs as complex numbers."""
    kind = dtypes.complex64 if real.dtype is dtypes.float32 else dtypes.complex128
    size = real.shape[-1]
    if not real.numel():
        return real.to(kind), vectors.to(kind)
    values, columns = [], []
    for re, im, rows in zip(
        real.reshape(-1, size).tolist(), imaginary.reshape(-1, size).tolist(),
        vectors.reshape(-1, size, size).tolist(), strict=True,
    ):  # fmt: skip
        values.append(list(map(complex, re, im)))
        columns.append([_complex_row(row, im) for row in rows])
    made = creation.tensor(values, dtype=kind).reshape(real.shape)
    return made, copied(creation.tensor(columns, dtype=kind).reshape(vectors.shape))


def _complex_row(row: list[float], imaginary: list[float]) -> list[complex]:
    result: list[complex] = []
    for place, part in enumerate(imaginary):
        if part == 0:
            result.append(complex(row[place], 0.0))
        elif part > 0:
            result.append(complex(row[place], row[place + 1]))
        else:
            result.append(complex(row[place - 1], -row[place]))
    return result


def _tolerance(values: Any, shape: Any, atol: Any, rtol: Any) -> Any:
    """What counts as zero beside the largest value."""
    if rtol is None:
        given = atol is not None and bool(t.gt(atol, 0) if hasattr(atol, "shape") else atol > 0)
        rtol = 0.0 if given else finfo(values.dtype).eps * max(shape[-2:])
    largest = values.amax(-1, keepdim=True)
    relative = (rtol.unsqueeze(-1) if hasattr(rtol, "shape") else rtol) * largest
    if atol is None:
        return relative
    absolute = atol.unsqueeze(-1) if hasattr(atol, "shape") else atol
    return t.maximum(relative, t.zeros_like(relative) + absolute)


@named
class LinalgPinv(Function):
    """The pseudoinverse of Moore and Penrose."""

    @staticmethod
    def forward(ctx: Any, matrices: Any, hermitian: bool, atol: Any, rtol: Any) -> Any:
        given = matrices.detach()
        if not matrices.numel():
            made = t.zeros(given.mT.shape, dtype=given.dtype)
        elif hermitian:
            values, left = LinalgEigh.apply(given, "L")
            made = (left * _inverted(values, given, atol, rtol).unsqueeze(-2)).matmul(left.mH)
        else:
            left, values, right = LinalgSvd.apply(given, False, "linalg.svd")
            inverted = _inverted(values, given, atol, rtol)
            made = (right.mH * inverted.unsqueeze(-2)).matmul(left.mH)
        ctx.save_for_backward(matrices, made)
        return made

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        matrices, made = ctx.saved_tensors
        return pinv_backward(grad, made, matrices), None, None, None


def _inverted(values: Any, matrices: Any, atol: Any, rtol: Any) -> Any:
    sizes = values.abs()
    kept = t.gt(sizes, _tolerance(sizes, matrices.shape, atol, rtol))
    return t.where(kept, 1.0 / values, 0.0)


def pinv_backward(grad: Any, made: Any, matrices: Any) -> Any:
    """Golub and Pereyra (1973)."""
    turned, across = grad.mH, made.mH
    if matrices.shape[-2] <= matrices.shape[-1]:
        inner = turned.matmul(made)
        outer = inner.matmul(across)
        return (
            outer - made.matmul(inner).mH - matrices.matmul(made).matmul(outer)
            + across.matmul(made).matmul(turned - inner.matmul(matrices))
        )  # fmt: skip
    inner = made.matmul(turned)
    outer = across.matmul(inner)
    return (
        outer - inner.matmul(made).mH
        + (turned - matrices.matmul(inner)).matmul(made).matmul(across)
        - outer.matmul(made).matmul(matrices)
    )  # fmt: skip


@takes_out
def pinv(
    A: Any, rcond: Any = None, hermitian: bool = False, *, atol: Any = None,
    rtol: Any = None,
) -> Any:  # fmt: skip
    """The pseudoinverse of matrices."""
    if (
        A.dim() < 2
        or A.dtype.to_real().itemsize < 4
        or not (A.dtype.is_floating_point or A.dtype.is_complex)
    ):
        raise RuntimeError(
            f"linalg.pinv({type_name(A)}{{{list(A.shape)}}}): expected a tensor with 2 or more "
            "dimensions of float, double, cfloat or cdouble types"
        )
    if hermitian:
        checks.square("linalg.pinv", A)
    return LinalgPinv.apply(A, hermitian, atol, rcond if rtol is None else rtol)


def pinverse(input: Any, rcond: float = 1e-15) -> Any:
    """torch.pinverse."""
    return pinv(input, rtol=rcond)


@in_float32
@takes_out
def matrix_rank(
    A: Any, tol: Any = None, hermitian: bool = False, *, atol: Any = None,
    rtol: Any = None,
) -> Any:  # fmt: skip
    """How many singular values are not zero."""
    checks.matrices("torch.linalg.matrix_rank", A, "input")
    checks.floating("linalg.matrix_rank", A)
    if 0 in A.shape[-2:]:
        return t.zeros(A.shape[:-2], dtype=dtypes.int64)
    values = eigvalsh(A.detach()).abs() if hermitian else svdvals(A.detach())
    if tol is not None:
        limit = tol.unsqueeze(-1) if hasattr(tol, "shape") else tol
    else:
        limit = _tolerance(values, A.shape, atol, rtol)
    return t.gt(values, limit).sum(-1)
