"""Activations that bend the identity: relu and its kin, and the hard ones.

Keeps     names of parameters are torch.nn.functional's; its functions see to `inplace`. A gradient
          is an operator on (grad_output, input), so that second order finds its way to the input
          even where its derivative is zero, as torch's does.
Touches   ops.define.
Not here  the smooth activations (smooth_activation.py), softmax (rows/softmax.py)."""

from __future__ import annotations

from typing import Any

from flambeau.base import dtypes
from flambeau.base.dtypes import dtype
from flambeau.ops.define import INT_TO_FLOAT, Elementwise, Number, Tensor, not_implemented, operator


@operator("relu", aliases=("nn.functional.relu",))
class Relu(Elementwise):
    """x above 0, else 0; NaN and -0 stay, as in torch."""

    complex_error = (NotImplementedError, "clamp is not supported for complex types")

    def check(self, common: dtype) -> None:
        if common is dtypes.bool_:
            raise RuntimeError("Boolean inputs not supported for relu")

    def formula(self, k: Any, input: Tensor) -> Any:
        return k.select(k.lt(input, 0), 0, input)

    def vjp(self, t: Any, grad: Any, out: Any) -> Any:
        return t.threshold_backward(grad, out, 0)


@operator("threshold", function=True, methods=(), aliases=("nn.functional.threshold",))
class Threshold(Elementwise):
    """x where above the threshold, else `value`."""

    def check(self, common: dtype) -> None:
        if common is dtypes.bool_:
            raise not_implemented("threshold_cpu", common)

    def formula(self, k: Any, input: Tensor, threshold: Number, value: Number) -> Any:
        return k.select(k.le(input, threshold), value, input)

    def vjp(self, t: Any, grad: Any, input: Any, threshold: Any) -> Any:
        return t.threshold_backward(grad, input, threshold)

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(3, 4), 0.2, -3.0)]


class Slope(Elementwise):
    """grad_output times a slope that is constant on either side of where the function bends."""

    inplace = False
    saved_for = {"grad_output": ("input",), "input": ()}


@operator("threshold_backward", function=False)
class ThresholdBackward(Slope):
    """grad where input is above the threshold, else 0."""

    specials = {"threshold": (0,)}

    def formula(self, k: Any, grad_output: Tensor, input: Tensor, threshold: Number) -> Any:
        return k.select(k.le(input, threshold), 0, grad_output)

    def vjp(self, t: Any, grad: Any, input: Any, threshold: Any, needs: Any) -> Any:
        return t.threshold_backward(grad, input, threshold) if needs[0] else None, None

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(3, 4), s.real(3, 4), 0)]


@operator("relu6", function=False, aliases=("nn.functional.relu6",))
class Relu6(Elementwise):
    """min(max(x, 0), 6)."""

    complex_error = (NotImplementedError, "clamp is not supported for complex types")

    def check(self, common: dtype) -> None:
        if common is dtypes.bool_:
            raise RuntimeError("Bool inputs not supported for hardtanh")

    def formula(self, k: Any, input: Tensor) -> Any:
        return k.min(k.select(k.lt(input, 0), 0, input), 6)

    def vjp(self, t: Any, grad: Any, input: Any) -> Any:
        return t.hardtanh_backward(grad, input, 0.0, 6.0)


@operator("hardtanh", function=False, aliases=("nn.functional.hardtanh",))
class HardTanh(Elementwise):
    """x between min_val and max_val, the nearer of them outside."""

    complex_error = (NotImplementedError, "clamp is not supported for complex types")

    def check(self, common: dtype) -> None:
        if common is dtypes.bool_:
            raise RuntimeError("Bool inputs not supported for hardtanh")

    def formula(self, k: Any, input: Tensor, min_val: Number = -1.0, max_val: Number = 1.0) -> Any:
        return k.min(k.max(input, min_val), max_val)

    def vjp(self, t: Any, grad: Any, input: Any, min_val: Any, max_val: Any) -> Any:
        return t.hardtanh_backward(grad, input, min_val, max_val)

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(3, 4)), s(s.real(3, 4), -0.5, 0.3)]


@operator("hardtanh_backward", function=False)
class HardTanhBackward(Slope):
    """grad where input lies between min_val and max_val or is NaN, else 0."""

    def formula(
        self, k: Any, grad_output: Tensor, input: Tensor, min_val: Number, max_val: Number
    ) -> Any:
        outside = k.or_(k.le(input, min_val), k.ge(input, max_val))
        return k.select(outside, 0, grad_output)

    def vjp(self, t: Any, grad: Any, input: Any, min_val: Any, max_val: Any, needs: Any) -> Any:
        return t.hardtanh_backward(grad, input, min_val, max_val) if needs[0] else None, None

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(3, 4), s.real(3, 4), -0.5, 0.3)]


@operator("leaky_relu", function=False, aliases=("nn.functional.leaky_relu",))
class LeakyRelu(Elementwise):
    """x above 0, negative_slope * x below."""

    floating_kernel = "leaky_relu_cpu"

    def formula(self, k: Any, input: Tensor, negative_slope: Number = 0.01) -> Any:
        return k.select(k.gt(input, 0), input, k.mul(input, negative_slope))

    def vjp(self, t: Any, grad: Any, input: Any, negative_slope: Any) -> Any:
        return t.leaky_relu_backward(grad, input, negative_slope)

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(3, 4)), s(s.real(3, 4), 0.3)]


@operator("leaky_relu_backward", function=False)
class LeakyReluBackward(Slope):
    """grad where input is above 0, else negative_slope * grad."""

    def formula(self, k: Any, grad_output: Tensor, input: Tensor, negative_slope: Number) -> Any:
        return k.select(k.gt(input, 0), grad_output, k.mul(grad_output, negative_slope))

    def vjp(self, t: Any, grad: Any, input: Any, negative_slope: Any, needs: Any) -> Any:
        return t.leaky_relu_backward(grad, input, negative_slope) if needs[0] else None, None

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(3, 4), s.real(3, 4), 0.3)]


@operator("prelu_kernel", function=False, inplace=False)
class ParametricRelu(Elementwise):
    """x above 0, weight * x below; weight broadcasts."""

    floating_kernel = "prelu_cpu"

    def formula(self, k: Any, input: Tensor, weight: Tensor) -> Any:
        return k.select(k.gt(input, 0), input, k.mul(weight, input))

    def vjp(self, t: Any, grad: Any, input: Any, weight: Any, needs: Any) -> Any:
        return (
            t.where(input > 0, grad, weight * grad) if needs[0] else None,
            t.where(input > 0, 0, input * grad) if needs[1] else None,
        )


@operator("hardsigmoid", function=False, aliases=("nn.functional.hardsigmoid",))
class HardSigmoid(Elementwise):
    """min(max(x + 3, 0), 6) / 6."""

    floating_kernel = "hardsigmoid_cpu"

    def formula(self, k: Any, input: Tensor) -> Any:
        return k.div(k.min(k.max(k.add(input, 3), 0), 6), 6)

    def vjp(self, t: Any, grad: Any, input: Any) -> Any:
        return t.hardsigmoid_backward(grad, input)


@operator("hardsigmoid_backward", function=False)
class HardSigmoidBackward(Slope):
    """grad / 6 where input lies between -3 and 3, else 0."""

    def formula(self, k: Any, grad_output: Tensor, input: Tensor) -> Any:
        inside = k.and_(k.gt(input, -3), k.lt(input, 3))
        return k.select(inside, k.mul(grad_output, 1 / 6), 0)

    def vjp(self, t: Any, grad: Any, input: Any, needs: Any) -> Any:
        return t.hardsigmoid_backward(grad, input) if needs[0] else None, None


@operator("hardswish", function=False, aliases=("nn.functional.hardswish",))
class HardSwish(Elementwise):
    """x * min(max(x + 3, 0), 6) / 6."""

    floating_kernel = "hardswish_cpu"

    def formula(self, k: Any, input: Tensor) -> Any:
        return k.div(k.mul(input, k.min(k.max(k.add(input, 3), 0), 6)), 6)

    def vjp(self, t: Any, grad: Any, input: Any) -> Any:
        return t.hardswish_backward(grad, input)


@operator("hardswish_backward", function=False, inplace=False)
class HardSwishBackward(Elementwise):
    """grad * (input / 3 + 1 / 2) between -3 and 3, 0 below, grad above."""

    saved_for = {"grad_output": ("input",), "input": ("grad_output", "input")}

    def formula(self, k: Any, grad_output: Tensor, input: Tensor) -> Any:
        middle = k.mul(grad_output, k.add(k.div(input, 3), 0.5))
        above = k.select(k.lt(input, 3), middle, grad_output)
        return k.select(k.le(input, -3), 0, above)

    def vjp(self, t: Any, grad: Any, grad_output: Any, input: Any, needs: Any) -> Any:
        return (
            t.hardswish_backward(grad, input) if needs[0] else None,
            self.curve(t, grad, grad_output, input) if needs[1] else None,
        )

    def curve(self, t: Any, grad: Any, grad_output: Any, input: Any) -> Any:
        """The cotangent of the input, whose square bends between -3 and 3."""
        return t.where(t.logical_and(input > -3, input < 3), grad * grad_output / 3, 0)


@operator("hardshrink", aliases=("nn.functional.hardshrink",), inplace=False)
class HardShrink(Elementwise):
    """x, but 0 between -lambd and lambd."""

    floating_kernel = "hardshrink_cpu"

    def formula(self, k: Any, input: Tensor, lambd: Number = 0.5) -> Any:
        inside = k.and_(k.ge(input, k.neg(lambd)), k.le(input, lambd))
        return k.select(inside, 0.0, input)

    def vjp(self, t: Any, grad: Any, input: Any, lambd: Any) -> Any:
        return t.hardshrink_backward(grad, input, lambd)

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(3, 4)), s(s.real(3, 4), 0.2)]


@operator("hardshrink_backward", function=False)
class HardShrinkBackward(Slope):
    """0 where input lies between -lambd and lambd, else grad."""

    def formula(self, k: Any, grad_output: Tensor, input: Tensor, lambd: Number) -> Any:
        inside = k.and_(k.ge(input, k.neg(lambd)), k.le(input, lambd))
        return k.select(inside, 0, grad_output)

    def vjp(self, t: Any, grad: Any, input: Any, lambd: Any, needs: Any) -> Any:
        return t.hardshrink_backward(grad, input, lambd) if needs[0] else None, None

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(3, 4), s.real(3, 4), 0.2)]


@operator("softshrink", function=False, inplace=False)
class SoftShrink(Elementwise):
    """x moved by lambd towards 0, 0 between -lambd and lambd."""

    floating_kernel = "softshrink_check"

    def formula(self, k: Any, input: Tensor, lambd: Number = 0.5) -> Any:
        below = k.select(k.lt(input, k.neg(lambd)), k.add(input, lambd), k.mul(input, 0.0))
        return k.select(k.gt(input, lambd), k.sub(input, lambd), below)

    def vjp(self, t: Any, grad: Any, input: Any, lambd: Any) -> Any:
        return t.hardshrink_backward(grad, input, lambd)

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(3, 4)), s(s.real(3, 4), 0.2)]


@operator("tanhshrink", function=False, inplace=False, aliases=("nn.functional.tanhshrink",))
class TanhShrink(Elementwise):
    """x - tanh(x)."""

    takes_complex = True
    holomorphic = True
    promote = INT_TO_FLOAT

    def formula(self, k: Any, input: Tensor) -> Any:
        return k.sub(input, k.tanh(input))

    def vjp(self, t: Any, grad: Any, input: Any) -> Any:
        tanh = input.tanh()
        return grad * (tanh * tanh)


@operator("softsign", function=False, inplace=False, aliases=("nn.functional.softsign",))
class SoftSign(Elementwise):
    """x / (1 + |x|)."""

    takes_complex = True
    promote = INT_TO_FLOAT

    def formula(self, k: Any, input: Tensor) -> Any:
        return k.div(input, k.add(k.abs(input), 1))

    def vjp(self, t: Any, grad: Any, input: Any) -> Any:
        bottom = input.abs() + 1
        if grad._layout.dtype.is_complex:
            along = t.real(grad * t.conj_physical(input)) / bottom
            return (grad - along * input.sgn()) / bottom
        return grad / (bottom * bottom)
