"""What Tensor offers about complex numbers: parts, conjugates, adjoints.

Keeps     of real tensors conj, real and resolve_conj are the tensors themselves, +x is of all.
Touches   functions.
Not here  the operators (ops/elementwise/complex_parts.py, ops/views/complex_views.py)."""

from __future__ import annotations

import warnings
from typing import Any, Final

from flambeau.base.dtypes import dtype
from flambeau.gradients.recording.drawn import shows
from flambeau.tensor import functions
from flambeau.tensor.tensor import Tensor


def conj(input: Tensor) -> Tensor:
    """The complex conjugate: of real numbers, themselves."""
    if input._layout.dtype.is_complex:
        return functions.conj(input)
    return input


def conj_physical(input: Tensor, *, out: Any = None) -> Tensor:
    """The complex conjugate, in memory of its own: of real numbers, themselves."""
    if out is not None:
        return functions.conj_physical(input, out=out)
    if input._layout.dtype.is_complex:
        return functions.conj_physical(input)
    return input


def resolve_conj(input: Tensor) -> Tensor:
    """The tensor with its numbers in memory as they are seen: a copy where it shows conjugates."""
    return input.clone() if input.is_conj() else input


def resolve_neg(input: Tensor) -> Tensor:
    """The tensor with its numbers in memory as they are seen: a copy where it shows negated ones,
    as the imaginary parts of conjugates do."""
    return input.clone() if input.is_neg() else input


def positive(input: Tensor) -> Tensor:
    """+input: the tensor itself, in torch too."""
    if input._layout.dtype.category == 0:
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


def real(input: Tensor) -> Tensor:
    """A view of the real parts; a real tensor itself."""
    if input._layout.dtype.is_complex:
        return functions.real(input)
    return input


def set_real(self: Tensor, value: Any) -> None:
    """Write the real parts."""
    real(self).copy_(_as_tensor(value))


def imag(self: Tensor) -> Tensor:
    """A view of the imaginary parts."""
    return functions.imag(self)


def set_imag(self: Tensor, value: Any) -> None:
    """Write the imaginary parts."""
    imag(self).copy_(_as_tensor(value))


def _as_tensor(value: Any) -> Tensor:
    from flambeau.tensor import creation

    return value if isinstance(value, Tensor) else creation.tensor(value)


def adjoint(input: Tensor) -> Tensor:
    """Matrices transposed and conjugated."""
    if input._layout.ndim < 2:
        raise RuntimeError(
            "tensor.adjoint() is only supported on matrices or batches of matrices. Got "
            f"{input._layout.ndim}-D tensor."
        )
    return conj(functions.transpose(input, -2, -1))


def mH(self: Tensor) -> Tensor:
    """Matrices transposed and conjugated; one number conjugated."""
    if self._layout.ndim == 1:
        raise RuntimeError(
            "tensor.mH is only supported on matrices or batches of matrices. Got 1-D tensor."
        )
    return adjoint(self) if self._layout.ndim else conj(self)


_warned_of: Final[set[bool]] = set()


def warn_of_dims(ndim: int) -> None:
    """Say once, as torch does, that x.T is for matrices."""
    if (ndim == 0) in _warned_of:
        return
    _warned_of.add(ndim == 0)
    warnings.warn(
        "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is "
        "deprecated and it will throw an error in a future release. Consider `x.mT` to transpose "
        "batches of matrices or `x.permute(*torch.arange(x.ndim - 1, -1, -1))` to reverse the "
        "dimensions of a tensor."
        if ndim
        else "Tensor.T is deprecated on 0-D tensors. This function is the identity in these cases.",
        stacklevel=3,
    )


def H(self: Tensor) -> Tensor:
    """A matrix transposed and conjugated."""
    ndim = self._layout.ndim
    if ndim not in (0, 2):
        raise RuntimeError(
            f"tensor.H is only supported on matrices (2-D tensors). Got {ndim}-D tensor."
            + (" For batches of matrices, consider using tensor.mH" if ndim > 2 else "")
        )
    return conj(functions.t(self) if ndim else self)


@shows("VdotBackward0")
def vdot(input: Tensor, other: Tensor) -> Tensor:
    """Sum of the products of two vectors, the first one conjugated."""
    return functions.dot(conj(input), other)


def isreal(input: Tensor) -> Tensor:
    """Whether each number has an imaginary part of 0."""
    if input._layout.dtype.is_complex:
        return functions.eq(functions.imag(input), 0)
    from flambeau.base import dtypes
    from flambeau.tensor.public import fills

    return fills.ones_like(input, dtype=dtypes.bool_)


def warn_of_lost_parts(element: dtype) -> None:
    """Of a conversion to real numbers; said once, as in torch."""
    if element.category in (1, 2) and not _SAID:
        _SAID.append(True)
        warnings.warn(
            "Casting complex values to real discards the imaginary part", UserWarning, stacklevel=3
        )


_SAID: Final[list[bool]] = []
