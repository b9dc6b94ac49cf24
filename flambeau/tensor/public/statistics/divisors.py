"""Greatest common divisors and least common multiples.

Keeps     Euclid's steps on all elements at once, as many as the element that needs most.
Touches   functions.
Not here  integer division (ops.elementwise.arithmetic)."""

from __future__ import annotations

from typing import Any

from flambeau.base import promotion
from flambeau.ops.define import not_implemented
from flambeau.tensor import functions as t
from flambeau.tensor.arguments import refuses
from flambeau.tensor.inplace import stored
from flambeau.tensor.public.queries import broadcast_tensors
from flambeau.tensor.tensor import Tensor


def _integers(kernel: str, input: Tensor, other: Tensor) -> tuple[Any, Any]:
    common = promotion.promote_types(input.dtype, other.dtype)
    if common.is_floating_point or common.is_complex or common.name == "bool":
        raise not_implemented(kernel, common)
    one, two = broadcast_tensors(input.to(common), other.to(common))
    return one, two


def _divisor(one: Any, two: Any) -> Any:
    while bool(t.ne(two, 0).any()):
        for _ in range(4):
            ends = t.eq(two, 0)
            rest = t.fmod(one, t.masked_fill(two, ends, 1))
            one, two = t.where(ends, one, two), t.where(ends, two, rest)
    return t.abs(one)


@refuses("gcd")
def gcd(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor:
    """The greatest number that divides both; 0 of two zeros.

    >>> gcd(t.arange(5), t.arange(5) * 0 + 6)
    tensor([6, 1, 2, 3, 2])
    """
    found = _divisor(*_integers("gcd_cpu", input, other))
    return stored(found, out)


@refuses("lcm")
def lcm(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor:
    """The least number that both divide; 0 where one is 0."""
    one, two = _integers("lcm_cpu", input, other)
    divisor = _divisor(one, two)
    whole = t.div(one, t.masked_fill(divisor, t.eq(divisor, 0), 1), rounding_mode="trunc")
    found = t.abs(whole * two)
    return stored(found, out)


def gcd_(self: Tensor, other: Tensor) -> Tensor:
    """gcd in place."""
    return self.copy_(gcd(self, other))


def lcm_(self: Tensor, other: Tensor) -> Tensor:
    """lcm in place."""
    return self.copy_(lcm(self, other))
