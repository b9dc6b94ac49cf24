"""polygamma and the multivariate gamma function, of lgamma, digamma and zeta.

Keeps     no kernel of their own; gradients follow from the operators'.
Touches   functions.
Not here  lgamma and digamma (ops.elementwise.trigonometric), zeta (ops.special.zeta)."""

from __future__ import annotations

import math
from typing import Any

from flambeau.gradients.recording.drawn import shows
from flambeau.tensor import functions as t
from flambeau.tensor.inplace import stored
from flambeau.tensor.tensor import Tensor


@shows("PolygammaBackward0")
def polygamma(n: Any, input: Any, *, out: Any = None) -> Tensor:
    """The n-th derivative of digamma.

    >>> polygamma(2, t.ones(1))
    tensor([-2.4041])
    """
    if isinstance(n, Tensor):  # as a method: input.polygamma(n)
        n, input = input, n
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
    return stored(found, out)


def polygamma_(self: Tensor, n: int) -> Tensor:
    """polygamma in place."""
    return self.copy_(polygamma(n, self))


def mvlgamma(input: Tensor, p: int, *, out: Any = None) -> Tensor:
    """log of the multivariate gamma function of p dims."""
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    if not input.is_floating_point():
        input = input.float()
    steps = t.arange(0, p, dtype=input.dtype) / 2
    total = t.lgamma(input.unsqueeze(-1) - steps).sum(-1)
    return stored(total + p * (p - 1) / 4 * math.log(math.pi), out)


def mvlgamma_(self: Tensor, p: int) -> Tensor:
    """mvlgamma in place."""
    return self.copy_(mvlgamma(self, p))


multigammaln = mvlgamma
