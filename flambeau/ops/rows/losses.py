"""Losses that compare two tensors place by place, with their reductions.

Keeps     one operator a loss: the formula, then mean or sum (or neither) in the same kernel.
Touches   ops.define, base.shapes.
Not here  losses over classes (cross_entropy.py); warnings about shapes (nn/functional.py)."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from flambeau.base import dtypes, promotion, shapes
from flambeau.base.dtypes import dtype
from flambeau.base.errors import helped
from flambeau.base.layout import Layout, contiguous, layout
from flambeau.ops.define import (
    Inferred,
    Number,
    Operator,
    OptionalTensor,
    Tensor,
    not_implemented,
    operator,
    type_name,
)
from flambeau.ops.elementwise.signs import direction

REDUCTIONS = ("none", "mean", "sum")


def check_reduction(reduction: str) -> None:
    """Refuse anything but none, mean and sum."""
    if reduction not in REDUCTIONS:
        raise ValueError(f"{reduction} is not a valid value for reduction")


def reduced(b: Any, values: Any, reduction: str, count: Any = None) -> Any:
    """The values, their sum or their mean (over `count` where that is not their number)."""
    if reduction == "none":
        return values
    total = b.reduce("sum", values, None)
    if reduction == "sum":
        return total
    if count is None:
        n_values = 1
        for size in values.shape:
            n_values *= size
        count = b.size_number(n_values, values.dtype)
    return b.map(lambda k, s, n: k.div(s, n), total, count)


def per_place(grad: Any, reduction: str, n_values: int) -> Any:
    """The cotangent of each place's loss."""
    return grad / n_values if reduction == "mean" else grad


def difference_of(input: Any, target: Any) -> Any:
    """input - target, of which one may be bools."""
    if not (input.dtype.is_floating_point or input.dtype.is_complex):
        return input.to(target.dtype) - target
    return input - (target if target.dtype.category else target.to(input.dtype))


class PlaceLoss(Operator):
    """A loss of input and target at each place: `loss(k, input, target, ...)` is the formula,
    `slope(t, input, target, ...)` its derivative by the input."""

    out = False
    kernel: ClassVar[str] = ""  # torch's, for errors
    gives_length: ClassVar[bool] = False  # of complex numbers too

    def checked(self, input: Layout, target: Layout, reduction: str, **attributes: Any) -> Inferred:
        """Layout and attributes; raises torch's errors."""
        check_reduction(reduction)
        element = promotion.result_type((input, target))
        if not (element.is_floating_point or (element.is_complex and self.gives_length)):
            raise not_implemented(self.kernel, element)
        shape = shapes.broadcast_shapes(input.shape, target.shape)
        device = shapes.common_device((input, target))
        out = contiguous(shape if reduction == "none" else (), element.to_real(), device)
        return Inferred((out,), {"reduction": reduction, "common": element, **attributes})

    def loss(self, k: Any, input: Any, target: Any, **attributes: Any) -> Any:
        """The formula."""
        raise NotImplementedError

    def slope(self, t: Any, input: Any, target: Any, **attributes: Any) -> Any:
        """Derivative by the input."""
        raise NotImplementedError

    def lower(
        self, b: Any, input: Any, target: Any, reduction: str, common: dtype, **attributes: Any
    ) -> Any:
        numbers = {key: each for key, each in attributes.items() if hasattr(each, "shape")}

        def formula(k: Any, x: Any, y: Any, *given: Any) -> Any:
            return self.loss(k, x, y, **{**attributes, **dict(zip(numbers, given, strict=True))})

        values = b.map(formula, input, target, *numbers.values(), compute=common.compute)
        return reduced(b, values, reduction)

    def gradient(
        self, t: Any, grad: Any, input: Any, target: Any, reduction: str, needs: Any,
        **attributes: Any,
    ) -> Any:  # fmt: skip
        """vjp for losses of the difference: the target's gradient is the input's, negated."""
        slope = self.slope(t, input, target, **attributes)
        whole = per_place(grad, reduction, slope.numel()) * slope
        return whole if needs[0] else None, -whole if needs[1] else None


@operator("mse_loss", function=False, aliases=("nn.functional.mse_loss",))
class MeanSquaredError(PlaceLoss):
    """(input - target)^2."""

    kernel = "mse_cpu"

    def infer(self, input: Tensor, target: Tensor, reduction: str = "mean") -> Inferred:
        return self.checked(input, target, reduction)

    def loss(self, k: Any, input: Any, target: Any, **attributes: Any) -> Any:
        difference = k.sub(input, target)
        return k.mul(difference, difference)

    def vjp(self, t: Any, grad: Any, input: Any, target: Any, reduction: str, needs: Any) -> Any:
        difference = difference_of(input, target)
        n_values = max(difference.numel(), 1)  # of no values none reads its share
        whole = difference * (grad * (2 / n_values if reduction == "mean" else 2))
        return whole if needs[0] else None, -whole if needs[1] else None

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(3, 4), s.real(3, 4), each) for each in REDUCTIONS]


@operator("l1_loss", function=False, aliases=("nn.functional.l1_loss",))
class AbsoluteError(PlaceLoss):
    """|input - target|."""

    kernel = "abs_cpu"
    gives_length = True

    def infer(self, input: Tensor, target: Tensor, reduction: str = "mean") -> Inferred:
        return self.checked(input, target, reduction)

    def loss(self, k: Any, input: Any, target: Any, **attributes: Any) -> Any:
        return k.abs(k.sub(input, target))

    def slope(self, t: Any, input: Any, target: Any, **attributes: Any) -> Any:
        return direction(input - target)

    def vjp(self, t: Any, grad: Any, input: Any, target: Any, reduction: str, needs: Any) -> Any:
        return self.gradient(t, grad, input, target, reduction, needs)

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(3, 4), s.real(3, 4), each) for each in REDUCTIONS]


@operator("smooth_l1_loss", function=False, aliases=("nn.functional.smooth_l1_loss",))
class SmoothAbsoluteError(PlaceLoss):
    """0.5 d^2 / beta where |d| < beta, |d| - 0.5 beta elsewhere; d = input - target."""

    kernel = "smooth_l1_cpu"

    def infer(
        self, input: Tensor, target: Tensor, reduction: str = "mean", beta: Number = 1.0
    ) -> Inferred:
        return self.checked(input, target, reduction)

    def loss(self, k: Any, input: Any, target: Any, **attributes: Any) -> Any:
        beta = attributes["beta"]
        size = k.abs(k.sub(input, target))
        bowl = k.div(k.mul(k.mul(size, 0.5), size), beta)
        return k.select(k.lt(size, beta), bowl, k.sub(size, k.mul(beta, 0.5)))

    def slope(self, t: Any, input: Any, target: Any, **attributes: Any) -> Any:
        beta = attributes["beta"]
        difference = difference_of(input, target)
        sign = difference.sign()
        # What is no number stays that: it is not below beta, nor above.
        return sign if beta == 0 else t.where(difference.abs() >= beta, sign, difference / beta)

    def vjp(
        self, t: Any, grad: Any, input: Any, target: Any, reduction: str, beta: Any, needs: Any
    ) -> Any:
        return self.gradient(t, grad, input, target, reduction, needs, beta=beta)

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(3, 4), s.real(3, 4), each, 0.7) for each in REDUCTIONS]


@operator("huber_loss", function=False, aliases=())
class Huber(PlaceLoss):
    """0.5 d^2 where |d| < delta, delta (|d| - 0.5 delta) elsewhere; d = input - target."""

    kernel = "huber_cpu"

    def infer(
        self, input: Tensor, target: Tensor, reduction: str = "mean", delta: Number = 1.0
    ) -> Inferred:
        return self.checked(input, target, reduction)

    def loss(self, k: Any, input: Any, target: Any, **attributes: Any) -> Any:
        delta = attributes["delta"]
        size = k.abs(k.sub(input, target))
        bowl = k.mul(k.mul(size, 0.5), size)
        return k.select(k.lt(size, delta), bowl, k.mul(delta, k.sub(size, k.mul(delta, 0.5))))

    def slope(self, t: Any, input: Any, target: Any, **attributes: Any) -> Any:
        delta = attributes["delta"]
        difference = difference_of(input, target)
        return t.where(difference.abs() >= delta, difference.sign() * delta, difference)

    def vjp(
        self, t: Any, grad: Any, input: Any, target: Any, reduction: str, delta: Any, needs: Any
    ) -> Any:
        return self.gradient(t, grad, input, target, reduction, needs, delta=delta)

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(3, 4), s.real(3, 4), each, 0.7) for each in REDUCTIONS]


@operator("kl_div", function=False)
class KullbackLeibler(PlaceLoss):
    """target * (log(target) - input); with log_target, target is a logarithm itself."""

    def infer(
        self, input: Tensor, target: Tensor, reduction: str = "mean", log_target: bool = False
    ) -> Inferred:
        for each in (input, target):
            if each.dtype.is_complex:
                raise RuntimeError("kl_div: Complex inputs not supported.")
            if not each.dtype.is_floating_point:
                raise RuntimeError("kl_div: Integral inputs not supported.")
        shapes.broadcast_shapes(target.shape, input.shape)  # torch names target's size first
        return self.checked(input, target, reduction, log_target=log_target)

    def loss(self, k: Any, input: Any, target: Any, **attributes: Any) -> Any:
        if attributes["log_target"]:
            return k.mul(k.exp(target), k.sub(target, input))
        zero = k.eq(target, 0.0)
        entropy = k.select(zero, 0.0, k.mul(target, k.log(target)))
        return k.sub(entropy, k.mul(target, input))

    def vjp(
        self, t: Any, grad: Any, input: Any, target: Any, reduction: str, log_target: bool,
        needs: Any,
    ) -> Any:  # fmt: skip
        weights = target.exp() if log_target else target
        if reduction != "none":  # a share of every place, of which an operand may have fewer
            shape = shapes.broadcast_shapes(tuple(input.shape), tuple(target.shape))
            grad = per_place(grad, reduction, math.prod(shape)).expand(shape)
        into_target = None
        if needs[1]:
            if log_target:
                into_target = grad * weights * (target - input + 1)
            else:
                slope = grad * (target.log() + 1 - input)
                into_target = t.masked_fill(slope, target == 0, 0)
        return -grad * weights if needs[0] else None, into_target

    def samples(self, s: Any) -> list[Any]:
        positive = s.real(3, 4, low=0.1, high=1)
        return [
            s(s.real(3, 4), positive, "sum"),
            s(s.real(3, 4), positive, "none"),
            s(s.real(3, 4), s.real(3, 4), "mean", True),
        ]


class WeightedLoss(PlaceLoss):
    """A loss with an optional weight at each place."""

    def checked_weights(
        self, input: Layout, target: Layout, reduction: str, *weights: Layout | None
    ) -> Inferred:
        """`checked`; weights broadcast to input, never input to them."""
        inferred = self.checked(input, target, reduction)
        given = [each.shape for each in weights if each is not None]
        shape = shapes.broadcast_shapes(*given, input.shape)
        if shape != input.shape:
            raise RuntimeError(
                f"output with shape {list(input.shape)} doesn't match the broadcast shape "
                f"{list(shape)}"
            )
        return inferred

    def weighted(self, b: Any, values: Any, weight: Any, reduction: str) -> Any:
        """The loss times the weight, reduced."""
        if weight is not None:
            weight = b.convert(weight, values.dtype)
            values = b.map(lambda k, x, w: k.mul(x, w), values, weight)
        return reduced(b, values, reduction)


@operator("binary_cross_entropy", function=False)
class BinaryCrossEntropy(WeightedLoss):
    """-(target * log(input) + (1 - target) * log(1 - input)), logarithms at least -100."""

    kernel = "binary_cross_entropy"

    def infer(
        self, input: Tensor, target: Tensor, weight: OptionalTensor = None, reduction: str = "mean"
    ) -> Inferred:
        if input.shape != target.shape:
            raise ValueError(
                f"Using a target size (torch.Size({list(target.shape)})) that is different to the "
                f"input size (torch.Size({list(input.shape)})) is deprecated. Please ensure they "
                "have the same size."
            )
        if input.dtype is not target.dtype:
            raise RuntimeError(
                helped(
                    f"Found dtype {type_name(target)} but expected {type_name(input)}",
                    given=f"input of {input.dtype}, target of {target.dtype}",
                    fix=f"target.to({input.dtype})",
                )
            )
        return self.checked_weights(input, target, reduction, weight)

    def lower(
        self, b: Any, input: Any, target: Any, weight: Any, reduction: str, common: dtype
    ) -> Any:
        def formula(k: Any, x: Any, y: Any) -> Any:
            positive = k.max(k.log(x), -100.0)
            negative = k.max(k.log1p(k.neg(x)), -100.0)
            return k.sub(k.mul(k.sub(y, 1.0), negative), k.mul(y, positive))

        values = b.map(formula, input, target, compute=common.compute)
        return self.weighted(b, values, weight, reduction)

    def vjp(
        self, t: Any, grad: Any, input: Any, target: Any, weight: Any, reduction: str, needs: Any
    ) -> Any:
        grad = per_place(grad, reduction, input.numel())
        grad = grad if weight is None else grad * weight
        bottom = ((1 - input) * input).clamp_min(1e-12)
        into_target = None
        if needs[1]:
            into_target = grad * ((-input).log1p().clamp_min(-100) - input.log().clamp_min(-100))
        return grad * (input - target) / bottom if needs[0] else None, into_target, None

    def samples(self, s: Any) -> list[Any]:
        share = s.real(3, 4, low=0.1, high=0.9)
        target = s.real(3, 4, low=0.1, high=0.9)
        return [s(share, target, None, each) for each in REDUCTIONS]


@operator("binary_cross_entropy_with_logits", methods=(), out=False)
class LogitsBinaryCrossEntropy(WeightedLoss):
    """binary_cross_entropy of sigmoid(input), without overflow."""

    kernel = "log_sigmoid_cpu"

    def infer(
        self,
        input: Tensor,
        target: Tensor,
        weight: OptionalTensor = None,
        pos_weight: OptionalTensor = None,
        reduction: str = "mean",
    ) -> Inferred:
        if input.shape != target.shape:
            raise ValueError(
                helped(
                    f"Target size (torch.Size({list(target.shape)})) must be the same as input "
                    f"size (torch.Size({list(input.shape)}))",
                    expected="one number for each of the input's",
                    fix="target.view_as(input)" if input.n_elements == target.n_elements else None,
                )
            )
        inferred = self.checked_weights(input, target, reduction, weight, pos_weight)
        if target.dtype is dtypes.bool_:
            raise RuntimeError(
                "Subtraction, the `-` operator, with two bool tensors is not supported. Use the "
                "`^` or `logical_xor()` operator instead."
            )
        if not promotion.can_cast(inferred.outputs[0].dtype, target.dtype):
            raise RuntimeError(
                helped(
                    f"result type {type_name(inferred.outputs[0])} can't be cast to the desired "
                    f"output type {type_name(target)}",
                    fix="target.float()",
                )
            )
        out = inferred.outputs[0]
        out = contiguous(out.shape, target.dtype, out.device)
        return Inferred((out,), inferred.attributes)

    def lower(
        self, b: Any, input: Any, target: Any, weight: Any, pos_weight: Any, reduction: str,
        common: dtype,
    ) -> Any:  # fmt: skip
        def formula(k: Any, x: Any, y: Any, *positive: Any) -> Any:
            # (1 - y) x + w (log(1 + e^-|x|) + max(-x, 0)), w = 1 + (pos_weight - 1) y
            tail = k.add(k.log1p(k.exp(k.neg(k.abs(x)))), k.max(k.neg(x), 0.0))
            if positive:
                tail = k.mul(tail, k.add(k.mul(k.sub(positive[0], 1.0), y), 1.0))
            return k.add(k.mul(k.sub(1.0, y), x), tail)

        extra = [] if pos_weight is None else [pos_weight]
        values = b.map(formula, input, target, *extra, compute=common.compute)
        return self.weighted(b, values, weight, reduction)

    def vjp(
        self, t: Any, grad: Any, input: Any, target: Any, weight: Any, pos_weight: Any,
        reduction: str, needs: Any,
    ) -> Any:  # fmt: skip
        grad = per_place(grad, reduction, input.numel())
        grad = grad if weight is None else grad * weight
        into_input = into_target = None
        if needs[0]:
            if pos_weight is None:
                into_input = grad * (input.sigmoid() - target)
            else:
                positive = pos_weight * target
                into_input = grad * ((positive + 1 - target) * input.sigmoid() - positive)
        if needs[1]:
            slope = -input
            if pos_weight is not None:
                slope = slope - (pos_weight - 1) * t.logsigmoid(input)
            into_target = grad * slope
        return into_input, into_target, None, None

    def samples(self, s: Any) -> list[Any]:
        target = s.real(3, 4, low=0, high=1)
        return [
            *[s(s.real(3, 4), target, None, None, each) for each in REDUCTIONS],
            s(s.real(3, 4), target, s.constant(4), s.constant(4), "mean"),
        ]


@operator("dropout_mask", function=False)
class DropoutMask(Operator):
    """input / keep where the mask is True, 0 elsewhere: dropout once its mask is drawn."""

    def infer(self, input: Layout, mask: Layout, keep: Number) -> Layout:
        if input.dtype.category < 2:
            raise RuntimeError(
                "result type Float can't be cast to the desired output type "
                f"{promotion.SCALAR_TYPE_NAMES[input.dtype.name]}"
            )
        device = shapes.common_device((input, mask))
        return layout(input.shape, shapes.like_strides(input), input.dtype, device)

    def lower(self, b: Any, input: Any, mask: Any, keep: Any) -> Any:
        # 1 / keep is rounded to the dtype first, as torch scales its noise.
        element = input.dtype

        def formula(k: Any, x: Any, kept: Any, share: Any) -> Any:
            scale = k.div(1.0, k.convert(k.real(share), element.compute.to_real()))
            return k.mul(x, k.select(kept, scale, 0.0))

        return b.map(formula, input, mask, keep, dtype=element)

    def vjp(self, t: Any, grad: Any, mask: Any, keep: Any) -> Any:
        return t.dropout_mask(grad, mask, keep), None

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(3, 4), s.boolean(3, 4), 0.8)]
