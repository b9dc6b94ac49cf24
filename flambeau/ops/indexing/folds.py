"""Writing by index where what is there and what comes are folded: products and extremes.

Keeps     values for one place are folded in the order of the index, whatever the threads; NaN wins.
Touches   ops.indexing.scatters.
Not here  sums and plain writes (scatters.py), means (tensor.public.writing.scattering)."""

from __future__ import annotations

from typing import Any, Final

from flambeau.base import dtypes
from flambeau.base.dtypes import dtype
from flambeau.base.layout import Layout
from flambeau.ops.define import Inferred, not_implemented, operator
from flambeau.ops.indexing.scatters import Scattering, padded_as

_WORDS: Final = {"prod": "mul", "amax": "max", "amin": "min"}


def _identity(reduce: str, element: dtype) -> Any:
    """What changes nothing when it is folded with."""
    if reduce == "prod":
        return 1
    if element.is_floating_point:
        return float("-inf") if reduce == "amax" else float("inf")
    if element is dtypes.bool_:
        return reduce == "amin"
    bits = 8 * element.itemsize
    if reduce == "amax":
        return -(1 << (bits - 1)) if element.is_signed else 0
    return (1 << (bits - 1)) - 1 if element.is_signed else (1 << bits) - 1


@operator("scatter_fold", function=False)
class ScatterFold(Scattering):
    """input with products or extremes of its elements and those of src, at index along dim.

    include_self   whether input's own elements take part at places that index names
    """

    def infer(
        self, input: Layout, dim: int, index: Layout, src: Layout, reduce: str, include_self: bool
    ) -> Inferred:
        if input.dtype.is_complex:
            raise not_implemented(f"scatter_gather_tensor_cpu_reduce_{reduce}", input.dtype)
        found = self.checked(input, dim, index, src)
        return Inferred(
            found.outputs,
            {**found.attributes, "reduce": reduce, "include_self": include_self},
        )

    def lower(
        self, b: Any, input: Any, dim: int, index: Any, src: Any, reduce: str, include_self: bool
    ) -> Any:
        result = b.updated(input)
        if 0 in index.shape:
            return result
        target = result if input.shape else b.unsqueeze(result, 0)
        if not index.shape:
            index, src = b.unsqueeze(index, 0), b.unsqueeze(src, 0)
        index = b.convert(index, dtypes.int64)
        for place, size in enumerate(index.shape):
            src = b.narrow(src, place, 0, size)
            if place != dim:
                target = b.narrow(target, place, 0, size)
        if not include_self:
            start = b.full(tuple(index.shape), _identity(reduce, input.dtype), input.dtype)
            start = b.map(lambda k, x: x, start, dtype=input.dtype)
            b.kernel("scatter.put", (index, start), (target,), dim=dim)
        b.kernel("scatter.fold", (index, src), (target,), dim=dim, word=_WORDS[reduce])
        return result

    def vjp(
        self, t: Any, grad: Any, input: Any, dim: int, index: Any, src: Any, src_layout: Any,
        out: Any, reduce: str, include_self: bool, needs: Any,
    ) -> Any:  # fmt: skip
        part = src
        for place, size in enumerate(index.shape):
            part = t.narrow(part, place, 0, size)
        rule = _of_product if reduce == "prod" else _of_extreme
        into_input, into_part = rule(t, grad, input, dim, index, part, out, include_self)
        if not include_self:
            into_input = into_input.scatter(dim, index, 0)
        into_src = padded_as(t, into_part, src_layout) if needs[2] else None
        return into_input if needs[0] else None, None, into_src

    def samples(self, s: Any) -> list[Any]:
        index = s.index(3, 4, below=5)
        return [
            s(s.real(5, 4), 0, index, s.real(3, 4), reduce, include_self)
            for reduce in ("prod", "amax", "amin")
            for include_self in (True, False)
        ]


def _of_product(
    t: Any, grad: Any, input: Any, dim: int, index: Any, part: Any, out: Any, include_self: bool
) -> Any:
    """Each factor's cotangent is the product of the others: where one is zero, that without it."""

    def without_zeros(value: Any) -> Any:
        return t.masked_fill(value, value == 0, 1)

    def count(value: Any) -> Any:
        return (value == 0).to(grad.dtype)

    own_zeros = count(input) if include_self else t.zeros_like(input)
    zeros = own_zeros.scatter_add(dim, index, count(part))
    rest = t.scatter_fold(
        without_zeros(input), dim, index, without_zeros(part), "prod", include_self
    )

    def cotangent(value: Any, grad: Any, rest: Any, zeros: Any) -> Any:
        others = zeros - count(value)
        return t.where(others > 0, 0, grad * rest / without_zeros(value))

    into_part = cotangent(
        part, grad.gather(dim, index), rest.gather(dim, index), zeros.gather(dim, index)
    )
    return cotangent(input, grad, rest, zeros), into_part


def _of_extreme(
    t: Any, grad: Any, input: Any, dim: int, index: Any, part: Any, out: Any, include_self: bool
) -> Any:
    """The cotangent is shared evenly among all that equal the extreme."""
    own = (input == out).to(grad.dtype)
    found = (part == out.gather(dim, index)).to(grad.dtype)
    start = own if include_self else own.scatter(dim, index, 0)
    shares = start.scatter_add(dim, index, found)
    share = grad / t.masked_fill(shares, shares == 0, 1)
    return share * own, share.gather(dim, index) * found
