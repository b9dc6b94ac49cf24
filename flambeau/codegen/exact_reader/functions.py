"""Floating words evaluated by mpmath for the exact reader, with C's special values.

Keeps     a word of floats that is NaN, infinite or a signed zero is answered with a Python float,
          as C defines it; everything else in mpmath at the digits asked for, more where the
          argument's size eats them (sin 1e300) or cancellation does (expm1, log1p, erfc).
Touches   mpmath, at first use.
Not here  rounding, integer words (__init__.py)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

NAN: Final = math.nan
INF: Final = math.inf


def evaluate(word: str, values: list[Any], digits: int) -> Any:
    """Result of a floating word on floats and mpmath numbers."""
    special = _SPECIAL.get(word)
    if special is not None:
        answer = special(*values)
        if answer is not None:
            return answer
    elif any(isinstance(each, float) and math.isnan(each) for each in values):
        return NAN
    if word in _BEYOND:
        answer = _BEYOND[word](*(float(each) for each in values))
        if answer is not None:
            return answer
    mpmath = _mpmath()
    with mpmath.workdps(_digits(values, digits)):
        result = _FUNCTIONS[word](mpmath, *(_number(mpmath, each) for each in values))
        return +result if isinstance(result, mpmath.mpf) else result


def _mpmath() -> Any:
    """The one package the oracle needs and users do not: it comes with flambeau[test]."""
    import mpmath  # type: ignore[import-untyped]

    return mpmath


def _digits(values: list[Any], digits: int) -> int:
    """Digits enough that the argument's own size costs none."""
    size = max((abs(each) for each in values if each == each and abs(each) != INF), default=0)
    least = min((abs(each) for each in values if each), default=1)
    return digits + (330 if size > 1e4 or least < 1e-4 else 0)


def _number(mpmath: Any, value: Any) -> Any:
    return mpmath.mpf(value) if isinstance(value, (int, float)) else value


def _is_nan(value: Any) -> bool:
    return bool(value != value)


def _is_zero(value: Any) -> bool:
    return bool(value == 0)


def _sign(value: Any) -> float:
    """1 or -1, told from the sign of zero as well."""
    return math.copysign(1.0, value) if isinstance(value, float) else (-1.0 if value < 0 else 1.0)


def _zero(value: Any) -> float:
    return math.copysign(0.0, _sign(value))


def _unary(
    at_zero: Any, at_inf: Any, at_minus_inf: Any, bad: Callable[[Any], Any] | None = None
) -> Any:
    """Special values of a function of one number; "same" is the argument itself."""

    def special(x: Any) -> Any:
        if _is_nan(x):
            return NAN
        if _is_zero(x) and at_zero is not None:
            return x if at_zero == "same" else at_zero
        if x == INF and at_inf is not None:
            return at_inf
        if x == -INF and at_minus_inf is not None:
            return at_minus_inf
        return bad(x) if bad is not None else None

    return special


def _log_like(point: float) -> Callable[[Any], Any]:
    """-inf at `point`, NaN below."""
    return lambda x: -INF if x == point else NAN if x < point else None


def _outside_one(at_one: Any) -> Callable[[Any], Any]:
    """NaN beyond 1 in size; `at_one` with x's sign at 1, unless None."""

    def bad(x: Any) -> Any:
        if abs(x) > 1:
            return NAN
        return math.copysign(at_one, _sign(x)) if abs(x) == 1 and at_one is not None else None

    return bad


def _add(a: Any, b: Any) -> Any:
    if isinstance(a, float) and isinstance(b, float):
        # Zeros with their sign, infinities and NaN are exact; what merely overflows is not.
        exact = a == -b or not (math.isfinite(a) and math.isfinite(b)) or (a == 0 and b == 0)
        return a + b if exact else None
    if _is_nan(a) or _is_nan(b):
        return NAN
    return INF if INF in (a, b) else -INF if -INF in (a, b) else None


def _sub(a: Any, b: Any) -> Any:
    return _add(a, -b if isinstance(b, float) else _negated(b))


def _negated(value: Any) -> Any:
    return -value


def _mul(a: Any, b: Any) -> Any:
    if _is_nan(a) or _is_nan(b):
        return NAN
    infinite = abs(a) == INF or abs(b) == INF
    if _is_zero(a) or _is_zero(b):
        return NAN if infinite else math.copysign(0.0, _sign(a) * _sign(b))
    return _sign(a) * _sign(b) * INF if infinite else None


def _div(a: Any, b: Any) -> Any:
    sign = _sign(a) * _sign(b)
    if _is_nan(a) or _is_nan(b):
        return NAN
    if abs(a) == INF:
        return NAN if abs(b) == INF else sign * INF
    if _is_zero(b):
        return NAN if _is_zero(a) else sign * INF
    return math.copysign(0.0, sign) if abs(b) == INF or _is_zero(a) else None


def _fma(a: Any, b: Any, c: Any) -> Any:
    product = _mul(a, b)
    if product is None:  # finite and not zero
        return c if _is_nan(c) or abs(c) == INF else None
    return _add(product, c) if isinstance(c, float) or abs(product) == INF else None


def _pow(x: Any, y: Any) -> Any:
    if x == 1 or _is_zero(y):
        return 1.0
    if _is_nan(x) or _is_nan(y):
        return NAN
    whole = abs(y) == INF or y == int(y)
    odd = whole and abs(y) != INF and int(y) % 2 == 1
    sign = _sign(x) if odd else 1.0
    size = abs(x)
    if abs(y) == INF:
        return 1.0 if size == 1 else INF if (size > 1) == (y > 0) else 0.0
    if size == 0 or size == INF:
        return sign * (INF if (size == 0) == (y < 0) else 0.0)
    return NAN if x < 0 and not whole else None


def _atan2(y: Any, x: Any) -> Any:
    if _is_nan(x) or _is_nan(y):
        return NAN
    if not _is_zero(y):
        return None
    if _sign(x) > 0:
        return _zero(y)
    mpmath = _mpmath()
    with mpmath.workdps(80):
        return _sign(y) * +mpmath.pi


def _fmod(x: Any, y: Any) -> Any:
    if _is_nan(x) or _is_nan(y) or abs(x) == INF or _is_zero(y):
        return NAN
    if _is_zero(x) or abs(y) == INF:
        return x
    return math.fmod(x, y) if isinstance(x, float) and isinstance(y, float) else None


def _extreme(larger: bool) -> Callable[[Any, Any], Any]:
    def special(a: Any, b: Any) -> Any:
        if _is_nan(a) or _is_nan(b):
            return NAN
        if a == b:
            return a if (_sign(a) > 0) == larger else b
        return a if (a > b) == larger else b

    return special


def _same_class(function: Callable[[float], Any]) -> Callable[[Any], Any]:
    """floor and its kin: NaN, infinities and zeros are themselves, results keep x's sign."""

    def special(x: Any) -> Any:
        if isinstance(x, float) and (not math.isfinite(x) or x == 0):
            return x
        whole = function(x)
        return math.copysign(float(whole), _sign(x)) if whole == 0 or isinstance(x, float) else None

    return special


def _pole(x: Any) -> bool:
    return bool(x <= 0 and x == int(x))


def _digamma(x: Any) -> Any:
    if _is_nan(x) or x == -INF:
        return NAN
    if x == INF:
        return INF
    if _is_zero(x):
        return -_sign(x) * INF
    return NAN if _pole(x) else None


_SPECIAL: Final[dict[str, Callable[..., Any]]] = {
    "add": _add, "sub": _sub, "mul": _mul, "div": _div, "fma": _fma,
    "neg": lambda x: -x, "abs": lambda x: abs(x),
    "copysign": lambda x, y: NAN if _is_nan(x) else abs(x) * _sign(y) if abs(x) else _zero(y),
    "min": _extreme(False), "max": _extreme(True), "isnan": _is_nan,
    "eq": lambda a, b: bool(a == b), "ne": lambda a, b: bool(a != b),
    "lt": lambda a, b: bool(a < b), "le": lambda a, b: bool(a <= b),
    "gt": lambda a, b: bool(a > b), "ge": lambda a, b: bool(a >= b),
    "sqrt": _unary("same", INF, NAN, lambda x: NAN if x < 0 else None),
    "rint": _same_class(round), "floor": _same_class(math.floor),
    "ceil": _same_class(math.ceil), "trunc": _same_class(math.trunc),
    "exp": _unary(1.0, INF, 0.0), "exp2": _unary(1.0, INF, 0.0), "expm1": _unary("same", INF, -1.0),
    "log": _unary(-INF, INF, NAN, lambda x: 0.0 if x == 1 else _log_like(0)(x)),
    "log2": _unary(-INF, INF, NAN, lambda x: 0.0 if x == 1 else _log_like(0)(x)),
    "log10": _unary(-INF, INF, NAN, lambda x: 0.0 if x == 1 else _log_like(0)(x)),
    "log1p": _unary("same", INF, NAN, _log_like(-1)),
    "sin": _unary("same", NAN, NAN), "cos": _unary(1.0, NAN, NAN), "tan": _unary("same", NAN, NAN),
    "asin": _unary("same", NAN, NAN, _outside_one(None)),
    "acos": _unary(None, NAN, NAN, lambda x: 0.0 if x == 1 else _outside_one(None)(x)),
    "atan": _unary("same", None, None),
    "sinh": _unary("same", INF, -INF), "cosh": _unary(1.0, INF, INF),
    "tanh": _unary("same", 1.0, -1.0), "sigmoid": _unary(0.5, 1.0, 0.0),
    "asinh": _unary("same", INF, -INF),
    "acosh": _unary(NAN, INF, NAN, lambda x: NAN if x < 1 else 0.0 if x == 1 else None),
    "atanh": _unary("same", NAN, NAN, _outside_one(INF)),
    "erf": _unary("same", 1.0, -1.0), "erfc": _unary(1.0, 0.0, 2.0),
    "erfinv": _unary("same", NAN, NAN, _outside_one(INF)),
    "lgamma": _unary(INF, INF, INF, lambda x: INF if _pole(x) else 0.0 if x in (1, 2) else None),
    "digamma": _digamma, "pow": _pow, "atan2": _atan2, "fmod": _fmod,
}  # fmt: skip


def _grows(low: float, high: float, below: float, above: float) -> Callable[[float], Any]:
    return lambda x: below if x < low else above if x > high else None


def _pow_beyond(x: float, y: float) -> Any:
    exponent = y * math.log2(abs(x)) if x and abs(x) != INF else 0.0
    odd = y == int(y) and int(y) % 2 == 1
    size = INF if exponent > 5000 else 0.0 if exponent < -5000 else None
    return size if size is None else math.copysign(size, x if odd else 1.0)


# Where every dtype has long overflowed, underflowed or reached its limit, so do we: the exact
# number would not fit in memory.
_BEYOND: Final[dict[str, Callable[..., Any]]] = {
    "exp": _grows(-5000, 5000, 0.0, INF), "exp2": _grows(-5000, 5000, 0.0, INF),
    "expm1": _grows(-5000, 5000, -1.0, INF), "sinh": _grows(-5000, 5000, -INF, INF),
    "cosh": _grows(-5000, 5000, INF, INF), "tanh": _grows(-2000, 2000, -1.0, 1.0),
    "sigmoid": _grows(-5000, 2000, 0.0, 1.0), "erf": _grows(-60, 60, -1.0, 1.0),
    "erfc": _grows(-60, 60, 2.0, 0.0), "pow": _pow_beyond,
}  # fmt: skip


def _lgamma(mpmath: Any, x: Any) -> Any:
    if x > 0:
        return mpmath.loggamma(x)
    with mpmath.extradps(40):
        sine = abs(mpmath.sinpi(x))
        return mpmath.log(mpmath.pi / (-x * sine)) - mpmath.loggamma(-x)


def _digamma_value(mpmath: Any, x: Any) -> Any:
    with mpmath.extradps(40):
        if x > 0:
            return mpmath.digamma(x)
        return mpmath.digamma(1 - x) - mpmath.pi * mpmath.cospi(x) / mpmath.sinpi(x)


def _erfinv(mpmath: Any, x: Any) -> Any:
    with mpmath.extradps(40):
        size = abs(x)
        y = mpmath.erfinv(size)
        return y if x > 0 else -y


_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "add": lambda m, a, b: a + b, "sub": lambda m, a, b: a - b, "mul": lambda m, a, b: a * b,
    "div": lambda m, a, b: a / b, "fma": lambda m, a, b, c: a * b + c,
    "sqrt": lambda m, x: m.sqrt(x), "rint": lambda m, x: m.nint(x),
    "floor": lambda m, x: m.floor(x), "ceil": lambda m, x: m.ceil(x),
    "trunc": lambda m, x: m.floor(x) if x > 0 else m.ceil(x),
    "exp": lambda m, x: m.exp(x), "exp2": lambda m, x: m.mpf(2) ** x,
    "expm1": lambda m, x: m.expm1(x), "log": lambda m, x: m.log(x),
    "log2": lambda m, x: m.log(x) / m.log(2), "log10": lambda m, x: m.log(x) / m.log(10),
    "log1p": lambda m, x: m.log1p(x), "pow": lambda m, x, y: m.power(x, y),
    "sin": lambda m, x: m.sin(x), "cos": lambda m, x: m.cos(x), "tan": lambda m, x: m.tan(x),
    "asin": lambda m, x: m.asin(x), "acos": lambda m, x: m.acos(x), "atan": lambda m, x: m.atan(x),
    "atan2": lambda m, y, x: m.atan2(y, x),
    "sinh": lambda m, x: m.sinh(x), "cosh": lambda m, x: m.cosh(x), "tanh": lambda m, x: m.tanh(x),
    "asinh": lambda m, x: m.asinh(x), "acosh": lambda m, x: m.acosh(x),
    "atanh": lambda m, x: m.atanh(x), "sigmoid": lambda m, x: 1 / (1 + m.exp(-x)),
    "erf": lambda m, x: m.erf(x), "erfc": lambda m, x: m.erfc(x), "erfinv": _erfinv,
    "lgamma": _lgamma, "digamma": _digamma_value,
    "fmod": lambda m, x, y: x - y * (m.floor(x / y) if x / y > 0 else m.ceil(x / y)),
}  # fmt: skip
