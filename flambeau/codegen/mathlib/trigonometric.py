"""sin, cos, tan from the plain words.

Keeps     arguments of any size are reduced with as many bits of 1 / (2 pi) as they need, without a
          branch or a table in memory; the sign of zero stays.
Touches   parts, coefficients.
Not here  the inverse functions (arcs.py), the hyperbolic ones (hyperbolic.py).
Source    Payne & Hanek, SIGNUM 18 (1983), in floating point: a product of x with a piece of
          1 / (2 pi) is exact, so whole turns drop out by rint. Kernels after fdlibm's k_sin.c.
"""

from __future__ import annotations

from typing import Any, Final

from flambeau.base import dtypes
from flambeau.codegen.mathlib import coefficients as table
from flambeau.codegen.mathlib import parts

TWO_PI: Final = (6.283185307179586, 2.4492935982947064e-16)
# 1 / (2 pi) in pieces of 29 bits: float32 times a piece is exact in float64. The last is whole.
_PIECES_29: Final = tuple(
    float.fromhex(text)
    for text in (
        "0x1.45f306d000000p-3", "0x1.9391054000000p-32", "0x1.4fe13ab000000p-61",
        "0x1.d1f534d000000p-90", "0x1.b81b6c5000000p-119", "0x1.5993c439041fep-150",
    )
)  # fmt: skip
# floor(2^1219 / (2 pi)), and its 23 pieces of 53 bits; piece k stands for piece * 2^(-53 k).
_DIGITS: Final = int(
    "145f306dc9c882a53f84eafa3ea69bb81b6c52b3278872083fca2c757bd778ac36e48dc74849ba5c00c925dd41"
    "3a32439fc3bd63962534e7dd1046bea5d768909d338e04d68befc827323ac7306a673e93908bf177bf250763ff"
    "12fffbc0b301fde5e2316b414da3eda6cfd9e4f96136e9e8c7ecd3cbfd45aea4f758fd7cbe2f67a0e73ef14a52"
    "5d4d7f6bf623f1aba10ac06608df8f6d757",
    16,
)
_PIECES_53: Final = tuple(
    ((_DIGITS >> (53 * (22 - k))) & (2**53 - 1)) * 2.0**-53 for k in range(23)
)


def _quadrant(k: Any, turns: Any) -> tuple[Any, Any]:
    """n = rint(4 turns) and bits whose low two are those of n."""
    n, shifted = parts.nearest_multiple(k, turns, 4.0)
    return n, k.bitcast(shifted, dtypes.int64)


def _reduce_float32(k: Any, x: Any) -> tuple[Any, Any]:
    """(bits of n, a): x = n pi/2 + a mod 2 pi, for a float32 in float64. Exact to 2^-50 of a."""
    fractions = []
    for piece in _PIECES_29[:-1]:
        product = k.mul(x, piece)
        fractions.append(k.sub(product, k.rint(product)))
    fractions.append(k.mul(x, _PIECES_29[-1]))
    total = fractions[0]
    for fraction in fractions[1:-1]:
        total = k.add(total, fraction)
    n, bits = _quadrant(k, total)
    # Again from the top with n taken out first: every sum is exact until what follows is small.
    rest = k.fma(n, -0.25, fractions[0])
    for fraction in fractions[1:]:
        rest = k.add(rest, fraction)
    return bits, k.mul(rest, TWO_PI[0])


def _window(k: Any, x: Any) -> tuple[Any, list[Any]]:
    """x scaled to less than 2^105 and the five pieces of 1 / (2 pi) that matter for it.

    Pieces whose products are whole turns are skipped, 16, 8, 4, 2 and 1 at a time."""
    pieces: list[Any] = list(_PIECES_53)
    for step in (16, 8, 4, 2, 1):
        far = k.ge(k.abs(x), 2.0 ** (52 + 53 * step))
        x = k.select(far, k.mul(x, 2.0 ** (-53 * step)), x)
        kept = pieces[: step + 4]
        for i, ahead in enumerate(pieces[step : 2 * step + 4]):
            here = k.constant(kept[i], dtypes.float64) if isinstance(kept[i], float) else kept[i]
            kept[i] = k.select(far, ahead, here)
        pieces = kept
    return x, pieces


def _reduce_float64(k: Any, x: Any) -> tuple[Any, Any, Any]:
    """(bits of n, a, a_low): x = n pi/2 + a + a_low mod 2 pi, for every float64."""
    x, pieces = _window(k, x)
    p0, e0 = parts.two_product(k, x, pieces[0])
    p1, e1 = parts.two_product(k, k.mul(x, 2.0**-53), pieces[1])
    p2, e2 = parts.two_product(k, k.mul(x, 2.0**-106), pieces[2])
    p3, e3 = parts.two_product(k, k.mul(x, 2.0**-159), pieces[3])
    p4 = k.mul(k.mul(x, 2.0**-212), pieces[4])
    p0, e0, p1 = (k.sub(each, k.rint(each)) for each in (p0, e0, p1))
    n, bits = _quadrant(k, k.add(k.add(k.add(k.add(p0, e0), p1), e1), p2))
    high = k.fma(n, -0.25, p0)
    low = k.add(e3, p4)
    for term in (e0, p1, e1, p2, e2, p3):
        high, lost = parts.any_sum(k, high, term)
        low = k.add(low, lost)
    high, low = parts.any_sum(k, high, low)
    a, a_low = parts.two_product(k, high, TWO_PI[0])
    return bits, a, k.fma(high, TWO_PI[1], k.fma(low, TWO_PI[0], a_low))


def sine_kernel(k: Any, a: Any, a_low: Any, z: Any) -> Any:
    """sin(a + a_low) - a for |a| <= pi / 4, z = a^2."""
    carried = k.fma(k.mul(z, -0.5), a_low, a_low)
    return k.fma(k.mul(z, a), parts.estrin(k, z, table.SIN_64), carried)


def cosine_kernel(k: Any, a: Any, a_low: Any, z: Any) -> tuple[Any, Any]:
    """cos(a + a_low) as high + low for |a| <= pi / 4, z = a^2."""
    half = k.mul(z, 0.5)
    high = k.sub(1.0, half)
    lost = k.sub(k.sub(1.0, high), half)
    curve = k.mul(k.mul(z, z), parts.estrin(k, z, table.COS_64))
    return high, k.add(lost, k.fma(k.neg(a), a_low, curve))


def _turned(k: Any, bits: Any, sine: Any, cosine: Any) -> Any:
    """Sine of the whole angle from those of the rest and n, the number of quarter turns."""
    odd = k.ne(k.and_(bits, 1), 0)
    value = k.bitcast(k.select(odd, cosine, sine), dtypes.int64)
    flip = k.shift_left(k.and_(bits, 2), 62)
    return k.bitcast(k.xor(value, flip), dtypes.float64)


def kernels_light(k: Any, a: Any) -> tuple[Any, Any]:
    """sin a and cos a, 37 good bits, |a| <= pi / 4."""
    z = k.mul(a, a)
    sine = k.fma(k.mul(z, a), parts.horner(k, z, table.SIN_LIGHT), a)
    cosine = k.fma(k.mul(z, z), parts.horner(k, z, table.COS_LIGHT), k.fma(z, -0.5, 1.0))
    return sine, cosine


def sin_float32(k: Any, x: Any) -> Any:
    bits, a = _reduce_float32(k, parts.widened(k, x))
    result = parts.narrowed(k, _turned(k, bits, *kernels_light(k, a)))
    return k.select(k.eq(x, 0.0), x, result)


def cos_float32(k: Any, x: Any) -> Any:
    bits, a = _reduce_float32(k, parts.widened(k, x))
    return parts.narrowed(k, _turned(k, k.add(bits, 1), *kernels_light(k, a)))


def tan_float32(k: Any, x: Any) -> Any:
    bits, a = _reduce_float32(k, parts.widened(k, x))
    sine, cosine = kernels_light(k, a)
    odd = k.ne(k.and_(bits, 1), 0)
    ratio = k.div(k.select(odd, k.neg(cosine), sine), k.select(odd, sine, cosine))
    return k.select(k.eq(x, 0.0), x, parts.narrowed(k, ratio))


def _kernels_float64(k: Any, x: Any) -> tuple[Any, Any, Any, Any, Any]:
    """(bits of n, sine, its low part, cosine, its low part) of the reduced angle."""
    bits, a, a_low = _reduce_float64(k, x)
    z = k.mul(a, a)
    return bits, a, sine_kernel(k, a, a_low, z), *cosine_kernel(k, a, a_low, z)


def sin_float64(k: Any, x: Any) -> Any:
    bits, sine, sine_low, cosine, cosine_low = _kernels_float64(k, x)
    result = _turned(k, bits, k.add(sine, sine_low), k.add(cosine, cosine_low))
    return _itself_if_tiny(k, x, result)


def cos_float64(k: Any, x: Any) -> Any:
    bits, sine, sine_low, cosine, cosine_low = _kernels_float64(k, x)
    return _turned(k, k.add(bits, 1), k.add(sine, sine_low), k.add(cosine, cosine_low))


def tan_float64(k: Any, x: Any) -> Any:
    """sin / cos, or -cos / sin in odd quadrants, the remainder of the division put back."""
    bits, sine, sine_low, cosine, cosine_low = _kernels_float64(k, x)
    sine, sine_low = parts.two_sum(k, sine, sine_low)
    cosine, cosine_low = parts.two_sum(k, cosine, cosine_low)
    odd = k.ne(k.and_(bits, 1), 0)
    top = k.select(odd, k.neg(cosine), sine)
    top_low = k.select(odd, k.neg(cosine_low), sine_low)
    below, below_low = k.select(odd, sine, cosine), k.select(odd, sine_low, cosine_low)
    inverse = k.div(1.0, below)
    ratio = k.mul(top, inverse)
    rest = k.add(k.fma(k.neg(ratio), below, top), top_low)
    rest = k.fma(k.neg(ratio), below_low, rest)
    return _itself_if_tiny(k, x, k.fma(rest, inverse, ratio))


def _itself_if_tiny(k: Any, x: Any, result: Any) -> Any:
    """x for |x| < 2^-28, where the pieces of a product would underflow."""
    return k.select(k.lt(k.abs(x), 2.0**-28), x, result)
