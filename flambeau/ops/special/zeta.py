"""Hurwitz's zeta function, of which polygamma functions are made.

Keeps     ten terms, then Euler and Maclaurin's correction.
Touches   ops.define.
Not here  digamma and trigamma (ops.elementwise.trigonometric), polygamma (tensor.public.members).
Source    Abramowitz and Stegun, 23.2.5 and 23.1.30."""

from __future__ import annotations

from typing import Any, Final

from flambeau.ops.define import INT_TO_FLOAT, Elementwise, Operand, operator

_N_TERMS: Final = 10
# B(2n) / (2n)!
_CORRECTIONS: Final = (
    1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000,
    1 / 74724249600, -3617 / 10670622842880000,
)  # fmt: skip


@operator("special_zeta", aliases=("special.zeta",), function=False, inplace=False)
class Zeta(Elementwise):
    """Sum of (other + n) ** -input over all n from 0; NaN for input < 1."""

    promote = INT_TO_FLOAT
    refuses_halves = True
    domain = {"input": (1.5, 4.0), "other": (0.5, 3.0)}

    def formula(self, k: Any, input: Operand, other: Operand) -> Any:
        element = k.dtype_of(other if isinstance(input, (int, float)) else input)
        if isinstance(input, (int, float)):
            input = k.constant(input, element)
        if isinstance(other, (int, float)):
            other = k.constant(other, element)
        power = k.neg(input)
        total, place = k.constant(0.0, element), other
        for _ in range(_N_TERMS):
            total = k.add(total, k.pow(place, power))
            place = k.add(place, 1.0)
        last = k.pow(place, power)
        total = k.add(total, k.div(k.mul(last, place), k.sub(input, 1.0)))
        total = k.fma(last, 0.5, total)
        # last * input / place, then two more factors each time.
        factor = k.div(k.mul(last, input), place)
        square = k.div(1.0, k.mul(place, place))
        for n, correction in enumerate(_CORRECTIONS):
            total = k.fma(factor, correction, total)
            grown = k.mul(k.add(input, 2.0 * n + 1), k.add(input, 2.0 * n + 2))
            factor = k.mul(k.mul(factor, grown), square)
        total = k.select(k.eq(input, 1), float("inf"), total)
        return k.select(k.lt(input, 1), float("nan"), total)

    def vjp(self, t: Any, grad: Any, input: Any, other: Any, needs: Any) -> Any:
        if needs[0]:
            raise NotImplementedError(
                "the derivative for 'input' of special_zeta is not implemented"
            )
        return None, grad * -input * t.special_zeta(input + 1, other)

    def samples(self, s: Any) -> list[Any]:
        return [s(s.constant(3, 4, low=1.5, high=4.0), s.real(3, 4, low=0.5, high=3.0))]
