"""Householder reflections: QR as LAPACK keeps it, and products of reflections.

Keeps     a product is recorded as one rank-one update a reflection, so that its gradients, of any
          order, are those of the operators.
Touches   lapack, checks.
Not here  qr, whose factors are matrices (decompositions.py)."""

from __future__ import annotations

from typing import Any

from flambeau.autograd.function import Function
from flambeau.linalg import checks
from flambeau.linalg.factors import named
from flambeau.linalg.lapack import copied, each, with_workspace
from flambeau.linalg.products import regardless_of
from flambeau.ops.define import not_implemented, type_name
from flambeau.tensor import creation
from flambeau.tensor import functions as t
from flambeau.tensor.public.ranges import arange
from flambeau.tensor.tensor import result_tuple


@named
class Geqrf(Function):
    """LAPACK's reflectors, whose derivative nobody gives."""

    @staticmethod
    def forward(ctx: Any, matrices: Any) -> Any:
        factor = copied(matrices)
        *batch, rows, width = factor.shape
        tau = creation.empty((*batch, min(rows, width)), dtype=factor.dtype)
        for at, scale in each((factor, 2), (tau, 1)):
            with_workspace("geqrf", factor.dtype, rows, width, at, max(1, rows), scale)
        return factor, tau

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise NotImplementedError("the derivative for 'geqrf' is not implemented.")


def geqrf(input: Any, *, out: Any = None) -> Any:
    """(reflectors below the diagonal with R on and above it, their factors tau)."""
    checks.floating("geqrf", input)
    if input.dim() < 2:
        raise RuntimeError("torch.geqrf: input must have at least 2 dimensions.")
    if input.requires_grad and input.dtype.is_complex:
        raise RuntimeError(
            "geqrf does not support automatic differentiation for outputs with complex dtype."
        )
    factor, tau = Geqrf.apply(input)
    if out is not None:
        out[0].resize_(factor.shape).copy_(factor)
        out[1].resize_(tau.shape).copy_(tau)
        return out
    return result_tuple("geqrf", ("a", "tau"), (factor, tau))


def _reflector(A: Any, number: int) -> Any:
    """A column as a reflection's direction: zeros, a one, then what is below the diagonal."""
    places = arange(A.shape[-2])
    below = t.where(places > number, A[..., number], 0)
    return below + (places == number).to(A.dtype)


def _checked(name: str, A: Any, tau: Any) -> None:
    if A.dim() < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if A.shape[-2] < A.shape[-1]:
        raise RuntimeError(
            f"{name}: input.shape[-2] must be greater than or equal to input.shape[-1]"
        )
    if A.shape[-1] < tau.shape[-1]:
        raise RuntimeError(
            f"{name}: input.shape[-1] must be greater than or equal to tau.shape[-1]"
        )
    if A.dim() - tau.dim() != 1:
        raise RuntimeError(
            f"{name}: Expected tau to have one dimension less than input, but got tau.ndim equal "
            f"to {tau.dim()} and input.ndim is equal to {A.dim()}"
        )
    if A.dtype != tau.dtype:
        raise RuntimeError(f"{name}: tau dtype {tau.dtype} does not match input dtype {A.dtype}")


def householder_product(A: Any, tau: Any, *, out: Any = None) -> Any:
    """The first columns of the product of the reflections I - tau v v^H, v below A's diagonal."""
    _checked("torch.linalg.householder_product", A, tau)
    rows, columns = A.shape[-2:]
    unit = (arange(rows)[:, None] == arange(columns)).to(A.dtype)
    made = unit.expand(A.shape)
    for number in reversed(range(tau.shape[-1])):
        direction = _reflector(A, number)[..., None]
        share = t.matmul(direction.mH, made) * tau[..., number, None, None]
        made = made - direction * share
    made = made if tau.shape[-1] else regardless_of(A, made)
    return made if out is None else out.resize_(made.shape).copy_(made)


def orgqr(input: Any, tau: Any, *, out: Any = None) -> Any:
    """Alias of linalg.householder_product."""
    return householder_product(input, tau, out=out)


def _check_ormqr(input: Any, tau: Any, other: Any, side: int) -> None:
    for name, given in (("input", input), ("other", other)):
        if given.dim() < 2:
            raise RuntimeError(f"torch.ormqr: {name} must have at least 2 dimensions.")
    n_reflections = tau.shape[-1] if tau.dim() else 1
    if n_reflections != min(other.shape[side], input.shape[-1]):
        raise RuntimeError(
            f"torch.ormqr: tau.shape[-1] must be equal to min(other.shape[{side}], input.shape[-1])"
        )
    if input.shape[-2] != other.shape[side]:
        raise RuntimeError(f"torch.ormqr: other.shape[{side}] must be equal to input.shape[-2]")
    if input.dim() - tau.dim() != 1:
        raise RuntimeError(
            "torch.ormqr: Expected tau to have one dimension less than input, but got tau.ndim "
            f"equal to {tau.dim()} and input.ndim is equal to {input.dim()}"
        )
    if other.dim() != input.dim():
        raise RuntimeError(
            "torch.ormqr: Expected other to have the same number of dimensions as input, but got "
            f"other.ndim equal to {other.dim()} and input.ndim is equal to {input.dim()}"
        )
    for name, batch in (("tau", tau.shape[:-1]), ("other", other.shape[:-2])):
        if tuple(batch) != tuple(input.shape[:-2]):
            raise RuntimeError(
                f"torch.ormqr: Expected batch dimensions of {name} to be equal to "
                f"input.shape[:-2], but got {list(batch)}"
            )
    for name, given in (("tau", tau), ("other", other)):
        if given.dtype is not input.dtype:
            raise RuntimeError(
                f"torch.ormqr: Expected input and {name} to have the same dtype, but input has "
                f"dtype{type_name(input._layout)} and {name} has dtype {type_name(given._layout)}"
            )
    if input.dtype.category < 2:
        raise not_implemented("ormqr_cpu", input.dtype)


def ormqr(
    input: Any, tau: Any, other: Any, left: bool = True, transpose: bool = False, *, out: Any = None
) -> Any:
    """other times (from the left or right) the whole product of reflections, or its adjoint."""
    _check_ormqr(input, tau, other, -2 if left else -1)
    made = other
    order = list(range(tau.shape[-1]))
    for number in order if left == transpose else reversed(order):
        direction = _reflector(input, number)[..., None]
        scale = tau[..., number, None, None]
        scale = scale.conj() if transpose else scale
        if left:
            made = made - direction * (t.matmul(direction.mH, made) * scale)
        else:
            made = made - t.matmul(made, direction) * scale * direction.mH
    return made if out is None else out.resize_(made.shape).copy_(made)
