"""exp, log and their kin of complex numbers, from the real words.

Keeps     complex64 is computed in float64 and rounded once, so that neither cancellation nor
          overflow on the way shows in it.
Touches   base.dtypes, complex_words.
Not here  the four operations (complex_words.py), real functions (mathlib)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from flambeau.base import dtypes
from flambeau.codegen.complex_words import ComplexVocabulary, Pair

_INFINITY: Final = float("inf")


def expand(k: ComplexVocabulary, word: str, operands: tuple[Any, ...]) -> Pair:
    """The function `word` of complex operands."""
    function = _FUNCTIONS.get(word)
    if function is None:
        raise TypeError(f"the word {word!r} has no meaning for complex numbers")
    of = operands[0].dtype
    wide = tuple([k.convert(each, dtypes.complex128) for each in operands])
    return k.convert(function(k, *wide), of)


def square_root(k: ComplexVocabulary, operand: Pair) -> Pair:
    """The root with a real part that is not negative."""
    of = operand.dtype
    result = _root(k, k.convert(operand, dtypes.complex128))
    return k.convert(result, of)


def _root(k: ComplexVocabulary, z: Pair) -> Pair:
    length = k.abs(z)
    half = k.add(k.mul(k.abs(z.real), 0.5), k.mul(length, 0.5))
    root = k.sqrt(half)
    other = k.select(k.eq(root, 0), 0.0, k.div(k.abs(z.imag), k.mul(root, 2.0)))
    is_right = k.ge(z.real, 0)
    real = k.select(is_right, root, other)
    imag = k.copysign(k.select(is_right, other, root), z.imag)
    # C99: an infinite imaginary part decides, whatever the real part.
    infinite = k.eq(k.abs(z.imag), _INFINITY)
    real = k.select(infinite, _INFINITY, real)
    return Pair(real, k.select(infinite, z.imag, imag), z.dtype)


def _scaled_angle(k: ComplexVocabulary, scale: Any, angle: Any, of: Any) -> Pair:
    """scale * e^(i angle); a scale of 0 gives 0 at every angle, an angle of 0 stays 0."""
    cosine, sine = k.cos(angle), k.sin(angle)
    unmoved = k.eq(angle, 0)
    none = k.and_(k.eq(scale, 0), k.not_(unmoved))
    real = k.select(unmoved, scale, k.select(none, 0.0, k.mul(scale, cosine)))
    return Pair(real, k.select(unmoved, angle, k.select(none, 0.0, k.mul(scale, sine))), of)


def _exp(k: ComplexVocabulary, z: Pair) -> Pair:
    return _scaled_angle(k, k.exp(z.real), z.imag, z.dtype)


def _expm1(k: ComplexVocabulary, z: Pair) -> Pair:
    half = k.sin(k.mul(z.imag, 0.5))
    lost = k.mul(2.0, k.mul(half, half))
    real = k.sub(k.mul(k.expm1(z.real), k.cos(z.imag)), lost)
    return Pair(real, k.mul(k.exp(z.real), k.sin(z.imag)), z.dtype)


def _exp2(k: ComplexVocabulary, z: Pair) -> Pair:
    return _exp(k, Pair(k.mul(z.real, math.log(2)), k.mul(z.imag, math.log(2)), z.dtype))


def _log(k: ComplexVocabulary, z: Pair) -> Pair:
    real, imag = k.abs(z.real), k.abs(z.imag)
    high, low = k.max(real, imag), k.min(real, imag)
    length = k.abs(z)
    # Near the unit circle the logarithm of a rounded length has few digits left.
    excess = k.fma(low, low, k.mul(k.sub(high, 1.0), k.add(high, 1.0)))
    is_near = k.and_(k.gt(length, 0.5), k.lt(length, 2.0))
    near = k.mul(0.5, k.log1p(k.select(is_near, excess, 0.0)))
    return Pair(k.select(is_near, near, k.log(length)), k.atan2(z.imag, z.real), z.dtype)


def _divided_log(base: float) -> Callable[..., Pair]:
    def function(k: ComplexVocabulary, z: Pair) -> Pair:
        found = _log(k, z)
        factor = 1 / math.log(base)
        return Pair(k.mul(found.real, factor), k.mul(found.imag, factor), z.dtype)

    return function


def _log1p(k: ComplexVocabulary, z: Pair) -> Pair:
    # |1 + z|^2 - 1 = x (2 + x) + y^2
    excess = k.fma(z.imag, z.imag, k.mul(z.real, k.add(z.real, 2.0)))
    moved = k.add(z.real, 1.0)
    far = k.log(k.abs(Pair(moved, z.imag, z.dtype)))
    is_near = k.lt(k.abs(excess), 0.5)
    near = k.mul(0.5, k.log1p(k.select(is_near, excess, 0.0)))
    return Pair(k.select(is_near, near, far), k.atan2(z.imag, moved), z.dtype)


def _pow(k: ComplexVocabulary, base: Pair, exponent: Pair) -> Pair:
    logarithm = _log(k, base)
    scaled = k.mul(exponent, logarithm)
    power = _exp(k, scaled)
    # 0 to a power: 1 for 0, 0 where the real part is positive, infinite otherwise.
    is_zero = k.eq(base, 0)
    is_one = k.eq(exponent, 0)
    at_zero = k.select(k.gt(exponent.real, 0), k.constant(0, base.dtype),
                       k.constant(complex(_INFINITY, math.nan), base.dtype))  # fmt: skip
    power = k.select(is_zero, at_zero, power)
    return k.select(is_one, k.constant(1, base.dtype), power)


def _sin(k: ComplexVocabulary, z: Pair) -> Pair:
    real = k.mul(k.sin(z.real), k.cosh(z.imag))
    return Pair(real, k.mul(k.cos(z.real), k.sinh(z.imag)), z.dtype)


def _cos(k: ComplexVocabulary, z: Pair) -> Pair:
    real = k.mul(k.cos(z.real), k.cosh(z.imag))
    return Pair(real, k.neg(k.mul(k.sin(z.real), k.sinh(z.imag))), z.dtype)


def _sinh(k: ComplexVocabulary, z: Pair) -> Pair:
    real = k.mul(k.sinh(z.real), k.cos(z.imag))
    return Pair(real, k.mul(k.cosh(z.real), k.sin(z.imag)), z.dtype)


def _cosh(k: ComplexVocabulary, z: Pair) -> Pair:
    real = k.mul(k.cosh(z.real), k.cos(z.imag))
    return Pair(real, k.mul(k.sinh(z.real), k.sin(z.imag)), z.dtype)


def _tanh(k: ComplexVocabulary, z: Pair) -> Pair:
    """(sinh x cosh x + i sin y cos y) / (cos^2 y + sinh^2 x), by its limit where that overflows."""
    sine, cosine = k.sin(z.imag), k.cos(z.imag)
    bounded = k.max(k.min(z.real, 100.0), -100.0)
    sinh, cosh = k.sinh(bounded), k.cosh(bounded)
    divisor = k.fma(cosine, cosine, k.mul(sinh, sinh))
    real = k.div(k.mul(sinh, cosh), divisor)
    is_far = k.gt(k.abs(z.real), 100.0)
    real = k.select(is_far, k.copysign(k.constant(1, real.dtype), z.real), real)
    return Pair(real, k.div(k.mul(sine, cosine), divisor), z.dtype)


def _turned(k: ComplexVocabulary, z: Pair) -> Pair:
    """i z."""
    return Pair(k.neg(z.imag), z.real, z.dtype)


def _turned_back(k: ComplexVocabulary, z: Pair) -> Pair:
    """-i z."""
    return Pair(z.imag, k.neg(z.real), z.dtype)


def _tan(k: ComplexVocabulary, z: Pair) -> Pair:
    return _turned_back(k, _tanh(k, _turned(k, z)))


def _around_one(k: ComplexVocabulary, z: Pair) -> tuple[Pair, Pair]:
    """Square roots of 1 - z and 1 + z."""
    below = _root(k, Pair(k.sub(1.0, z.real), k.neg(z.imag), z.dtype))
    return below, _root(k, Pair(k.add(z.real, 1.0), z.imag, z.dtype))


# Inverse functions: W. Kahan, "Branch cuts for complex elementary functions" (1987).


def _asin(k: ComplexVocabulary, z: Pair) -> Pair:
    below, above = _around_one(k, z)
    real = k.atan2(z.real, k.real(k.mul(below, above)))
    return Pair(real, k.asinh(k.imag(k.mul(k.conj(below), above))), z.dtype)


def _acos(k: ComplexVocabulary, z: Pair) -> Pair:
    below, above = _around_one(k, z)
    real = k.mul(2.0, k.atan2(below.real, above.real))
    return Pair(real, k.asinh(k.imag(k.mul(k.conj(above), below))), z.dtype)


def _asinh(k: ComplexVocabulary, z: Pair) -> Pair:
    return _turned_back(k, _asin(k, _turned(k, z)))


def _acosh(k: ComplexVocabulary, z: Pair) -> Pair:
    below = _root(k, Pair(k.sub(z.real, 1.0), z.imag, z.dtype))
    above = _root(k, Pair(k.add(z.real, 1.0), z.imag, z.dtype))
    real = k.asinh(k.real(k.mul(k.conj(below), above)))
    return Pair(real, k.mul(2.0, k.atan2(below.imag, above.real)), z.dtype)


def _atanh(k: ComplexVocabulary, z: Pair) -> Pair:
    short, size = k.sub(1.0, z.real), k.abs(z.real)
    square, near = k.mul(z.imag, z.imag), k.sub(1.0, size)
    ratio = k.div(k.mul(4.0, size), k.fma(near, near, square))
    angle = k.atan2(k.mul(2.0, z.imag), k.sub(k.mul(short, k.add(z.real, 1.0)), square))
    real = k.copysign(k.mul(0.25, k.log1p(ratio)), z.real)
    return Pair(real, k.mul(0.5, angle), z.dtype)


def _atan(k: ComplexVocabulary, z: Pair) -> Pair:
    return _turned_back(k, _atanh(k, _turned(k, z)))


def _sigmoid(k: ComplexVocabulary, z: Pair) -> Pair:
    one = k.constant(1, z.dtype)
    return k.div(one, k.add(one, _exp(k, k.neg(z))))


_FUNCTIONS: Final[dict[str, Callable[..., Pair]]] = {
    "exp": _exp, "exp2": _exp2, "expm1": _expm1, "log": _log, "log1p": _log1p,
    "log2": _divided_log(2), "log10": _divided_log(10), "pow": _pow,
    "sin": _sin, "cos": _cos, "tan": _tan, "sinh": _sinh, "cosh": _cosh, "tanh": _tanh,
    "asin": _asin, "acos": _acos, "atan": _atan, "asinh": _asinh, "acosh": _acosh,
    "atanh": _atanh, "sigmoid": _sigmoid,
}  # fmt: skip
