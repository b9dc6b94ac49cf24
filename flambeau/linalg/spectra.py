"""Singular values and eigenvalues, and what rests on them: pseudoinverse, rank, least squares.

Keeps     gradients are recorded operators. Vectors are LAPACK's, their signs included.
Touches   lapack, checks, factors, autograd.Function.
Not here  norms (norms.py)."""

from __future__ import annotations

import ctypes
from typing import Any

from flambeau.autograd.function import Function
from flambeau.base import dtypes
from flambeau.base.errors import helped
from flambeau.gradients.autocast import in_float32
from flambeau.linalg import checks
from flambeau.linalg.factors import named, of_one_batch
from flambeau.linalg.lapack import call, columns, copied, each, integers, with_workspace, work
from flambeau.tensor import creation
from flambeau.tensor import functions as t
from flambeau.tensor.inplace import takes_out
from flambeau.tensor.public.composed import diag_embed
from flambeau.tensor.public.queries import finfo
from flambeau.tensor.tensor import result_tuple


@named
class LinalgSvd(Function):
    """U, S and V^T of A = U diag(S) V^T."""

    @staticmethod
    def forward(ctx: Any, matrices: Any, full: bool, name: str) -> Any:
        *batch, rows, width = matrices.shape
        size = min(rows, width)
        values = creation.empty((*batch, size), dtype=matrices.dtype)
        left = columns((*batch, rows, rows if full else size), matrices)
        right = columns((*batch, width if full else size, width), matrices)
        infos = []
        if size:
            given = copied(matrices)
            for at, s, u, v in each((given, 2), (values, 1), (left, 2), (right, 2)):
                infos.append(with_workspace(
                    "gesdd", given.dtype, "A" if full else "S", rows, width, at, max(1, rows), s,
                    u, max(1, rows), v, max(1, right.shape[-2]), after=(integers(8 * size),),
                ))  # fmt: skip
        else:
            left.copy_(t.eye(*left.shape[-2:], dtype=left.dtype).expand(left.shape))
            right.copy_(t.eye(*right.shape[-2:], dtype=right.dtype).expand(right.shape))
        checks.succeeded(name, "svd", infos, matrices.dim() > 2)
        ctx.save_for_backward(left, values, right)
        return left, values, right

    @staticmethod
    def backward(ctx: Any, into_left: Any, into_values: Any, into_right: Any) -> Any:
        left, values, right = ctx.saved_tensors
        size = values.shape[-1]
        left, right = left[..., :size], right[..., :size, :]
        into_left, turned = into_left[..., :size], into_right[..., :size, :].mT
        squares = values * values
        apart = squares.unsqueeze(-2) - squares.unsqueeze(-1) + _eye(values)
        of_left = _skew(left.mT.matmul(into_left)) / apart * values.unsqueeze(-2)
        of_right = values.unsqueeze(-1) * (_skew(right.matmul(turned)) / apart)
        inner = of_left + of_right + diag_embed(into_values)
        made = left.matmul(inner).matmul(right)
        if left.shape[-2] > size:
            scaled = into_left / values.unsqueeze(-2)
            made = made + (scaled - left.matmul(left.mT.matmul(scaled))).matmul(right)
        if right.shape[-1] > size:
            scaled = (turned / values.unsqueeze(-2)).mT
            made = made + left.matmul(scaled - scaled.matmul(right.mT).matmul(right))
        return made, None, None


def _eye(values: Any) -> Any:
    return t.eye(values.shape[-1], dtype=values.dtype)


def _skew(inner: Any) -> Any:
    return inner - inner.mT


@in_float32
@takes_out
def svd(A: Any, full_matrices: bool = True, *, driver: Any = None) -> Any:
    """U, S and V^T of A = U diag(S) V^T."""
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
    _check_svd("linalg.svdvals", A, driver)
    return LinalgSvd.apply(A, False, "linalg.svd")[1]


@in_float32
@takes_out
def old_svd(input: Any, some: bool = True, compute_uv: bool = True) -> Any:
    """torch.svd: V, not its transpose."""
    left, values, right = svd(input, not some)
    if not compute_uv:
        rows, width = input.shape[-2:]
        left, right = (input.new_zeros((*input.shape[:-2], n, n)) for n in (rows, width))
    return result_tuple("svd", ("U", "S", "V"), (left, values, right.mT))


@named
class LinalgEigh(Function):
    """Eigenvalues and vectors of symmetric matrices."""

    @staticmethod
    def forward(ctx: Any, matrices: Any, part: str) -> Any:
        vectors = copied(matrices)
        values = creation.empty(matrices.shape[:-1], dtype=matrices.dtype)
        size = matrices.shape[-1]
        infos = [_eigh_one(vectors.dtype, part, size, at, to)
                 for at, to in each((vectors, 2), (values, 1))]  # fmt: skip
        checks.succeeded("linalg.eigh", "eigh", infos, matrices.dim() > 2)
        ctx.save_for_backward(values, vectors)
        return values, vectors

    @staticmethod
    def backward(ctx: Any, into_values: Any, into_vectors: Any) -> Any:
        values, vectors = ctx.saved_tensors
        apart = values.unsqueeze(-2) - values.unsqueeze(-1) + _eye(values)
        inner = 0.5 * _skew(vectors.mT.matmul(into_vectors)) / apart + diag_embed(into_values)
        return vectors.matmul(inner).matmul(vectors.mT), None


def _eigh_one(element: Any, part: str, size: int, at: Any, to: Any) -> int:
    if not size:
        return 0
    n_work = 1 + 6 * size + 2 * size * size
    return call(
        "syevd", element, "V", part, size, at, size, to, work(element, n_work), n_work,
        integers(3 + 5 * size), 3 + 5 * size,
    )  # fmt: skip


@in_float32
@takes_out
def eigh(A: Any, UPLO: str = "L") -> Any:
    """Eigenvalues, the smallest first, and eigenvectors of symmetric matrices."""
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
    """Eigenvalues of symmetric matrices, the smallest first.

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
    if given.requires_grad:
        raise NotImplementedError(
            helped(f"{name}: gradients of complex results are not there yet", fix="A.detach()")
        )
    matrices = copied(given)
    *batch, size, _ = matrices.shape
    real, imaginary = (creation.empty((*batch, size), dtype=given.dtype) for _ in range(2))
    vectors = columns(tuple(matrices.shape), given)
    infos = [
        with_workspace(
            "geev", given.dtype, "N", "V", size, at, max(1, size), re, im, work(given.dtype, 1), 1,
            to, max(1, size),
        )
        for at, re, im, to in each((matrices, 2), (real, 1), (imaginary, 1), (vectors, 2))
    ]  # fmt: skip
    checks.succeeded(name, "eigh", infos, given.dim() > 2)
    return _complex_pairs(real, imaginary, vectors)


def _complex_pairs(real: Any, imaginary: Any, vectors: Any) -> tuple[Any, Any]:
    """LAPACK's real pairs as complex numbers."""
    kind = dtypes.complex64 if real.dtype is dtypes.float32 else dtypes.complex128
    size = real.shape[-1]
    values, columns = [], []
    for re, im, rows in zip(
        real.reshape(-1, size).tolist(), imaginary.reshape(-1, size).tolist(),
        vectors.reshape(-1, size, size).tolist(), strict=True,
    ):  # fmt: skip
        values.append(list(map(complex, re, im)))
        columns.append([_complex_row(row, im) for row in rows])
    made = creation.tensor(values, dtype=kind).reshape(real.shape)
    return made, creation.tensor(columns, dtype=kind).reshape(vectors.shape)


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
    def forward(ctx: Any, matrices: Any, atol: Any, rtol: Any) -> Any:
        left, values, right = LinalgSvd.apply(matrices.detach(), False, "linalg.svd")
        kept = t.gt(values, _tolerance(values, matrices.shape, atol, rtol))
        inverted = t.where(kept, 1.0 / values, 0.0)
        made = (right.mT * inverted.unsqueeze(-2)).matmul(left.mT)
        ctx.save_for_backward(matrices, made)
        return made

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        matrices, made = ctx.saved_tensors
        return pinv_backward(grad, made, matrices), None, None


def pinv_backward(grad: Any, made: Any, matrices: Any) -> Any:
    """Golub and Pereyra (1973)."""
    turned, across = grad.mT, made.mT
    if matrices.shape[-2] <= matrices.shape[-1]:
        inner = turned.matmul(made)
        outer = inner.matmul(across)
        return (
            outer - made.matmul(inner).mT - matrices.matmul(made).matmul(outer)
            + across.matmul(made).matmul(turned - inner.matmul(matrices))
        )  # fmt: skip
    inner = made.matmul(turned)
    outer = across.matmul(inner)
    return (
        outer - inner.matmul(made).mT
        + (turned - matrices.matmul(inner)).matmul(made).matmul(across)
        - outer.matmul(made).matmul(matrices)
    )  # fmt: skip


@takes_out
def pinv(
    A: Any, rcond: Any = None, hermitian: bool = False, *, atol: Any = None,
    rtol: Any = None,
) -> Any:  # fmt: skip
    """The pseudoinverse of matrices."""
    checks.matrices("linalg.pinv", A)
    checks.floating("linalg.pinv", A)
    if 0 in A.shape:
        return t.zeros((*A.shape[:-2], A.shape[-1], A.shape[-2]), dtype=A.dtype)
    rtol = rcond if rtol is None else rtol
    if not hermitian:
        return LinalgPinv.apply(A, atol, rtol)
    values, vectors = eigh(A)
    sizes = values.abs()
    kept = t.gt(sizes, _tolerance(sizes, A.shape, atol, rtol))
    return (vectors * t.where(kept, 1.0 / values, 0.0).unsqueeze(-2)).matmul(vectors.mT)


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
    checks.matrices("torch.linalg.matrix_rank", A)
    checks.floating("linalg.matrix_rank", A)
    if 0 in A.shape[-2:]:
        return t.zeros(A.shape[:-2], dtype=dtypes.int64)
    values = eigvalsh(A.detach()).abs() if hermitian else svdvals(A.detach())
    if tol is not None:
        limit = tol.unsqueeze(-1) if hasattr(tol, "shape") else tol
    else:
        limit = _tolerance(values, A.shape, atol, rtol)
    return t.gt(values, limit).sum(-1)


@named
class LinalgLstsq(Function):
    """X that makes |A X - B| least, and residuals where there are none: no elements."""

    @staticmethod
    def forward(ctx: Any, matrices: Any, right: Any, solution: Any) -> Any:
        ctx.save_for_backward(matrices, right)
        return solution.clone(), solution.new_empty((0,))

    @staticmethod
    def backward(ctx: Any, grad: Any, _: Any) -> Any:
        matrices, right = ctx.saved_tensors
        inverse = pinv(matrices)
        into_inverse = grad.matmul(right.mT)
        return (pinv_backward(into_inverse, inverse, matrices), inverse.mT.matmul(grad), None)


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
    residuals = creation.empty((0,), dtype=input.dtype)
    if input.requires_grad or b.requires_grad:
        solution, residuals = LinalgLstsq.apply(matrices, right, solution)
    *batch, rows, width = input.shape
    if chosen != "gelsy" and rows > width and (rank is None or bool(t.eq(rank, width).all())):
        away = matrices.matmul(solution) - right
        residuals = (away * away).sum(-2)
    solution = solution.squeeze(-1) if is_vector else solution
    rank = _of_batch(rank, batch, dtypes.int64)
    values = _of_batch(values, (*batch, min(rows, width)), input.dtype)
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
    values = creation.empty((*batch, size), dtype=element)
    limit = finfo(element).eps * longest if rcond is None else float(rcond)
    ranks = []
    for at, to, s in each((factor, 2), (made, 2), (values, 1)):
        sizes = (rows, width, columns_of)
        places = (at, max(1, rows), to, max(1, longest))
        rank = integers(1)
        if driver == "gels":
            with_workspace("gels", element, "N", *sizes, *places)
        elif driver == "gelsy":
            with_workspace("gelsy", element, *sizes, *places, integers(width), limit, rank)
        elif driver == "gelss":
            with_workspace("gelss", element, *sizes, *places, s, limit, rank)
        else:
            after = (integers(64 * size + 4096),)
            with_workspace("gelsd", element, *sizes, *places, s, limit, rank, after=after)
        ranks.append(ctypes.c_int32.from_address(rank.value).value)
    solution = made.narrow(-2, 0, width)
    if driver == "gels":
        return solution, None, None
    found_ranks = creation.tensor(ranks, dtype=dtypes.int64).reshape(tuple(batch))
    return solution, found_ranks, None if driver == "gelsy" else values
