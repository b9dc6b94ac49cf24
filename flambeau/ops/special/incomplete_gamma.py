"""The incomplete gamma functions: the lower one, igamma, and the upper one, igammac.

Keeps     computed in float64 whatever the dtype, by four formulas side by side: a power series
          below the shape, a continued fraction above it, a series for small shapes, and a uniform
          expansion where a large shape and the argument are close. Each is long enough to be exact
          to 1e-11 wherever it is used, so that nothing is repeated until it converges.
Touches   ops.define.
Not here  the gamma function itself (elementwise/trigonometric.py)
Source    Abramowitz and Stegun, 6.5.29 and 6.5.31; N. M. Temme, The asymptotic expansion of the
          incomplete gamma functions, SIAM J. Math. Anal. 10 (1979)."""

from __future__ import annotations

import math
from typing import Any, Final

from flambeau.base import dtypes
from flambeau.ops.define import Elementwise, Tensor, operator

_N_SERIES: Final = 110
_N_FRACTION: Final = 110
_N_SMALL: Final = 28
_LARGE_SHAPE: Final = 150.0
_CLOSE: Final = 0.3
# Coefficients of Temme's expansion: inverse powers of the shape down, powers of eta across.
_TEMME: Final = (
    (-0.3333333333333333, 0.08333333333333333, -0.014814814814814815, 0.0011574074074074073,
     0.0003527336860670194, -0.0001787551440329218, 3.919263178522438e-05,
     -2.185448510679992e-06, -1.85406221071516e-06, 8.296711340953087e-07,
     -1.7665952736826078e-07, 6.707853543401498e-09, 1.0261809784240309e-08,
     -4.382036018453353e-09, 9.14769958223679e-10, -2.5514193994946248e-11,
     -5.830772132550426e-11, 2.4361948020667415e-11, -5.0276692801141755e-12,
     1.1004392031956135e-13),
    (-0.001851851851851852, -0.003472222222222222, 0.0026455026455026454, -0.0009902263374485596,
     0.00020576131687242798, -4.018775720164609e-07, -1.8098550334489977e-05,
     7.64916091608111e-06, -1.6120900894563446e-06, 4.647127802807434e-09, 1.378633446915721e-07,
     -5.752545603517705e-08, 1.1951628599778148e-08, -1.7543241719747647e-11,
     -1.0091543710600413e-09, 4.162792991842583e-10, -8.56390702649298e-11, 6.067215101604758e-14),
    (0.004133597883597883, -0.0026813271604938273, 0.0007716049382716049, 2.0093878600823047e-06,
     -0.0001073665322636516, 5.2923448829120125e-05, -1.2760635188618728e-05,
     3.423578734096138e-08, 1.3721957309062934e-06, -6.298992138380055e-07,
     1.4280614206064242e-07, -2.0477098421990866e-10, -1.409252991086752e-08,
     6.228974084922022e-09, -1.3670488396617114e-09, 9.428356159014678e-13),
    (0.0006494341563786008, 0.00022947209362139917, -0.0004691894943952557,
     0.00026772063206283885, -7.561801671883977e-05, -2.396505113867297e-07,
     1.1082654115347302e-05, -5.6749528269915965e-06, 1.4230900732435883e-06,
     -2.7861080291528143e-11, -1.6958404091930278e-07, 8.099464905388083e-08,
     -1.9111168485973655e-08, 2.3928620439808118e-12),
    (-0.0008618882909167117, 0.0007840392217200666, -0.0002990724803031902,
     -1.4638452578843418e-06, 6.641498215465122e-05, -3.968365047179435e-05,
     1.1375726970678419e-05, 2.507497226237533e-10, -1.6954149536558305e-06,
     8.907507532205309e-07, -2.292934834000805e-07, 2.956794137544049e-11),
    (-0.00033679855336635813, -6.972813758365857e-05, 0.0002772753244959392,
     -0.00019932570516188847, 6.797780477937208e-05, 1.419062920643967e-07,
     -1.3594048189768693e-05, 8.018470256334202e-06, -2.291481176508095e-06,
     -3.252473551298454e-10),
    (0.0005313079364639922, -0.0005921664373536939, 0.0002708782096718045, 7.902353232660328e-07,
     -8.153969367561969e-05, 5.61168275310625e-05, -1.8329116582843375e-05,
     -3.0796134506033047e-09),
    (0.00034436760689237765, 5.171790908260592e-05, -0.00033493161081142234,
     0.0002812695154763237, -0.00010976582244684731, -1.2741009095484485e-07),
)  # fmt: skip
_STIRLING: Final = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360)
# Powers of x in lgamma(1 + x), from the first.
_LGAMMA_NEAR_1: Final = (
    -0.5772156649015329, 0.8224670334241132, -0.40068563438653143, 0.27058080842778454,
    -0.20738555102867398, 0.1695571769974082, -0.1440498967688461, 0.12550966952474304,
    -0.11133426586956469, 0.1000994575127818, -0.09095401714582904, 0.083353840546109,
    -0.0769325164113522, 0.07143294629536133, -0.06666870588242046, 0.06250095514121304,
)  # fmt: skip


def _horner(k: Any, x: Any, coefficients: tuple[float, ...]) -> Any:
    """Lowest power first."""
    total = k.constant(coefficients[-1], k.dtype_of(x))
    for coefficient in reversed(coefficients[:-1]):
        total = k.fma(total, x, coefficient)
    return total


def _log_term(k: Any, a: Any, x: Any, distance: Any) -> Any:
    """distance - log(1 + distance) for distance = (x - a) / a."""
    powers = tuple((-1.0) ** n / n for n in range(2, 31))
    near = k.mul(k.mul(distance, distance), _horner(k, distance, powers))
    far = k.sub(distance, k.log(k.div(x, a)))
    return k.select(k.lt(k.abs(distance), 0.2), near, far)


def _density(k: Any, a: Any, x: Any, term: Any) -> tuple[Any, Any]:
    """x^a e^-x / Gamma(a + 1), and e^(-a term) / sqrt(2 pi a)."""
    inverse = k.div(1.0, a)
    series = k.mul(inverse, _horner(k, k.mul(inverse, inverse), _STIRLING))
    root = k.sqrt(k.mul(a, 2 * math.pi))
    gauss = k.div(k.exp(k.neg(k.mul(a, term))), root)
    large = k.mul(gauss, k.exp(k.neg(series)))
    exponent = k.sub(k.sub(k.mul(a, k.log(x)), x), k.lgamma(k.add(a, 1.0)))
    return k.select(k.ge(a, 10.0), large, k.exp(exponent)), gauss


def _series(k: Any, a: Any, x: Any) -> Any:
    """1 + x / (a + 1) (1 + x / (a + 2) (1 + ...))."""
    total = k.constant(1.0, dtypes.float64)
    for n in range(_N_SERIES, 0, -1):
        total = k.fma(total, k.div(x, k.add(a, float(n))), 1.0)
    return total


def _fraction(k: Any, a: Any, x: Any) -> Any:
    """x + 1 - a - 1 (1 - a) / (x + 3 - a - 2 (2 - a) / (...))."""
    start = k.sub(x, a)
    total = k.add(start, 2.0 * _N_FRACTION + 1)
    for n in range(_N_FRACTION, 0, -1):
        step = k.div(k.mul(k.sub(a, float(n)), float(n)), total)
        total = k.add(k.add(start, 2.0 * n - 1), step)
    return total


def _upper_of_small(k: Any, a: Any, x: Any) -> Any:
    """The upper function for a < 1.5, x < 1.1, exact where it is small itself."""
    total = k.constant(0.0, dtypes.float64)
    for n in range(_N_SMALL, 0, -1):
        term = k.add(total, k.div(1.0, k.add(a, float(n))))
        total = k.mul(term, k.mul(x, -1.0 / n))
    near_1 = k.mul(a, _horner(k, a, _LGAMMA_NEAR_1))
    of_1_more = k.select(k.lt(a, 0.1), near_1, k.lgamma(k.add(a, 1.0)))
    exponent = k.sub(k.mul(a, k.log(x)), of_1_more)
    # 1 - x^a / Gamma(1 + a), less x^a / Gamma(a) times the sum.
    return k.sub(k.neg(k.expm1(exponent)), k.mul(k.mul(k.exp(exponent), a), total))


def _uniform(k: Any, a: Any, distance: Any, term: Any, gauss: Any) -> tuple[Any, Any]:
    """(lower, upper) where both are of the order of the error function."""
    eta = k.copysign(k.sqrt(k.mul(term, 2.0)), distance)
    total = k.constant(0.0, dtypes.float64)
    for coefficients in reversed(_TEMME):
        total = k.add(k.div(total, a), _horner(k, eta, coefficients))
    rest = k.mul(gauss, total)
    argument = k.mul(eta, k.sqrt(k.mul(a, 0.5)))
    lower = k.sub(k.mul(k.erfc(k.neg(argument)), 0.5), rest)
    return lower, k.add(k.mul(k.erfc(argument), 0.5), rest)


def incomplete_gamma(k: Any, a: Any, x: Any) -> tuple[Any, Any]:
    """(lower, upper), which sum to 1, in float64."""
    a, x = (k.convert(each, dtypes.float64) for each in (a, x))
    distance = k.div(k.sub(x, a), a)
    term = _log_term(k, a, x, distance)
    density, gauss = _density(k, a, x, term)
    lower = k.mul(density, _series(k, a, x))
    upper = k.div(k.mul(density, a), _fraction(k, a, x))
    is_below = k.lt(x, k.add(a, 1.0))
    is_small = k.and_(k.and_(is_below, k.le(x, 1.1)), k.lt(a, 1.5))
    is_close = k.and_(k.gt(a, _LARGE_SHAPE), k.lt(k.abs(distance), _CLOSE))
    lower_close, upper_close = _uniform(k, a, distance, term, gauss)
    of_small = k.select(is_small, _upper_of_small(k, a, x), k.sub(1.0, lower))
    found = (
        k.select(is_close, lower_close, k.select(is_below, lower, k.sub(1.0, upper))),
        k.select(is_close, upper_close, k.select(is_below, of_small, upper)),
    )
    return _at_ends(k, a, x, found[0], 0.0), _at_ends(k, a, x, found[1], 1.0)


def _at_ends(k: Any, a: Any, x: Any, found: Any, at_zero: float) -> Any:
    """The values at 0 and infinity; `at_zero` is the one for x = 0."""
    infinite = float("inf")
    found = k.select(k.or_(k.eq(x, 0), k.eq(a, infinite)), at_zero, found)
    found = k.select(k.or_(k.eq(a, 0), k.eq(x, infinite)), 1.0 - at_zero, found)
    both = k.or_(
        k.and_(k.eq(x, 0), k.eq(a, 0)), k.and_(k.eq(x, infinite), k.eq(a, infinite))
    )  # fmt: skip
    outside = k.or_(k.or_(k.lt(x, 0), k.lt(a, 0)), k.or_(k.isnan(x), k.isnan(a)))
    return k.select(k.or_(both, outside), float("nan"), found)


class _IncompleteGamma(Elementwise):
    """One of the two; torch differentiates them with respect to the argument alone."""

    domain = {"input": (0.5, 3.0), "other": (0.5, 3.0)}

    def slope(self, t: Any, grad: Any, input: Any, other: Any, wants_shape: bool) -> Any:
        """grad times the density of the gamma distribution at `other`."""
        if wants_shape:
            raise NotImplementedError(
                f"the derivative for '{self.name}: input' is not implemented."
            )
        return grad * ((input - 1) * other.log() - other - t.lgamma(input)).exp()

    def samples(self, s: Any) -> list[Any]:
        return [s(s.constant(3, 4, low=0.5, high=3.0), s.real(3, 4, low=0.5, high=3.0))]


@operator("igamma", aliases=("special.gammainc",))
class LowerIncompleteGamma(_IncompleteGamma):
    """Regularised lower incomplete gamma function of shape input, at other."""

    floating_kernel = "igamma_cpu"

    def formula(self, k: Any, input: Tensor, other: Tensor) -> Any:
        return k.convert(incomplete_gamma(k, input, other)[0], k.dtype_of(other))

    def vjp(self, t: Any, grad: Any, input: Any, other: Any, needs: Any) -> Any:
        return None, self.slope(t, grad, input, other, needs[0])


@operator("igammac", aliases=("special.gammaincc",))
class UpperIncompleteGamma(_IncompleteGamma):
    """Regularised upper incomplete gamma function of shape input, at other."""

    floating_kernel = "igammac_cpu"

    def formula(self, k: Any, input: Tensor, other: Tensor) -> Any:
        return k.convert(incomplete_gamma(k, input, other)[1], k.dtype_of(other))

    def vjp(self, t: Any, grad: Any, input: Any, other: Any, needs: Any) -> Any:
        return None, -self.slope(t, grad, input, other, needs[0])
