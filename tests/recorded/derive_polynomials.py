"""Derives every polynomial of flambeau/codegen/mathlib and writes its coefficients.py.

Keeps     each polynomial is the minimax one (Remez exchange on a dense grid, 60 digits), then
          rounded to its precision coefficient by coefficient, the rest fitted anew.
Touches   mpmath; writes flambeau/codegen/mathlib/coefficients.py.
Not here  how the polynomials are used: the files beside it; their measured errors: tests/codegen.

Run: python tests/recorded/derive_polynomials.py [NAME ...]   (a few minutes for all of them)
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mpmath as mp

mp.mp.dps = 60
Function = Callable[[Any], Any]
TARGET = Path(__file__).parents[2] / "flambeau" / "codegen" / "mathlib" / "coefficients.py"


@dataclass(frozen=True)
class Fit:
    """Polynomial of `degree` in the variable that runs over [low, high].

    weight   the error that is made small is weight * (polynomial - function)
    single   coefficients are float32
    """

    says: str
    function: Function
    weight: Function
    low: Any
    high: Any
    degree: int
    single: bool = False


def grid_of(low: Any, high: Any, count: int) -> list[Any]:
    """Chebyshev points of the second kind moved a hair inside, away from removable poles."""
    middle, half = (low + high) / 2, (high - low) / 2
    return [middle - half * mp.cos(mp.pi * (i + mp.mpf("0.01")) / (count - 1 + mp.mpf("0.02")))
            for i in range(count)]  # fmt: skip


def remez(
    points: list[Any], values: list[Any], weights: list[Any], powers: list[int]
) -> tuple[list[Any], Any]:
    """Coefficients of the minimax polynomial with these powers on the grid, and its error."""
    n_nodes = len(powers) + 1
    nodes = [round(i * (len(points) - 1) / (n_nodes - 1)) for i in range(n_nodes)]
    best: list[Any] = []
    for _ in range(40):
        matrix = mp.matrix(n_nodes, n_nodes)
        right = mp.matrix(n_nodes, 1)
        for row, node in enumerate(nodes):
            for column, power in enumerate(powers):
                matrix[row, column] = points[node] ** power
            matrix[row, n_nodes - 1] = (-1) ** row / weights[node]
            right[row] = values[node]
        solved = mp.lu_solve(matrix, right)
        best = [solved[i] for i in range(len(powers))]
        level = abs(solved[n_nodes - 1])
        errors = [
            w * (sum(c * x**p for c, p in zip(best, powers, strict=True)) - f)
            for x, f, w in zip(points, values, weights, strict=True)
        ]
        worst = max(abs(error) for error in errors)
        if worst <= level * mp.mpf("1.01"):
            break
        nodes = _alternating(errors, n_nodes)
    return best, worst


def _alternating(errors: list[Any], count: int) -> list[int]:
    """Positions of `count` extrema whose signs alternate, the largest kept."""
    extrema: list[int] = []
    for i, error in enumerate(errors):
        if extrema and (errors[extrema[-1]] > 0) == (error > 0):
            if abs(error) > abs(errors[extrema[-1]]):
                extrema[-1] = i
        else:
            extrema.append(i)
    while len(extrema) > count:
        if len(extrema) == count + 1 or (len(extrema) - count) % 2:
            ends = (0, len(extrema) - 1)
            del extrema[min(ends, key=lambda e: abs(errors[extrema[e]]))]
        else:
            pair = min(
                range(len(extrema) - 1),
                key=lambda i: max(abs(errors[extrema[i]]), abs(errors[extrema[i + 1]])),
            )
            del extrema[pair : pair + 2]
    if len(extrema) < count:
        raise ArithmeticError("the exchange lost its alternation: a finer grid is needed")
    return extrema


def _worst(
    points: list[Any], values: list[Any], weights: list[Any], powers: list[int], c: list[Any]
) -> Any:
    """Largest weighted error of the polynomial with coefficients c."""
    return max(
        abs(w * (sum(a * x**p for a, p in zip(c, powers, strict=True)) - f))
        for x, f, w in zip(points, values, weights, strict=True)
    )


def rounded(value: Any, single: bool) -> float:
    """Nearest float64, or nearest float32 as a Python float."""
    number = float(value)
    return struct.unpack("f", struct.pack("f", number))[0] if single else number


def fit(spec: Fit) -> tuple[list[float], Any]:
    """Rounded coefficients, lowest power first, and the error they leave."""
    points = grid_of(mp.mpf(spec.low), mp.mpf(spec.high), 24 * (spec.degree + 3))
    values = [spec.function(x) for x in points]
    weights = [spec.weight(x) for x in points]
    powers = list(range(spec.degree + 1))
    done: list[float] = []
    rest, _ = remez(points, values, weights, powers)
    while powers:
        done.append(rounded(rest[0], spec.single))
        power = powers.pop(0)
        values = [f - done[-1] * x**power for x, f in zip(points, values, strict=True)]
        if not powers:
            break
        rest = rest[1:]
        # Later coefficients of float64 ones are too small for their rounding to matter. Without
        # its constant term the exchange need not converge: the better fit is kept.
        if spec.single or len(done) < 4:
            again, _ = remez(points, values, weights, powers)
            rest = min(rest, again, key=lambda c: _worst(points, values, weights, powers, c))
    return done, max(abs(w * f) for w, f in zip(weights, values, strict=True))


def _erfcx(t: Any) -> Any:
    return mp.exp(t * t) * mp.erfc(t)


def _erfinv_of(w: Any) -> Any:
    """erfinv(x) / x where w = -log(1 - x^2)."""
    x = mp.sqrt(-mp.expm1(-w))
    with mp.workdps(90):
        return mp.erfinv(x) / x


def _log_ratio(z: Any) -> Any:
    """(log((1 + s) / (1 - s)) - 2 s) / s^3 with z = s^2."""
    s = mp.sqrt(z)
    return (mp.log((1 + s) / (1 - s)) - 2 * s) / s**3


def _lgamma(v: Any) -> Any:
    """lgamma(y) / ((y - 1) (y - 2)) with v = y - 1.75."""
    y = v + mp.mpf("1.75")
    return mp.loggamma(y) / ((y - 1) * (y - 2))


def _stirling(z: Any) -> Any:
    """x * (lgamma(x) - Stirling's leading terms) with z = 1 / x^2."""
    x = 1 / mp.sqrt(z)
    return x * (mp.loggamma(x) - ((x - 0.5) * mp.log(x) - x + mp.log(2 * mp.pi) / 2))


def _digamma(z: Any) -> Any:
    """(log x - 1 / (2 x) - digamma(x)) * x^2 with z = 1 / x^2."""
    x = 1 / mp.sqrt(z)
    return (mp.log(x) - 1 / (2 * x) - mp.digamma(x)) / z


def _asin(z: Any) -> Any:
    return (mp.asin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z


def _atan(z: Any) -> Any:
    return (mp.atan(mp.sqrt(z)) / mp.sqrt(z) - 1) / z


def _tanh(z: Any) -> Any:
    return (mp.tanh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z


def _over(t: Any) -> Any:
    return 4 * (1 + t) / (1 - t)


def _one(_: Any) -> Any:
    return mp.mpf(1)


R = mp.log(2) / 2 * mp.mpf("1.0005")
S2 = (3 - 2 * mp.sqrt(2)) ** 2 * mp.mpf("1.0001")
Q2 = (mp.pi / 4) ** 2 * mp.mpf("1.0001")
ROOT = mp.sqrt(2)
FITS = {
    "EXP_32": Fit("(e^r - 1 - r) / r^2", lambda r: (mp.expm1(r) - r) / r**2,
                  lambda r: r**2 / mp.exp(r), -R, R, 4, True),
    "EXP_64": Fit("(e^r - 1 - r - r^2 / 2) / r^3", lambda r: (mp.expm1(r) - r - r**2 / 2) / r**3,
                  lambda r: abs(r**3 / mp.expm1(r)), -R, R, 9),
    "EXP2_32": Fit("(2^f - 1) / f - float32(log 2)",
                   lambda f: mp.expm1(f * mp.log(2)) / f - rounded(mp.log(2), True),
                   lambda f: f / mp.mpf(2) ** f, -0.5, 0.5, 6, True),
    "EXP2_64": Fit("(2^f - 1) / f - float64(log 2)",
                   lambda f: mp.expm1(f * mp.log(2)) / f - rounded(mp.log(2), False),
                   lambda f: f / mp.mpf(2) ** f, -0.5, 0.5, 11),
    "EXP_LIGHT": Fit("(e^r - 1) / r", lambda r: mp.expm1(r) / r, lambda r: r / mp.expm1(r),
                     -R, R, 6),
    "LOG_32": Fit("(log(1 + f) - f + f^2 / 2) / f^3", lambda f: (mp.log1p(f) - f + f**2 / 2) / f**3,
                  lambda f: f**3 / mp.log1p(f), 1 / ROOT - 1, ROOT - 1, 7, True),
    "LOG_64": Fit("(log((1 + s) / (1 - s)) - 2 s) / s^3, z = s^2", _log_ratio,
                  lambda z: z, 0, S2, 6),
    "LOG_LIGHT": Fit("(log((1 + s) / (1 - s)) - 2 s) / s^3, z = s^2", _log_ratio,
                     lambda z: z, 0, S2, 4),
    "LOG_WIDE": Fit("((log((1 + s) / (1 - s)) - 2 s) / s^3 - 2/3) / z, z = s^2",
                    lambda z: (_log_ratio(z) - mp.mpf(2) / 3) / z, lambda z: z * z, 0, S2, 7),
    "SIN_64": Fit("(sin a - a) / a^3, z = a^2", lambda z: (mp.sin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z,
                  lambda z: z, 0, Q2, 5),
    "COS_64": Fit("(cos a - 1 + z / 2) / z^2, z = a^2",
                  lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2, lambda z: z * z, 0, Q2, 5),
    "SIN_LIGHT": Fit("(sin a - a) / a^3, z = a^2",
                     lambda z: (mp.sin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, lambda z: z, 0, Q2, 3),
    "COS_LIGHT": Fit("(cos a - 1 + z / 2) / z^2, z = a^2",
                     lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2, lambda z: z * z, 0, Q2, 3),
    "ASIN_64": Fit("(asin s - s) / s^3, z = s^2", _asin, lambda z: z, 0, 0.25, 12),
    "ASIN_LIGHT": Fit("(asin s - s) / s^3, z = s^2", _asin, lambda z: z, 0, 0.25, 6),
    "ATAN_64": Fit("(atan t - t) / t^3, z = t^2", _atan, lambda z: z, 0, 0.1915, 11),
    "ATAN_LIGHT": Fit("(atan t - t) / t^3, z = t^2", _atan, lambda z: z, 0, 1, 11),
    "SINH_64": Fit("(sinh x - x) / x^3, z = x^2",
                   lambda z: (mp.sinh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, lambda z: z, 0, 1, 6),
    "TANH_32": Fit("(tanh x - x) / x^3, z = x^2", _tanh, lambda z: z / (1 + z * _tanh(z)),
                   mp.mpf("1e-9"), 1, 6, True),
    "ERF_32": Fit("erf(x) / x - 1, z = x^2", lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1,
                  _one, 0, 0.8611, 6, True),
    "ERF_TAIL_32": Fit("log(erfc t) / t + 1", lambda t: mp.log(mp.erfc(t)) / t + 1,
                       lambda t: t * mp.erfc(t), 0.9277, 3.93, 6, True),
    "ERF_64": Fit("erf(x) / x - 1, z = x^2", lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1,
                  _one, 0, 0.6625, 12),
    "ERFC_64": Fit("erfcx(t) (1 + 2 t) - 1, y = (t - 4) / (t + 4)",
                   lambda y: _erfcx(_over(y)) * (1 + 2 * _over(y)) - 1,
                   lambda y: 1 / (_erfcx(_over(y)) * (1 + 2 * _over(y))),
                   mp.mpf("-0.663"), 0.75, 21),
    "ERFC_LIGHT": Fit("erfcx(t) (1 + 2 t), y = (t - 4) / (t + 4)",
                      lambda y: _erfcx(_over(y)) * (1 + 2 * _over(y)),
                      lambda y: 1 / (_erfcx(_over(y)) * (1 + 2 * _over(y))), -1, 0.5, 11),
    "LGAMMA_64": Fit("lgamma(y) / ((y - 1) (y - 2)), v = y - 1.75", _lgamma,
                     lambda v: 1 / _lgamma(v), -0.75, 0.75, 26),
    "STIRLING_64": Fit("Stirling's series times x, z = 1 / x^2", _stirling, _one,
                       mp.mpf("1e-9"), mp.mpf(1) / 64, 6),
    "DIGAMMA_64": Fit("digamma's series times x^2, z = 1 / x^2", _digamma, _one,
                      mp.mpf("1e-9"), mp.mpf(1) / 64, 6),
    "ERFINV_LIGHT": Fit("erfinv(x) / x, v = w - 2.5, w = -log(1 - x^2)",
                        lambda v: _erfinv_of(v + 2.5), lambda v: 1 / _erfinv_of(v + 2.5),
                        mp.mpf("-2.5") + mp.mpf("1e-12"), 2.5, 11),
    "ERFINV_TAIL_LIGHT": Fit("erfinv(x) / x, v = sqrt(w) - 3",
                             lambda v: _erfinv_of((v + 3) ** 2),
                             lambda v: 1 / _erfinv_of((v + 3) ** 2), -0.77, 1.15, 10),
    "ERFINV_TAIL_WIDE": Fit("erfinv(x) / x, v = sqrt(w) - 4",
                            lambda v: _erfinv_of((v + 4) ** 2),
                            lambda v: 1 / _erfinv_of((v + 4) ** 2), -1.77, 2.1, 10),
}  # fmt: skip

HEADER = '''"""Minimax polynomials of mathlib, lowest power first. Written by a script; do not edit.

Keeps     float32 polynomials (names with _32) hold float32 values.
Touches   nothing.
Not here  how they were found: tests/recorded/derive_polynomials.py (Remez exchange, mpmath)."""

from __future__ import annotations

from typing import Final

'''


def main(names: list[str]) -> None:
    """Fits what is named, or everything, and writes the module anew when it is everything."""
    text = HEADER
    for name in names or FITS:
        spec = FITS[name]
        coefficients, error = fit(spec)
        bits = mp.nstr(mp.log(error, 2), 4)
        print(name, bits, flush=True)
        text += f"# {spec.says} on [{mp.nstr(spec.low, 5)}, {mp.nstr(spec.high, 5)}];"
        text += f" error 2^{bits}\n{name}: Final = (\n"
        text += "".join(f"    {value!r},\n" for value in coefficients) + ")\n"
    if not names:
        TARGET.write_text(text)


if __name__ == "__main__":
    main(sys.argv[1:])
