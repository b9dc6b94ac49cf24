"""fmod from the plain words: exact, as C's, for any two numbers.

Keeps     every step is exact, so the result is; no loop and no branch.
Touches   parts.
Not here  Python's % (an operator's formula on top of fmod), integer remainders (plain words).
Source    float32: long division in float64, 48 bits a step. float64: 2^d mod m by squaring, with
          products and remainders as exact pairs (Dekker, Numer. Math. 18 (1971)).
"""

from __future__ import annotations

from typing import Any, Final

from flambeau.base import dtypes
from flambeau.codegen.mathlib import parts
from flambeau.codegen.mathlib.parts import INF, NAN

_FRACTION: Final = 0xFFFFFFFFFFFFF
_TWO_52_BITS: Final = 0x4330000000000000  # bits of 2^52, whose last place is 1


def _special(k: Any, x: Any, y: Any, result: Any) -> Any:
    """x where y is inf and x is not, NaN where x is inf or y is 0."""
    result = k.select(k.and_(k.lt(k.abs(x), INF), k.eq(k.abs(y), INF)), x, result)
    return k.copysign(result, x)


def fmod_float32(k: Any, x: Any, y: Any) -> Any:
    """The quotient is below 2^277: six digits in base 2^48, each at most one too large."""
    rest, divisor = k.abs(parts.widened(k, x)), k.abs(parts.widened(k, y))
    for step in (5, 4, 3, 2, 1, 0):
        scaled = k.mul(divisor, 2.0 ** (48 * step)) if step else divisor
        digit = k.trunc(k.div(rest, scaled))
        rest = k.fma(k.neg(digit), scaled, rest)
        rest = k.select(k.lt(rest, 0.0), k.add(rest, scaled), rest)
    return _special(k, x, y, parts.narrowed(k, rest))


def _mantissa_and_exponent(k: Any, x: Any) -> tuple[Any, Any]:
    """x = mantissa 2^(exponent + constant): a 53-bit integer and an integer, both float64."""
    tiny = k.lt(x, 2.0**-1022)
    bits = k.bitcast(k.select(tiny, k.mul(x, 2.0**54), x), dtypes.int64)
    mantissa = k.bitcast(k.or_(k.and_(bits, _FRACTION), _TWO_52_BITS), dtypes.float64)
    biased = k.or_(k.shift_right_logical(bits, 52), _TWO_52_BITS)
    exponent = k.sub(k.bitcast(biased, dtypes.float64), 2.0**52)
    return mantissa, k.sub(exponent, k.select(tiny, k.constant(54.0, dtypes.float64), 0.0))


class _Modulus:
    """Arithmetic modulo a 53-bit integer; residues lie within half of it on either side."""

    def __init__(self, k: Any, modulus: Any) -> None:
        self.k = k
        self.modulus = modulus
        self.inverse = k.div(1.0, modulus)

    def residue(self, value: Any) -> Any:
        """Residue of an integer up to 2^104 held exactly in a float64."""
        k = self.k
        quotient = k.rint(k.mul(value, self.inverse))
        return k.fma(k.neg(quotient), self.modulus, value)

    def product(self, a: Any, b: Any) -> Any:
        """Residue of a product of residues: quotients stay below 2^51, so each rest is exact."""
        high, low = parts.two_product(self.k, a, b)
        return self.residue(self.k.add(self.residue(high), low))


def fmod_float64(k: Any, x: Any, y: Any) -> Any:
    """With x = a 2^d u, y = m u: the result is (a 2^d mod m) u."""
    size, divisor = k.abs(x), k.abs(y)
    a, a_exponent = _mantissa_and_exponent(k, size)
    m, m_exponent = _mantissa_and_exponent(k, divisor)
    # The last place of y as a power of two: 2^54 times it where y is denormal.
    tiny = k.lt(divisor, 2.0**-1022)
    unit = k.div(k.select(tiny, k.mul(divisor, 2.0**54), divisor), m)
    distance = k.sub(a_exponent, m_exponent)
    modulus = _Modulus(k, m)
    bits = k.bitcast(k.add(distance, parts.MAGIC), dtypes.int64)
    # 2^(d >> 6) is below m; six squarings, doubled where d has a bit, make 2^d.
    top = k.shift_left(k.add(k.shift_right_logical(bits, 6), 1023), 52)
    power = k.bitcast(top, dtypes.float64)
    for place in (5, 4, 3, 2, 1, 0):
        power = modulus.product(power, power)
        has_bit = k.ne(k.and_(bits, 1 << place), 0)
        doubled = k.mul(power, k.select(has_bit, k.constant(2.0, dtypes.float64), 1.0))
        power = modulus.residue(doubled)
    rest = modulus.product(modulus.residue(a), power)
    rest = k.mul(k.select(k.lt(rest, 0.0), k.add(rest, m), rest), unit)
    rest = k.mul(rest, k.select(tiny, k.constant(2.0**-54, dtypes.float64), 1.0))
    rest = k.select(k.lt(size, divisor), size, rest)
    ordinary = k.and_(k.lt(size, INF), k.gt(divisor, 0.0))
    rest = k.select(k.and_(ordinary, k.le(divisor, INF)), rest, NAN)
    return _special(k, x, y, rest)
