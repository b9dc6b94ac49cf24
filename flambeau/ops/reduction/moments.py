"""Variance, standard deviation and logsumexp over dims.

Keeps     two corrected passes: d = x - mean, var = (sum d^2 - (sum d)^2 / n) / (n - correction), in
          float32 at least, squares in float64; exact to the last digits where |mean| dwarfs the
          spread.
Touches   ops.define, reduction.sums.
Not here  normalisation layers (rows/normalization.py), which use `centred` too."""

from __future__ import annotations

from typing import Any, Final

from flambeau.base import dtypes, promotion, shapes
from flambeau.base.errors import helped
from flambeau.base.layout import Layout, contiguous
from flambeau.ops.define import Inferred, Operator, operator
from flambeau.ops.reduction.extremes import reduce_extreme
from flambeau.ops.reduction.sums import kept, n_reduced, part_by_part

# Squares of these may be larger or smaller than they hold.
_WIDE: Final = {dtypes.float32: dtypes.float64, dtypes.complex64: dtypes.complex128}


def centred(b: Any, input: Any, dim: Any) -> tuple[Any, Any, Any]:
    """(d, rest, mean): d = x - mean with what rounding left of its mean in `rest`, so that
    d - rest is x minus its true mean. All in the compute dtype, reduced dims kept as 1."""
    elements = b.convert(input, input.dtype.compute)
    count = b.size_number(n_reduced(input.shape, dim), elements.dtype)
    mean = b.map(part_by_part, b.reduce("sum", elements, dim, True), count)
    away = b.map(lambda k, x, m: k.sub(x, m), elements, mean)
    rest = b.map(part_by_part, b.reduce("sum", away, dim, True), count)
    return away, rest, mean


def squares_about_mean(b: Any, away: Any, rest: Any, dim: Any) -> Any:
    """sum d^2 - (sum d)^2 / n, reduced dims kept as 1."""
    squares = b.reduce("sum", b.map(squared, away), dim, True)
    count = b.size_number(n_reduced(away.shape, dim), squares.dtype)
    rests = b.map(squared, rest) if rest.dtype.is_complex else rest

    def corrected(k: Any, total: Any, r: Any, n: Any) -> Any:
        return k.sub(total, k.mul(r if rests is not rest else k.mul(r, r), n))

    return b.map(corrected, squares, rests, count)


def squared(k: Any, value: Any) -> Any:
    """|value|^2."""
    if not k.dtype_of(value).is_complex:
        return k.mul(value, value)
    real, imag = k.real(value), k.imag(value)
    return k.add(k.mul(real, real), k.mul(imag, imag))


def drop_dims(b: Any, value: Any, dim: tuple[int, ...], keepdim: bool) -> Any:
    """The value without the reduced dims that were kept as 1."""
    return value if keepdim else b.reshape(value, shapes.reduced_shape(value.shape, dim, False))


class Moment(Operator):
    """var, std and their pairs with the mean."""

    out_refusal = None

    root = False

    def infer(
        self,
        input: Layout,
        dim: Any = None,
        unbiased: bool | None = None,
        keepdim: bool = False,
        *,
        correction: float | None = None,
    ) -> Inferred:
        if isinstance(dim, bool):  # the form var(input, unbiased)
            dim, unbiased = None, dim
        if input.dtype.category < 2:
            name = self.name if self.returns else "std and var"
            raise RuntimeError(f"{name} only support floating point and complex dtypes")
        if correction is not None and unbiased is not None:
            raise TypeError(
                helped(
                    f"{self.name}() received an invalid combination of arguments - got "
                    f"(correction={type(correction).__name__}, unbiased={type(unbiased).__name__})",
                    expected="one of them: both say what the divisor lacks of the count",
                    fix=f"{self.name}(..., correction={int(unbiased)}) is unbiased={unbiased}",
                )
            )
        if correction is None:
            correction = 0 if unbiased is False else 1
        dims = shapes.reduced_dims(input, dim)
        shape = shapes.reduced_shape(input.shape, dims, keepdim)
        spread = contiguous(shape, input.dtype.to_real(), input.device)
        attributes = {"dim": dims, "keepdim": keepdim, "correction": correction}
        mean = contiguous(shape, input.dtype, input.device)
        return Inferred((spread, mean)[: max(len(self.returns), 1)], attributes)

    def lower(self, b: Any, input: Any, dim: Any, keepdim: bool, correction: float) -> Any:
        away, rest, mean = centred(b, input, dim)
        wide = _WIDE.get(away.dtype, away.dtype)
        squares = squares_about_mean(b, b.convert(away, wide), b.convert(rest, wide), dim)
        freedom = max(n_reduced(input.shape, dim) - correction, 0)
        divisor = b.size_number(freedom, squares.dtype)

        def spread(k: Any, total: Any, n: Any) -> Any:
            # What cancels to a tiny negative number is 0.
            variance = k.div(k.max(total, 0.0), n)
            return k.sqrt(variance) if self.root else variance

        result = b.map(spread, squares, divisor)
        result = drop_dims(b, b.convert(result, away.dtype.to_real()), dim, keepdim)
        if not self.returns:
            return result
        exact = b.map(lambda k, m, r: k.add(m, r), mean, rest)
        return result, drop_dims(b, exact, dim, keepdim)

    def variance_gradient(
        self, grad: Any, input: Any, dim: Any, keepdim: bool, correction: float
    ) -> Any:
        """Gradient of the variance: 2 / (n - correction) * (x - mean)."""
        freedom = n_reduced(input.shape, dim) - correction
        scale = 2 / freedom if freedom > 0 else float("inf")
        whole = kept(grad, dim, keepdim, input.shape)
        return (whole * scale) * (input - input.mean(dim, True))

    def deviation_gradient(self, t: Any, grad: Any, out: Any) -> Any:
        """Gradient of the variance behind a standard deviation; 0 where that is 0."""
        return t.masked_fill(grad / (out * 2), out == 0, 0)

    def samples(self, s: Any) -> list[Any]:
        return [
            s(s.real(3, 4)),
            s(s.real(3, 4), 1),
            s(s.real(2, 3, 4), (0, 2), keepdim=True, correction=0),
            s(s.real(3, 4), False),
        ]


@operator("var")
class Variance(Moment):
    """Mean squared distance from the mean."""

    def vjp(self, t: Any, grad: Any, input: Any, dim: Any, keepdim: bool, correction: float) -> Any:
        return self.variance_gradient(grad, input, dim, keepdim, correction)


@operator("std")
class StandardDeviation(Moment):
    """Square root of the variance."""

    root = True

    def vjp(
        self, t: Any, grad: Any, input: Any, out: Any, dim: Any, keepdim: bool, correction: float
    ) -> Any:
        grad = self.deviation_gradient(t, grad, out)
        return self.variance_gradient(grad, input, dim, keepdim, correction)


@operator("var_mean", returns=("var", "mean"), shows_names=False, methods=())
class VarianceAndMean(Moment):
    """(variance, mean)."""

    def vjp(
        self, t: Any, grad_var: Any, grad_mean: Any, input: Any, dim: Any, keepdim: bool,
        correction: float,
    ) -> Any:  # fmt: skip
        parts = []
        if grad_var is not None:
            parts.append(self.variance_gradient(grad_var, input, dim, keepdim, correction))
        if grad_mean is not None:
            whole = kept(grad_mean, dim, keepdim, input.shape) / n_reduced(input.shape, dim)
            parts.append(whole.expand(input.shape))
        return parts[0] + parts[1] if len(parts) == 2 else parts[0] if parts else None


@operator("std_mean", returns=("std", "mean"), shows_names=False, methods=())
class DeviationAndMean(VarianceAndMean):
    """(standard deviation, mean)."""

    root = True

    def vjp(
        self, t: Any, grad_std: Any, grad_mean: Any, input: Any, std: Any, dim: Any,
        keepdim: bool, correction: float,
    ) -> Any:  # fmt: skip
        grad_var = None if grad_std is None else self.deviation_gradient(t, grad_std, std)
        return super().vjp(t, grad_var, grad_mean, input, dim, keepdim, correction)


@operator("logsumexp", aliases=("special.logsumexp",))
class LogSumExp(Operator):
    """log(sum(exp(x))) over dims, without overflow."""

    out_refusal = None
    holomorphic = True

    def infer(self, input: Layout, dim: Any, keepdim: bool = False) -> Inferred:
        result = input.dtype
        if result.category < 2:
            result = promotion.default_dtype()
        dims = shapes.reduced_dims(input, dim)
        shape = shapes.reduced_shape(input.shape, dims, keepdim)
        out = contiguous(shape, result, input.device)
        return Inferred((out,), {"dim": dims, "keepdim": keepdim, "dtype": result})

    def lower(self, b: Any, input: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
        elements = b.convert(input, dtype.compute)
        if 0 in input.shape:
            shape = shapes.reduced_shape(input.shape, dim, True)
            largest = b.full(shape, 0.0, dtype.compute.to_real())
        else:
            largest = b.parts(elements)[0] if dtype.is_complex else elements
            largest = reduce_extreme(b, "max", largest, dim, True) if dim else largest
            # An infinite maximum is no use as a shift.
            largest = b.map(lambda k, m: k.select(k.eq(k.abs(m), float("inf")), 0.0, m), largest)
        terms = b.map(lambda k, x, m: k.exp(k.sub(x, m)), elements, largest)
        total = b.reduce("sum", terms, dim, True)
        result = b.map(lambda k, s, m: k.add(k.log(s), m), total, largest)
        return drop_dims(b, result, dim, keepdim)

    def vjp(self, t: Any, grad: Any, input: Any, out: Any, dim: Any, keepdim: bool) -> Any:
        grad, out = (kept(each, dim, keepdim, input.shape) for each in (grad, out))
        return grad * (input - out).exp()

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(3, 4), 1), s(s.real(2, 3, 4), (0, 2), True), s(s.real(), 0)]
