"""frexp: numbers as a mantissa and a power of two.

Keeps     exact, by the bits; zeros, infinities and NaNs are their own mantissas, of exponent 0.
Touches   functions.
Not here  ldexp, its inverse (ops.elementwise.powers)."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from flambeau.base import dtypes
from flambeau.gradients.recording.drawn import shows
from flambeau.tensor import functions as t
from flambeau.tensor.inplace import stored
from flambeau.tensor.tensor import Tensor, result_tuple


class _Format(NamedTuple):
    """Integers of a float's width, its stored bits of mantissa and of exponent."""

    integer: Any
    mantissa_bits: int
    exponent_bits: int


_FORMATS: Final = {
    dtypes.float64: _Format(dtypes.int64, 52, 11),
    dtypes.float32: _Format(dtypes.int32, 23, 8),
    dtypes.float16: _Format(dtypes.int16, 10, 5),
    dtypes.bfloat16: _Format(dtypes.int16, 7, 8),
}


@shows("FrexpBackward0")
def frexp(input: Tensor, *, out: Any = None) -> Any:
    """(mantissa, exponent): input = mantissa * 2^exponent, sizes of mantissas in [1/2, 1).

    >>> frexp(t.ones(1) * 5)
    torch.return_types.frexp(
    mantissa=tensor([0.6250]),
    exponent=tensor([3], dtype=torch.int32))
    """
    form = _FORMATS.get(input._layout.dtype)
    if form is None:
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    value = input.detach()
    shift = form.mantissa_bits + 1
    bias = (1 << form.exponent_bits - 1) - 1
    # Numbers below the least normal one are seen where they are normal.
    biased = _field(value, form)
    below = _field(value * _power(t.full_like(biased, shift), form, bias), form) - shift
    exponent = t.where(biased == 0, below, biased) - (bias - 1)
    is_own = (value == 0) | (biased == (1 << form.exponent_bits) - 1)
    exponent = t.where(is_own, 0, exponent)
    # In two steps: the power as a whole may be beyond the dtype's range.
    half = exponent >> 1
    mantissa = input * _power(-half, form, bias) * _power(half - exponent, form, bias)
    found = (mantissa, exponent.to(dtypes.int32))
    if out is not None:
        found = tuple(stored(each, place) for each, place in zip(found, out, strict=True))
    return result_tuple("frexp", ("mantissa", "exponent"), found)


def _field(value: Any, form: _Format) -> Any:
    """The exponent as it is stored."""
    bits = value.view(form.integer) >> form.mantissa_bits
    return bits & ((1 << form.exponent_bits) - 1)


def _power(exponent: Any, form: _Format, bias: int) -> Any:
    """2 to powers whose results are normal numbers, exactly."""
    kind = next(each for each, other in _FORMATS.items() if other is form)
    return ((exponent + bias) << form.mantissa_bits).view(kind)
