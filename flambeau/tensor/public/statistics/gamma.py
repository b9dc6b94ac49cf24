"""polygamma and the multivariate gamma function, of lgamma, digamma and zeta.

Keeps     no kernel of their own; gradients follow from the operators'.
Touches   functions.
Not here  lgamma and digamma (ops.elementwise.trigonometric), zeta (ops.special.zeta)."""

from __future__ import annotations

import math
from typing import Any

from flambeau.base import dtypes, promotion
from flambeau.gradients.recording.drawn import shows
from flambeau.ops.define import type_name
from flambeau.tensor import functions as t
from flambeau.tensor.arguments import named_type
from flambeau.tensor.inplace import check_castable, stored
from flambeau.tensor.tensor import Tensor


@shows("PolygammaBackward0")
def polygamma(n: Any, input: Any, *, out: Any = None) -> Tensor:
    """The n-th derivative of digamma.

    >>> polygamma(2, t.ones(1))
    tensor([-2.4041])
    """
    if not isinstance(n, int):
        raise TypeError(f"polygamma(): argument 'n' (position 1) must be int, not {named_type(n)}")
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    if n == 0:
        found = t.digamma(input)
    else:
        if not input.is_floating_point():
            input = input.float()
        factor = math.factorial(n) * (1.0 if n % 2 else -1.0)
        wide = input.to(input.dtype.compute)  # zeta itself refuses halves
        found = factor * t.special_zeta(float(n + 1), wide).to(input.dtype)
    return stored(found, out, None)


def polygamma_of(self: Tensor, n: int) -> Tensor:
    """polygamma as a method."""
    return polygamma(n, self)


def _in_place(self: Tensor, found: Any) -> Tensor:
    check_castable(found._layout, self._layout)
    return self.copy_(found)


def polygamma_(self: Tensor, n: int) -> Tensor:
    """polygamma in place."""
    return _in_place(self, polygamma(n, t.clone(self)))


def mvlgamma(input: Tensor, p: int, *, out: Any = None) -> Tensor:
    """log of the multivariate gamma function of p dims."""
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    if input.dtype is dtypes.bool_:
        raise RuntimeError("The input tensor may not be a boolean tensor.")
    if not input.is_floating_point():
        input = input.float()
    steps = t.arange(0, p, dtype=input.dtype) / 2
    total = t.lgamma(input.unsqueeze(-1) - steps).sum(-1)
    found = total + p * (p - 1) / 4 * math.log(math.pi)
    return stored(found, out, None)


def mvlgamma_(self: Tensor, p: int) -> Tensor:
    """mvlgamma in place."""
    if not self.is_floating_point():
        element = promotion.default_dtype()
        raise RuntimeError(
            f"mvlgamma: result type {type_name(self._layout)} can't be cast to the desired output "
            f"type {type_name(element)}"
        )
    return _in_place(self, mvlgamma(t.clone(self), p))


multigammaln = mvlgamma
