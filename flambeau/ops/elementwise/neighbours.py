"""The next representable number: nextafter.

Keeps     results are neighbours in the result's own dtype, narrow ones included, whatever the
          dtype computed in.
Touches   ops.define, base.dtypes.
Not here  rounding to integers (rounding.py)."""

from __future__ import annotations

from typing import Any, Final

from flambeau.base import dtypes
from flambeau.base.dtypes import dtype
from flambeau.ops.define import Elementwise, Tensor, operator

# dtype -> (integer of the computed width, ulps of the computed dtype in one of this dtype,
#           smallest normal number, smallest number, largest number)
_STEPS: Final[dict[dtype, tuple[dtype, int, float, float, float]]] = {
    dtypes.float16: (dtypes.int32, 1 << 13, 2.0**-14, 2.0**-24, 65504.0),
    dtypes.bfloat16: (dtypes.int32, 1 << 16, 2.0**-126, 2.0**-133, 2.0**128 - 2.0**120),
    dtypes.float32: (dtypes.int32, 1, 2.0**-126, 2.0**-149, 2.0**128 - 2.0**104),
    dtypes.float64: (dtypes.int64, 1, 2.0**-1022, 2.0**-1074, 1.7976931348623157e308),
}


@operator("nextafter")
class NextAfter(Elementwise):
    """The number after input on the way to other; other itself where they are equal."""

    floating_kernel = "nextafter_cpu"

    def formula(self, k: Any, input: Tensor, other: Tensor) -> Any:
        raise NotImplementedError  # lower knows the dtype that decides

    def lower(self, b: Any, input: Any, other: Any, *, common: dtype) -> Any:
        def formula(k: Any, one: Any, two: Any) -> Any:
            return _neighbour(k, one, two, common)

        return b.map(formula, input, other, compute=common.compute, dtype=common)

    def vjp(self, t: Any, grad: Any, input: Any, other: Any, needs: Any) -> Any:
        # A step counts as none, as in torch; equal numbers give other, whose gradient torch drops.
        moved = t.ne(input, other)
        return t.where(moved, grad, 0) if needs[0] else None, None

    def samples(self, s: Any) -> list[Any]:
        return [s(s.constant(3, 4, low=-2.0), s.constant(3, 4, low=-2.0))]


def _neighbour(k: Any, one: Any, two: Any, element: dtype) -> Any:
    integer, ulp, normal, smallest, largest = _STEPS[element]
    size = k.abs(one)
    grows = k.eq(k.gt(two, one), k.gt(one, 0))  # away from zero
    bits = k.bitcast(size, integer)
    outward = k.bitcast(k.add(bits, ulp), k.dtype_of(one))
    inward = k.bitcast(k.sub(bits, ulp), k.dtype_of(one))
    if ulp != 1:  # numbers below `normal` lie evenly spaced; the computed dtype's do not
        even = k.lt(size, normal)
        outward = k.select(even, k.add(size, smallest), outward)
        even = k.le(size, normal)
        inward = k.select(even, k.sub(size, smallest), inward)
        inward = k.select(k.gt(size, largest), largest, inward)
    moved = k.copysign(k.select(grows, outward, inward), one)
    moved = k.select(k.eq(one, 0), k.copysign(k.constant(smallest, k.dtype_of(one)), two), moved)
    moved = k.select(k.eq(one, two), two, moved)
    return k.select(k.or_(k.isnan(one), k.isnan(two)), k.add(one, two), moved)
