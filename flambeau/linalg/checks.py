"""Checks of matrices, in torch's words.

Keeps     a check raises or does nothing.
Touches   base.errors, lapack's error class.
Not here  what is computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flambeau.base.errors import helped
from flambeau.base.promotion import SCALAR_TYPE_NAMES
from flambeau.linalg.lapack import _LinAlgError


def floating(name: str, given: Any, low: bool = False) -> None:
    """Refuse dtypes that LAPACK has no routine for."""
    kind = SCALAR_TYPE_NAMES[given.dtype.name]
    if given.dtype.is_complex:
        return
    if not given.dtype.is_floating_point:
        raise RuntimeError(
            helped(
                f"{name}: Expected a floating point or complex tensor as input. Got {kind}",
                fix="convert with .to(torch.float32)",
            )
        )
    if given.dtype.itemsize < 4 and not low:
        raise RuntimeError(
            helped(
                f"{name}: Low precision dtypes not supported. Got {kind}",
                fix="convert with .to(torch.float32)",
            )
        )


def matrices(name: str, given: Any, letter: str = "A") -> None:
    """Refuse what has fewer than two dims."""
    if given.dim() < 2:
        raise RuntimeError(f"{name}: The input tensor {letter} must have at least 2 dimensions.")


def square(name: str, given: Any, letter: str = "A") -> None:
    """Refuse matrices that are not square."""
    matrices(name, given, letter)
    if given.shape[-1] != given.shape[-2]:
        raise RuntimeError(
            f"{name}: {letter} must be batches of square matrices, but they are "
            f"{given.shape[-2]} by {given.shape[-1]} matrices"
        )


def same_dtype(name: str, one: Any, other: Any) -> None:
    """Refuse two dtypes."""
    if one.dtype is not other.dtype:
        kinds = [SCALAR_TYPE_NAMES[each.dtype.name] for each in (one, other)]
        raise RuntimeError(
            f"{name}: Expected A and B to have the same dtype, but found A of type {kinds[0]} and "
            f"B of type {kinds[1]} instead"
        )


def solvable(name: str, A: Any, B: Any, left: bool) -> None:
    """Refuse right-hand sides whose sizes are not the matrices'."""
    if A.shape[-1] != B.shape[-2 if left else -1]:
        equation = "AX = B" if left else "XA = B"
        sizes = f"({A.shape[-2]}x{A.shape[-1]} and {B.shape[-2]}x{B.shape[-1]})"
        raise RuntimeError(
            f"{name}: Incompatible shapes of A and B for the equation {equation} {sizes}"
        )


def finite(name: str, matrices: Any) -> None:
    """Refuse matrices with infinities or NaNs, in which LAPACK would search for singular values."""
    is_finite = matrices.isfinite().flatten(-2).all(-1)
    if not bool(is_finite.all()):
        number = is_finite.reshape(-1).tolist().index(False)
        where = f"(Batch element {number}): " if matrices.dim() > 2 else ""
        raise _LinAlgError(
            f"{name}: {where}The algorithm failed to converge because the input matrix contained "
            "non-finite values."
        )


def free_of_angle(name: str, kind: str, turned: Any) -> None:
    """Refuse gradients of functions that change when a complex vector of each pair is multiplied
    by a number of length 1, which decompositions leave open."""
    if not bool(turned.imag.abs().le(1e-2).all()):
        raise RuntimeError(
            helped(
                f"{name}: The {kind} in the complex case are specified up to multiplication by "
                "e^{i phi}. The specified loss function depends on this quantity, so it is "
                "ill-defined.",
                fix="a function of abs() of the vectors, or of products that leave it out",
            )
        )


_REASONS = {
    "inv": "The diagonal element {info} is zero, the inversion could not be completed because the "
    "input matrix is singular.",
    "cholesky": "The factorization could not be completed because the input is not "
    "positive-definite (the leading minor of order {info} is not positive-definite).",
    "solve": "The solver failed because the input matrix is singular.",
    "svd": "The algorithm failed to converge because the input matrix is ill-conditioned or has "
    "too many repeated singular values (error code: {info}).",
    "eigh": "The algorithm failed to converge because the input matrix is ill-conditioned or has "
    "too many repeated eigenvalues (error code: {info}).",
    "lu_factor": "U[{info},{info}] is zero and using it on lu_solve would result in a division by "
    "zero. If you still want to perform the factorization, consider calling linalg.lu(A, pivot) "
    "or linalg.lu_factor_ex(A, pivot)",
}


def succeeded(
    name: str, reason: str, infos: Sequence[int], is_batch: bool,
    error: type[RuntimeError] = _LinAlgError,
) -> None:  # fmt: skip
    """Raise torch's error for the first entry that LAPACK could not do."""
    for number, info in enumerate(infos):
        if info:
            where = f"(Batch element {number}): " if is_batch else ""
            raise error(f"{name}: {where}{_REASONS[reason].format(info=info)}")
