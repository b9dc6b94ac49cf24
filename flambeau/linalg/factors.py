"""Inverses, determinants and solutions of square matrices, by elimination.

Keeps     a factor is computed when it is asked for, since its errors depend on values; gradients
          are recorded operators, so second order comes free.
Touches   lapack, checks, autograd.Function.
Not here  factors that are wanted themselves (decompositions.py, spectra.py)."""

from __future__ import annotations

from typing import Any

from flambeau.autograd.function import Function
from flambeau.base import dtypes
from flambeau.base.shapes import broadcast_shapes
from flambeau.gradients.autocast import in_float32
from flambeau.linalg import checks
from flambeau.linalg.lapack import call, copied, each
from flambeau.tensor import creation
from flambeau.tensor import functions as t
from flambeau.tensor.inplace import takes_out
from flambeau.tensor.tensor import result_tuple


def named(cls: type[Function]) -> type[Function]:
    """The class, its nodes under torch's name."""
    cls._node_class.__name__ = cls._node_class.__qualname__ = f"{cls.__name__}Backward0"
    return cls


def info_of(infos: list[int], like: Any) -> Any:
    """LAPACK's answers as torch returns them."""
    return creation.tensor(infos, dtype=dtypes.int32).reshape(like.shape[:-2])


def eliminated(matrices: Any) -> tuple[Any, Any, list[int]]:
    """(L and U in one, pivots from 1 on, where U has a zero) of A = P L U."""
    factor = copied(matrices)
    *batch, rows, width = factor.shape
    pivots = creation.empty((*batch, min(rows, width)), dtype=dtypes.int32)
    infos = [
        call("getrf", factor.dtype, rows, width, at, max(1, rows), pivot)
        for at, pivot in each((factor, 2), (pivots, 1))
    ]
    return factor, pivots, infos


def solved(matrices: Any, right: Any) -> tuple[Any, list[int]]:
    """X of A X = B, and where U has a zero: what stands there is then not finite."""
    factor, pivots, infos = eliminated(matrices)
    made = copied(right)
    size, width = made.shape[-2:]
    for at, pivot, to in each((factor, 2), (pivots, 1), (made, 2)):
        call("getrs", made.dtype, "N", size, width, at, max(1, size), pivot, to, max(1, size))
    return made, infos


@named
class LinalgInvEx(Function):
    """The inverse."""

    @staticmethod
    def forward(ctx: Any, matrices: Any, infos: list[int]) -> Any:
        eye = t.eye(matrices.shape[-1], dtype=matrices.dtype).expand(matrices.shape)
        made, found = solved(matrices, eye)
        infos += found
        ctx.save_for_backward(made)
        return made

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (inverse,) = ctx.saved_tensors
        turned = inverse.mH
        return -turned.matmul(grad).matmul(turned), None


@in_float32
@takes_out
def inv_ex(A: Any, *, check_errors: bool = False) -> Any:
    """The inverse and, for each matrix, 0 or the number of a zero pivot."""
    made, infos = _inverted(A, check_errors)
    return result_tuple("linalg_inv_ex", ("inverse", "info"), (made, info_of(infos, A)))


def _inverted(matrices: Any, check_errors: bool) -> tuple[Any, list[int]]:
    checks.square("linalg.inv", matrices)
    checks.floating("linalg.inv", matrices)
    infos: list[int] = []
    made = LinalgInvEx.apply(matrices, infos)
    if check_errors:
        checks.succeeded("linalg.inv", "inv", infos, matrices.dim() > 2)
    return made, infos


@in_float32
@takes_out
def inv(A: Any) -> Any:
    """The inverse of square matrices."""
    return _inverted(A, True)[0]


@in_float32
@takes_out
def inverse(input: Any) -> Any:
    """The inverse of square matrices."""
    return inv(input)


def _determined(matrices: Any) -> tuple[Any, Any]:
    """(L and U, sign of the permutation)."""
    factor, pivots, _ = eliminated(matrices)
    own = creation.tensor(list(range(1, matrices.shape[-1] + 1)))
    swaps = t.ne(pivots, own).sum(-1)
    return factor, (1 - 2 * (swaps % 2)).to(matrices.dtype)


@named
class LinalgDet(Function):
    """The determinant."""

    @staticmethod
    def forward(ctx: Any, matrices: Any) -> Any:
        factor, sign = _determined(matrices)
        made = sign * factor.diagonal(0, -2, -1).prod(-1)
        ctx.save_for_backward(matrices, made)
        return made

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        matrices, made = ctx.saved_tensors
        if not bool(t.eq(made, 0).any()):
            return (grad * made.conj())[..., None, None] * inv(matrices).mH
        return grad[..., None, None] * _cofactors(matrices)


def _cofactors(matrices: Any) -> Any:
    """The gradient of the determinant, singular matrices included."""
    from flambeau.linalg.spectra import svd

    left, values, right = svd(matrices)
    sign = (det(left) * det(right)).detach()
    size = values.shape[-1]
    others = [t.cat([values[..., :n], values[..., n + 1 :]], -1).prod(-1) for n in range(size)]
    scaled = left * t.stack(others, -1).unsqueeze(-2)
    return sign.conj()[..., None, None] * scaled.matmul(right)


@takes_out
def det(A: Any) -> Any:
    """Determinants of square matrices.

    >>> import flambeau as torch
    >>> torch.linalg.det(torch.tensor([[1.0, 2.0], [3.0, 4.0]])).round()
    tensor(-2.)
    """
    checks.square("linalg.det", A)
    checks.floating("linalg.det", A)
    return LinalgDet.apply(A)


@named
class LinalgSlogdet(Function):
    """Sign and logarithm of the determinant."""

    @staticmethod
    def forward(ctx: Any, matrices: Any) -> Any:
        factor, sign = _determined(matrices)
        diagonal = factor.diagonal(0, -2, -1)
        sign = sign * diagonal.sgn().prod(-1)
        ctx.save_for_backward(matrices, sign)
        return sign, diagonal.abs().log().sum(-1)

    @staticmethod
    def backward(ctx: Any, into_sign: Any, grad: Any) -> Any:
        matrices, sign = ctx.saved_tensors
        if sign.dtype.is_complex:  # log det is the logarithm and i times the angle of the sign
            grad = t.complex(grad, -(into_sign.conj() * sign).imag)
        eye = t.eye(matrices.shape[-1], dtype=matrices.dtype)
        return solve(matrices.mH, grad[..., None, None] * eye)


@takes_out
def slogdet(A: Any) -> Any:
    """Sign and logarithm of the absolute value of determinants."""
    checks.square("linalg.slogdet", A)
    checks.floating("linalg.slogdet", A)
    return result_tuple("linalg_slogdet", ("sign", "logabsdet"), LinalgSlogdet.apply(A))


def logdet(input: Any) -> Any:
    """Logarithm of determinants; NaN where they are negative."""
    checks.square("logdet", input)
    checks.floating("logdet", input)
    sign, logarithm = slogdet(input)
    if sign.dtype.is_complex:
        return sign.log() + logarithm
    return t.where(t.lt(sign, 0), float("nan"), logarithm)


@in_float32
@takes_out
def solve_ex(A: Any, B: Any, *, left: bool = True, check_errors: bool = False) -> Any:
    """The solution of A X = B and, for each matrix, 0 or the number of a zero pivot."""
    name = "linalg.solve"
    checks.square(name, A)
    checks.floating(name, A)
    checks.same_dtype(name, A, B)
    is_vector = B.dim() == 1 or (A.dim() - 1 == B.dim() and B.shape == A.shape[:-1])
    if is_vector and not left:
        raise RuntimeError(
            "linalg.solve: Vector broadcasting of the left hand side is not supported for "
            "left=False."
        )
    right = B.unsqueeze(-1) if is_vector else B
    checks.matrices(name, right, "B")
    checks.solvable(name, A, right, left)
    matrices, right = of_one_batch(A, right)
    infos: list[int] = []
    if left:
        made = LinalgSolveEx.apply(matrices, right, infos)
    else:
        made = LinalgSolveEx.apply(matrices.mT, right.mT, infos).mT
    if check_errors:
        checks.succeeded("torch.linalg.solve", "solve", infos, A.dim() > 2)
    made = made.squeeze(-1) if is_vector else made
    return result_tuple("linalg_solve_ex", ("result", "info"), (made, info_of(infos, matrices)))


def of_one_batch(*matrices: Any) -> tuple[Any, ...]:
    """Matrices repeated over the batch that theirs broadcast to."""
    batch = broadcast_shapes(*(tuple(each.shape[:-2]) for each in matrices))
    return tuple(each.expand(*batch, *each.shape[-2:]) for each in matrices)


@in_float32
@takes_out
def solve(A: Any, B: Any, *, left: bool = True) -> Any:
    """X of A X = B; left=False: of X A = B.

    >>> import flambeau as torch
    >>> torch.linalg.solve(torch.tensor([[2.0, 0.0], [0.0, 4.0]]), torch.tensor([2.0, 2.0]))
    tensor([1.0000, 0.5000])
    """
    return solve_ex(A, B, left=left, check_errors=True)[0]


@named
class LinalgSolveEx(Function):
    """X of A X = B."""

    @staticmethod
    def forward(ctx: Any, matrices: Any, right: Any, infos: list[int]) -> Any:
        made, found = solved(matrices, right)
        infos += found
        ctx.save_for_backward(matrices, made)
        return made

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        matrices, made = ctx.saved_tensors
        into_right = solve(matrices.mH, grad)
        return -into_right.matmul(made.mH), into_right, None


def solve_triangular(
    A: Any, B: Any, *, upper: bool, left: bool = True, unitriangular: bool = False,
    out: Any = None,
) -> Any:  # fmt: skip
    """X of A X = B for triangular matrices; left=False: of X A = B."""
    name = "linalg.solve_triangular"
    checks.square(name, A)
    checks.floating(name, A)
    checks.matrices(name, B, "B")
    checks.same_dtype(name, A, B)
    checks.solvable(name, A, B, left)
    made = LinalgSolveTriangular.apply(*of_one_batch(A, B), upper, left, unitriangular)
    return made if out is None else out.copy_(made)


@named
class LinalgSolveTriangular(Function):
    """X of A X = B, A triangular."""

    @staticmethod
    def forward(
        ctx: Any, matrices: Any, right: Any, upper: bool, left: bool, unitriangular: bool
    ) -> Any:
        factor, made = copied(matrices), copied(right)
        rows, width = made.shape[-2:]
        size = max(1, factor.shape[-1])
        one = complex(1.0) if made.dtype.is_complex else 1.0
        for at, to in each((factor, 2), (made, 2)):
            call("trsm", made.dtype, "L" if left else "R", "U" if upper else "L", "N",
                 "U" if unitriangular else "N", rows, width, one, at, size, to,
                 max(1, rows))  # fmt: skip
        ctx.save_for_backward(matrices, made)
        ctx.choices = upper, left, unitriangular
        return made

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        matrices, made = ctx.saved_tensors
        upper, left, unitriangular = ctx.choices
        into_right = solve_triangular(
            matrices.mH, grad, upper=not upper, left=left, unitriangular=unitriangular
        )
        turned = made.mH
        whole = into_right.matmul(turned) if left else turned.matmul(into_right)
        kept = int(unitriangular)
        part = t.triu(whole, kept) if upper else t.tril(whole, -kept)
        return -part, into_right, None, None, None


@in_float32
@takes_out
def triangular_solve(
    b: Any, A: Any, upper: bool = True, transpose: bool = False,
    unitriangular: bool = False,
) -> Any:  # fmt: skip
    """torch.triangular_solve: the old order of arguments."""
    matrices = A.mT if transpose else A
    is_upper = upper != transpose
    made = solve_triangular(matrices, b, upper=is_upper, unitriangular=unitriangular)
    return result_tuple(
        "triangular_solve", ("solution", "cloned_coefficient"), (made, t.contiguous_copy(A.mT).mT)
    )
