"""log, log1p, exp, power, sine, cosine and tangent in float64, scalar or four lanes alike.

Keeps     the steps of glibc's builds for processors with FMA, which torch calls: a draw that goes
          through them has torch's bits, and since they are closed formulas over + - * / fma and
          tables, it has them on every machine. Arguments are those that draws have: normal numbers,
          angles within a few turns.
Touches   tables.py, writer.py.
Not here  float32's Cephes polynomials (normal.py).
Source    log, exp, power: Arm's optimized routines (2018, MIT licence). log1p: fdlibm (Sun
          Microsystems, 1993). Sine, cosine, tangent: IBM's accurate mathematical library (1996)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from flambeau.random.native import tables
from flambeau.random.native.writer import Function, Value, like

Pair = tuple[Value, Value]

_hex: Final = float.fromhex

_MANTISSA: Final = 0x000FFFFFFFFFFFFF
_SIGN_AND_EXPONENT: Final = ~_MANTISSA
_ONE_BITS: Final = 0x3FF0000000000000
_TWO_52: Final = 2.0**52
_TWO_52_BITS: Final = 0x4330000000000000
_ROUNDER: Final = 1.5 * 2.0**52  # adding it leaves an integer in the low bits of the mantissa

# Where an octave begins: its parts lie around 1.
_LOG_START: Final = 0x3FE6000000000000
_POWER_START: Final = 0x3FE6955500000000
# log(2) in two parts: products of the first with an exponent are exact.
_LN2_SHORT: Final = (_hex("0x1.62e42fefa3800p-1"), _hex("0x1.ef35793c76730p-45"))
_LN2: Final = (6.93147180369123816490e-01, 1.90821492927058770002e-10)
_LOG: Final = tuple(map(_hex, (
    "-0x1.0000000000001p-1", "0x1.555555551305bp-2", "-0x1.fffffffeb4590p-3",
    "0x1.999b324f10111p-3", "-0x1.55575e506c89fp-3",
)))  # fmt: skip
_NEAR_ONE: Final = (1 - 2.0**-4, 1 + _hex("0x1.09p-4"))
_LOG_NEAR_ONE: Final = tuple(map(_hex, (
    "-0x1p-1", "0x1.5555555555577p-2", "-0x1.ffffffffffdcbp-3", "0x1.999999995dd0cp-3",
    "-0x1.55555556745a7p-3", "0x1.24924a344de30p-3", "-0x1.fffffa4423d65p-4",
    "0x1.c7184282ad6cap-4", "-0x1.999eb43b068ffp-4", "0x1.78182f7afd085p-4",
    "-0x1.5521375d145cdp-4",
)))  # fmt: skip
_POWER_LOG: Final = tuple(map(_hex, (
    "-0x1p-1", "-0x1.5555555555560p-1", "0x1.0000000000006p-1", "0x1.999999959554ep-1",
    "-0x1.555555529a47ap-1", "-0x1.2495b9b4845e9p+0", "0x1.0002b8b263fc3p+0",
)))  # fmt: skip
_EXP_PARTS: Final = _hex("0x1.71547652b82fep+7")  # 128 / log(2)
_EXP_PART: Final = (_hex("-0x1.62e42fefa0000p-8"), _hex("-0x1.cf79abc9e3b3ap-47"))  # -log(2)/128
_EXP: Final = tuple(map(_hex, (
    "0x1.ffffffffffdbdp-2", "0x1.555555555543cp-3", "0x1.55555cf172b91p-5", "0x1.1111167a4d017p-7",
)))  # fmt: skip
_LOG1P: Final = (
    6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01,
    2.222219843214978396e-01, 1.818357216161805012e-01, 1.531383769920937332e-01,
    1.479819860511658591e-01,
)  # fmt: skip

_TWO_OVER_PI: Final = _hex("0x1.45f306dc9c883p-1")
# pi / 2 in parts: products of the first two with small integers are exact.
_QUARTER_TURN: Final = (
    _hex("0x1.921fb58000000p+0"), _hex("-0x1.dde973c000000p-27"), _hex("-0x1.cb3b398000000p-55"),
    _hex("-0x1.d747f23e32ed7p-83"),
)  # fmt: skip
_QUARTER_TURN_REST: Final = _hex("-0x1.cb3b399d747f2p-55")  # the last two together
_HALF_PI: Final = (math.pi / 2, _hex("0x1.1a62633145c07p-54"))
_GRID: Final = _hex("0x1.8p+45")  # adding it leaves multiples of 1/128
_SIN: Final = (_hex("-0x1.5555555555515p-3"), _hex("0x1.11110e829872fp-7"))
_COS: Final = (0.5, _hex("-0x1.5555555555535p-5"), _hex("0x1.6c16bedd9e239p-10"))
_SMALL_ANGLE: Final = 0.126
_SIN_SMALL: Final = (
    _hex("-0x1.5555555555555p-3"), _hex("0x1.1111111110ecep-7"), _hex("-0x1.a01a019db08b8p-13"),
    _hex("0x1.71de27b9a7ed9p-19"), _hex("-0x1.addffc2fcdf59p-26"),
)  # fmt: skip
_TAN: Final = (_hex("0x1.5555555554dbdp-2"), _hex("0x1.11112e0a6b45fp-3"))
_TAN_SMALL_BELOW: Final = _hex("0x1.f212dp-5")
_TAN_SMALL: Final = (
    1 / 3, _hex("0x1.11111111107c6p-3"), _hex("0x1.ba1ba1cdb8745p-5"),
    _hex("0x1.664ed49cfc666p-6"), _hex("0x1.2385a3cf2e4eap-7"),
)  # fmt: skip
_TAN_UNREDUCED: Final = _hex("0x1.92f1ap-1")


def _polynomial(f: Function, x: Value, coefficients: Sequence[float]) -> Value:
    """Horner's scheme, lowest power first, each step fused."""
    total = f.constant(x.type, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = f.fma(total, x, coefficient)
    return total


def _table(f: Function, name: str, values: Sequence[float], index: Value) -> Value:
    return f.entry(f.module.table(name, values), index)


def _octave(x: Value, start: int) -> tuple[Value, Value, Value]:
    """(k, part, z): x = 2^k z, z in the octave from `start`, in one of its 128 parts."""
    bits = x.bits_as(like(x.type, "i64"))
    above = bits - start
    k = (((above + _ONE_BITS) >> 52) | _TWO_52_BITS).bits_as(x.type) - (_TWO_52 + 1023.0)
    return k, (above >> 45) & 127, (bits - (above & _SIGN_AND_EXPONENT)).bits_as(x.type)


def log(f: Function, x: Value) -> Value:
    """Logarithm of a positive normal number or zero."""
    k, part, z = _octave(x, _LOG_START)
    inverses, logs = tables.logarithms()
    r = f.fma(z, _table(f, "log_inverses", inverses, part), -1.0)
    whole = f.fma(k, _LN2_SHORT[0], _table(f, "logs", logs, part))
    high = whole + r
    low = f.fma(k, _LN2_SHORT[1], (whole - high) + r)
    square = r * r
    series = f.fma(f.fma(r, _LOG[4], _LOG[3]), square, f.fma(r, _LOG[2], _LOG[1]))
    far = f.fma(r * square, series, f.fma(square, _LOG[0], low)) + high
    is_near = (x >= _NEAR_ONE[0]) & (x < _NEAR_ONE[1])
    found = is_near.choose(_log_near_one(f, x - 1.0), far)
    return x.equal(0.0).choose(float("-inf"), found)


def _log_near_one(f: Function, r: Value) -> Value:
    """log(1 + r) with r - r^2 / 2 carried exactly."""
    b = _LOG_NEAR_ONE
    square = r * r
    cube = r * square
    first, second, third = (
        f.fma(square, b[n + 2], f.fma(r, b[n + 1], b[n])) for n in (1, 4, 7)
    )  # fmt: skip
    third = f.fma(cube, b[10], third)
    series = f.fma(f.fma(third, cube, second), cube, first)
    half_bits = f.fma(-f.constant(r.type, 2.0**27), r, f.fma(r, 2.0**27, r))
    half_square = half_bits * half_bits
    high = f.fma(half_square, b[0], r)
    low = f.fma(half_square, b[0], r - high)
    low = f.fma((r - half_bits) * b[0], r + half_bits, low)
    return high + f.fma(series, cube, low)


def log1p(f: Function, x: Value, is_exact: bool = False) -> Value:
    """log(1 + x) for -1 < x <= 0; `is_exact` where 1 + x loses nothing (multiples of 2^-53)."""
    integer = like(x.type, "i64")
    total = x + 1.0
    size = (-x).bits_as(integer) >> 32
    keeps = size < 0x3FD2BEC4  # no power of two is taken out
    bits = total.bits_as(integer)
    mantissa = (bits >> 32) & 0xFFFFF
    is_low = mantissa < 0x6A09E
    one, half = f.constant(integer, _ONE_BITS), f.constant(integer, 0x3FE0000000000000)
    scaled = ((bits & _MANTISSA) | is_low.choose(one, half)).bits_as(x.type)
    part = keeps.choose(x, scaled - 1.0)
    k = ((bits >> 52) | _TWO_52_BITS).bits_as(x.type) - (_TWO_52 + 1023.0)
    k = is_low.choose(k, k + 1.0)
    lost = f.constant(x.type, 0.0) if is_exact else (x - (total - 1.0)) / total
    rest = f.fma(k, _LN2[1], lost)
    half_square = part * 0.5 * part
    s = part / (part + 2.0)
    z = s * s
    z2 = z * z
    z4 = z2 * z2
    pairs = [f.fma(z, _LOG1P[i + 1], _LOG1P[i]) for i in (1, 3, 5)]
    series = f.fma(z4, pairs[1], f.fma(z, _LOG1P[0], z2 * pairs[0]))
    tail = s * (f.fma(z2 * z4, pairs[2], series) + half_square)
    # |part| < 2^-20 after a power of two was taken out: two terms of the series are enough.
    near_one = mantissa.equal(0) | (mantissa > 0xFFFFC)
    short = half_square * f.fma(part, -0.66666666666666666, 1.0)
    inner = near_one.choose(short - rest, half_square - (rest + tail))
    taken = f.fma(k, _LN2[0], -(inner - part))
    found = keeps.choose(part - (half_square - tail), taken)
    return (size < 0x3E200000).choose(f.fma(x * x, -0.5, x), found)


def exp(f: Function, x: Value, low: Value | None = None) -> Value:
    """e to the power x + low; overflows to infinity and underflows to zero."""
    inside = (x < -1024.0).choose(-1024.0, x)
    inside = (x > 1024.0).choose(1024.0, inside)
    shifted = f.fma(inside, _EXP_PARTS, _ROUNDER)
    k = shifted - _ROUNDER
    r = f.fma(k, _EXP_PART[1], f.fma(k, _EXP_PART[0], inside))
    if low is not None:
        r = low + r
    number = shifted.bits_as(like(x.type, "i64"))
    powers, lost = tables.powers_of_two()
    part = number & 127
    bits = _table(f, "powers_of_two", powers, part).bits_as(number.type) + (number << 45)
    square = r * r
    series = f.fma(
        f.fma(r, _EXP[1], _EXP[0]), square, _table(f, "powers_lost", lost, part) + r
    )  # fmt: skip
    series = f.fma(square * square, f.fma(r, _EXP[3], _EXP[2]), series)
    # The power of two in two factors, so that neither overflows where the result does not.
    zero, up, down = (f.constant(number.type, each << 52) for each in (0, 1009, -1022))
    taken = (inside >= 512.0).choose(up, (inside <= -512.0).choose(down, zero))
    scale = (bits - taken).bits_as(x.type)
    found = (inside <= -512.0).choose(scale + scale * series, f.fma(scale, series, scale))
    found = found * (taken + _ONE_BITS).bits_as(x.type)
    found = (x >= 1024.0).choose(float("inf"), found)
    return (x <= -1024.0).choose(0.0, found)


def power(f: Function, base: Value, exponent: Value) -> Value:
    """base ** exponent for a positive normal base: exp of a logarithm in two parts."""
    k, part, z = _octave(base, _POWER_START)
    names = ("power_inverses", "power_logs", "power_logs_lost")
    inverse, whole, lost = (
        _table(f, name, values, part)
        for name, values in zip(names, tables.power_logarithms(), strict=True)
    )
    a = _POWER_LOG
    r = f.fma(z, inverse, -1.0)
    whole = f.fma(k, _LN2_SHORT[0], whole)
    first = whole + r
    low = f.fma(k, _LN2_SHORT[1], lost) + ((whole - first) + r)
    term = r * a[0]
    square = r * term
    high = first + square
    low = (low + f.fma(term, r, -square)) + ((first - high) + square)
    series = f.fma(f.fma(r, a[6], a[5]), square, f.fma(r, a[4], a[3]))
    series = f.fma(square, series, f.fma(r, a[2], a[1]))
    low = f.fma(r * square, series, low)
    total = high + low
    rest = (high - total) + low
    product = exponent * total
    return exp(f, product, f.fma(exponent, rest, f.fma(total, exponent, -product)))


def _reduced(f: Function, angle: Value) -> tuple[Value, Value, Value]:
    """(quarter turns in the low bits, their number, the angle without the first parts of them)."""
    shifted = f.fma(angle, _TWO_OVER_PI, _ROUNDER)
    n = shifted - _ROUNDER
    rest = f.fma(-n, _QUARTER_TURN[1], f.fma(-n, _QUARTER_TURN[0], angle))
    return shifted.bits_as(like(angle.type, "i64")), n, rest


def sine_cosine(f: Function, angle: Value) -> Pair:
    """Sine and cosine of an angle >= 0 within a few turns."""
    quadrant, n, rest = _reduced(f, angle)
    first = f.fma(-n, _QUARTER_TURN[2], rest)
    second = f.fma(-n, _QUARTER_TURN[3], first)
    low = f.fma(-n, _QUARTER_TURN[2], rest - first)
    low = low + f.fma(-n, _QUARTER_TURN[3], first - second)
    # Below 0.8555 nothing is taken off; below 2.4263 it is taken from a quarter turn.
    word = angle.bits_as(quadrant.type) >> 32
    is_small, is_middle = word < 0x3FEB6000, word < 0x400368FD
    difference = f.constant(angle.type, _HALF_PI[0]) - angle
    complement = difference + _HALF_PI[1]
    complement_low = (difference - complement) + _HALF_PI[1]
    x = is_small.choose(angle, is_middle.choose(complement, second))
    low = is_small.choose(0.0, is_middle.choose(complement_low, low))
    sine, cosine = _sine_cosine_within(f, x, low)
    quadrant = is_middle.choose(0, quadrant)
    swaps = (quadrant & 1).differs(0)
    swaps_all = is_small.choose(f.constant(quadrant.type, 0), 1).differs(0)
    swaps = is_middle.choose(swaps_all, swaps)
    sine_negative = (quadrant & 2).differs(0)
    cosine_negative = ((quadrant + 1) & 2).differs(0)
    first, second = swaps.choose(cosine, sine), swaps.choose(sine, cosine)
    return sine_negative.choose(-first, first), cosine_negative.choose(-second, second)


def _sine_cosine_within(f: Function, x: Value, low: Value) -> Pair:
    """Sine and cosine of x + low, |x| < 0.86, by the sums with the nearest k / 128."""
    negative = x <= 0.0
    size = negative.choose(-x, x)
    low_of_size = negative.choose(-low, low)
    on_grid = size + _GRID
    part = on_grid.bits_as(like(x.type, "i64")) & 127
    rest = size - (on_grid - _GRID)
    names = ("sines", "sines_lost", "cosines", "cosines_lost")
    sn, sn_lost, cs, cs_lost = (
        _table(f, name, values, part)
        for name, values in zip(names, tables.sines_and_cosines(), strict=True)
    )
    square = rest * rest
    s = rest + f.fma(rest * square, f.fma(square, _SIN[1], _SIN[0]), low_of_size)
    c = f.fma(rest, low_of_size, square * _polynomial(f, square, _COS))
    missing = f.fma(-c, sn, f.fma(s, cs_lost, sn_lost))
    sine = sn + f.fma(s, cs, missing)
    square = x * x
    term = f.fma(_polynomial(f, square, _SIN_SMALL), x, low * -0.5)
    small = x + f.fma(square, term, low)
    sine = (size < _SMALL_ANGLE).choose(small, negative.choose(-sine, sine))
    rest = rest + low_of_size
    square = rest * rest
    s = f.fma(rest * square, f.fma(square, _SIN[1], _SIN[0]), rest)
    c = square * _polynomial(f, square, _COS)
    missing = f.fma(-c, cs, f.fma(-s, sn_lost, cs_lost))
    return sine, cs + f.fma(-s, sn, missing)


def tangent(f: Function, angle: Value) -> Value:
    """Tangent of an angle within a few turns."""
    quadrant, n, rest = _reduced(f, angle)
    reduced = f.fma(-n, _QUARTER_TURN_REST, rest)
    low = f.fma(-n, _QUARTER_TURN_REST, rest - reduced)
    is_whole = f.intrinsic("fabs", angle) <= _TAN_UNREDUCED
    x, low = is_whole.choose(angle, reduced), is_whole.choose(0.0, low)
    odd = is_whole.choose(0, quadrant & 1).differs(0)
    negative = x < 0.0
    size = negative.choose(-x, x)
    small, small_cotangent = _tangent_small(f, x, low)
    series = _polynomial(f, x * x, _TAN_SMALL)
    small = is_whole.choose(f.fma(x * (x * x), series, x), small)
    # Sums with the nearest angle whose tangent and cotangent are almost doubles.
    place = f.fma(size, 256.0, -15.5).cast("fptosi", "i64")
    place = (place < 0).choose(0, place)
    names = ("tangent_angles", "tangents", "cotangents")
    near, tan, cot = (
        _table(f, name, values, place)
        for name, values in zip(names, tables.tangents(), strict=True)
    )
    z = (size - near) + negative.choose(-low, low)
    square = z * z
    t = f.fma(z * square, f.fma(square, _TAN[1], _TAN[0]), z)
    product = (tan + cot) * t
    large = odd.choose(cot - product / (t + tan), product / (cot - t) + tan)
    large = (odd ^ negative).choose(-large, large)
    return (size <= _TAN_SMALL_BELOW).choose(odd.choose(small_cotangent, small), large)


def _tangent_small(f: Function, x: Value, low: Value) -> Pair:
    """Tangent of x + low and minus its inverse, by the series."""
    square = x * x
    term = f.fma(x * square, _polynomial(f, square, _TAN_SMALL), low)
    total = x + term
    lost = (x - total) + term
    inverse = 1.0 / total
    product = inverse * total
    missing = (1.0 - product) - f.fma(inverse, total, -product)
    step = f.fma(-lost, inverse, missing) / total
    found = inverse + step
    return total, -(((inverse - found) + step) + found)


def polar(f: Function, radius: Value, angle: Value) -> Pair:
    """radius * cos(angle), radius * sin(angle), cosine and sine rounded first."""
    sine, cosine = sine_cosine(f, angle)
    return radius * cosine, radius * sine
