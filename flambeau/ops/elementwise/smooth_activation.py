"""Smooth activations: gelu, silu, elu and their kin.

Keeps     an activation and its gradient are one operator each, so that a layer records two.
Touches   ops.define.
Not here  relu and the hard activations (activation.py)."""

from __future__ import annotations

from typing import Any, Final

from flambeau.base import shapes
from flambeau.base.layout import contiguous
from flambeau.ops.define import (
    Elementwise,
    Inferred,
    Number,
    Operator,
    Tensor,
    check_floating,
    operator,
)

ROOT_HALF: Final = 0.7071067811865476  # 1 / sqrt(2)
TWO_OVER_ROOT_PI: Final = 1.1283791670955126
ROOT_TWO_OVER_PI: Final = 0.7978845608028654
GELU_CUBE: Final = 0.044715
SELU_ALPHA: Final = 1.6732632423543772848170429916717
SELU_SCALE: Final = 1.0507009873554804934193349852946


def normal_share(k: Any, x: Any) -> Any:
    """Share of the normal distribution below x."""
    return k.mul(k.add(k.erf(k.mul(x, ROOT_HALF)), 1.0), 0.5)


def gelu_tanh(k: Any, x: Any) -> Any:
    """tanh(sqrt(2 / pi) * (x + 0.044715 x^3))."""
    cube = k.mul(k.mul(x, x), x)
    return k.tanh(k.mul(k.add(x, k.mul(cube, GELU_CUBE)), ROOT_TWO_OVER_PI))


@operator("gelu", function=False, aliases=("nn.functional.gelu",))
class Gelu(Elementwise):
    """x times the share of the normal distribution below x; "tanh" is the fast approximation."""

    floating_kernel = "GeluKernelImpl"
    inplace = False

    def validate(self, arguments: dict[str, Any]) -> None:
        if arguments.get("approximate", "none") not in ("none", "tanh"):
            raise RuntimeError("approximate argument must be either none or tanh.")

    def formula(self, k: Any, input: Tensor, *, approximate: str = "none") -> Any:
        if approximate == "tanh":
            return k.mul(k.mul(input, 0.5), k.add(gelu_tanh(k, input), 1.0))
        return k.mul(input, normal_share(k, input))

    def vjp(self, t: Any, grad: Any, input: Any, approximate: Any) -> Any:
        return t.gelu_backward(grad, input, approximate=approximate)

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(3, 4)), s(s.real(3, 4), approximate="tanh")]


@operator("gelu_backward", function=False)
class GeluBackward(Gelu):
    """grad times the slope of gelu at input."""

    saved_for = {"grad_output": ("input",), "input": ("grad_output", "input")}

    def formula(
        self, k: Any, grad_output: Tensor, input: Tensor, *, approximate: str = "none"
    ) -> Any:
        half_x = k.mul(input, 0.5)
        if approximate == "tanh":
            tanh = gelu_tanh(k, input)
            inner = k.mul(k.add(k.mul(k.mul(input, input), 3 * GELU_CUBE), 1.0), ROOT_TWO_OVER_PI)
            right = k.mul(k.mul(half_x, k.sub(1.0, k.mul(tanh, tanh))), inner)
            return k.mul(grad_output, k.add(k.mul(k.add(tanh, 1.0), 0.5), right))
        density = k.mul(k.exp(k.mul(k.mul(input, input), -0.5)), TWO_OVER_ROOT_PI * ROOT_HALF * 0.5)
        return k.mul(grad_output, k.add(normal_share(k, input), k.mul(input, density)))

    def vjp(
        self, t: Any, grad: Any, grad_output: Any, input: Any, approximate: Any, needs: Any
    ) -> Any:
        first = t.gelu_backward(grad, input, approximate=approximate) if needs[0] else None
        if not needs[1]:
            return first, None
        square = input * input
        if approximate == "none":
            # Slope of the slope: density * (2 - x^2).
            density = (square * -0.5).exp() * (TWO_OVER_ROOT_PI * ROOT_HALF * 0.5)
            return first, grad * grad_output * (density * (2 - square))
        tanh = (ROOT_TWO_OVER_PI * (input + GELU_CUBE * (square * input))).tanh()
        inner = ROOT_TWO_OVER_PI * (1 + 3 * GELU_CUBE * square)
        bend = ROOT_TWO_OVER_PI * 6 * GELU_CUBE * input
        fall = 1 - tanh * tanh
        curve = fall * inner + 0.5 * input * fall * (bend - 2 * tanh * inner * inner)
        return first, grad * grad_output * curve

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(3, 4), s.real(3, 4), approximate=each) for each in ("none", "tanh")]


@operator("silu", function=False, aliases=("nn.functional.silu",))
class Silu(Elementwise):
    """x * sigmoid(x)."""

    takes_complex = True
    holomorphic = True
    floating_kernel = "silu_cpu"

    def formula(self, k: Any, input: Tensor) -> Any:
        return k.div(input, k.add(k.exp(k.neg(input)), 1.0))

    def vjp(self, t: Any, grad: Any, input: Any) -> Any:
        sigmoid = input.sigmoid()
        return grad * (sigmoid * (1 + input * (1 - sigmoid)))


@operator("mish", function=False, aliases=("nn.functional.mish",))
class Mish(Elementwise):
    """x * tanh(log(1 + e^x))."""

    floating_kernel = "mish_cpu"

    def formula(self, k: Any, input: Tensor) -> Any:
        return k.mul(input, k.tanh(softplus(k, input)))

    def vjp(self, t: Any, grad: Any, input: Any) -> Any:
        tanh = t.softplus(input).tanh()
        return grad * (tanh + input * input.sigmoid() * (1 - tanh * tanh))


def softplus(k: Any, x: Any) -> Any:
    """log(1 + e^x) without overflow."""
    return k.add(k.max(x, 0.0), k.log1p(k.exp(k.neg(k.abs(x)))))


@operator("softplus", function=False, inplace=False, aliases=("nn.functional.softplus",))
class SoftPlus(Elementwise):
    """log(1 + e^(beta x)) / beta; x itself where beta x is above the threshold."""

    floating_kernel = "softplus_cpu"
    specials = {"beta": (1,)}

    def formula(self, k: Any, input: Tensor, beta: Number = 1, threshold: Number = 20) -> Any:
        if beta == 1:
            return k.select(k.gt(input, threshold), input, k.log1p(k.exp(input)))
        scaled = k.mul(input, beta)
        smooth = k.div(k.log1p(k.exp(scaled)), beta)
        return k.select(k.gt(scaled, threshold), input, smooth)

    def vjp(self, t: Any, grad: Any, input: Any, beta: Any, threshold: Any) -> Any:
        return t.softplus_backward(grad, input, beta, threshold)

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(3, 4)), s(s.real(3, 4), 2.0, 1.0)]


@operator("softplus_backward", function=False, inplace=False)
class SoftPlusBackward(Elementwise):
    """grad * sigmoid(beta x); grad itself where beta x is above the threshold."""

    saved_for = {"grad_output": ("input",), "input": ("grad_output", "input")}
    specials = {"beta": (1,)}

    def formula(
        self, k: Any, grad_output: Tensor, input: Tensor, beta: Number, threshold: Number
    ) -> Any:
        scaled = input if beta == 1 else k.mul(input, beta)
        return k.select(k.gt(scaled, threshold), grad_output, k.mul(grad_output, k.sigmoid(scaled)))

    def vjp(
        self, t: Any, grad: Any, grad_output: Any, input: Any, beta: Any, threshold: Any, needs: Any
    ) -> Any:
        first = t.softplus_backward(grad, input, beta, threshold) if needs[0] else None
        if not needs[1]:
            return first, None
        scaled = input if beta == 1 else input * beta
        sigmoid = scaled.sigmoid()
        curve = grad * grad_output * (sigmoid * (1 - sigmoid))
        curve = curve if beta == 1 else curve * beta
        return first, curve * (scaled < threshold)

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(3, 4), s.real(3, 4), 1, 20), s(s.real(3, 4), s.real(3, 4), 2.0, 1.0)]


@operator("logsigmoid", function=False, inplace=False, aliases=("nn.functional.logsigmoid",))
class LogSigmoid(Elementwise):
    """log(sigmoid(x)) without overflow."""

    floating_kernel = "log_sigmoid_cpu"

    def formula(self, k: Any, input: Tensor) -> Any:
        return k.sub(k.min(input, 0.0), k.log1p(k.exp(k.neg(k.abs(input)))))

    def vjp(self, t: Any, grad: Any, input: Any) -> Any:
        return grad * (-input).sigmoid()


class ExponentialUnit(Elementwise):
    """scale * x above 0, scale * alpha * (e^(slope * x) - 1) below."""

    def value(self, k: Any, x: Any, alpha: Any, scale: Any = 1, slope: Any = 1) -> Any:
        """The unit, factors of 1 left out."""
        inner = x if slope == 1 else k.mul(x, slope)
        below = k.mul(k.expm1(inner), alpha)
        if scale == 1:
            return k.select(k.gt(x, 0), x, below)
        return k.mul(k.select(k.gt(x, 0), x, below), scale)


@operator("elu", function=False, aliases=("nn.functional.elu",))
class Elu(ExponentialUnit):
    """x above 0, alpha * (e^x - 1) below."""

    floating_kernel = "elu_cpu"

    def formula(self, k: Any, input: Tensor, alpha: Number = 1.0) -> Any:
        return self.value(k, input, alpha)

    def vjp(self, t: Any, grad: Any, input: Any, alpha: Any) -> Any:
        return t.elu_backward(grad, input, alpha, 1, 1)

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(3, 4)), s(s.real(3, 4), 0.7)]


@operator("selu", aliases=("nn.functional.selu",), methods=())
class Selu(ExponentialUnit):
    """elu scaled so that layers keep mean 0 and variance 1 (Klambauer et al., 2017)."""

    floating_kernel = "elu_cpu"

    def formula(self, k: Any, input: Tensor) -> Any:
        return self.value(k, input, SELU_ALPHA, SELU_SCALE)

    def vjp(self, t: Any, grad: Any, input: Any) -> Any:
        return t.elu_backward(grad, input, SELU_ALPHA, SELU_SCALE, 1)


@operator("celu", aliases=("nn.functional.celu",), methods=())
class Celu(ExponentialUnit):
    """x above 0, alpha * (e^(x / alpha) - 1) below."""

    floating_kernel = "elu_cpu"

    def formula(self, k: Any, input: Tensor, alpha: Number = 1.0) -> Any:
        return self.value(k, input, alpha, 1, k.div(1.0, alpha) if alpha != 1 else 1)

    def vjp(self, t: Any, grad: Any, input: Any, alpha: Any) -> Any:
        return t.elu_backward(grad, input, alpha, 1, 1 / alpha)

    specials = {"alpha": (1,)}

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(3, 4)), s(s.real(3, 4), 0.7)]


@operator("elu_backward", function=False, inplace=False)
class EluBackward(Elementwise):
    """grad times the slope of scale * elu(input_scale * x): scale above 0, exponential below."""

    saved_for = {"grad_output": ("input",), "input": ("grad_output", "input")}
    specials = {"scale": (1,), "input_scale": (1,)}

    def formula(
        self, k: Any, grad_output: Tensor, input: Tensor, alpha: Number, scale: Number,
        input_scale: Number,
    ) -> Any:  # fmt: skip
        inner = input if input_scale == 1 else k.mul(input, input_scale)
        above = grad_output if scale == 1 else k.mul(grad_output, scale)
        below = k.mul(above, k.mul(k.exp(inner), alpha))
        if input_scale != 1:
            below = k.mul(below, input_scale)
        return k.select(k.le(input, 0), below, above)

    def vjp(
        self, t: Any, grad: Any, grad_output: Any, input: Any, alpha: Any, scale: Any,
        input_scale: Any, needs: Any,
    ) -> Any:  # fmt: skip
        first = t.elu_backward(grad, input, alpha, scale, input_scale) if needs[0] else None
        if not needs[1]:
            return first, None
        factor = alpha * scale * input_scale * input_scale
        curve = grad * grad_output * ((input * input_scale).exp() * factor)
        return first, t.where(input < 0, curve, 0)

    def samples(self, s: Any) -> list[Any]:
        return [
            s(s.real(3, 4), s.real(3, 4), 1.0, 1, 1), s(s.real(3, 4), s.real(3, 4), 0.7, 1.3, 0.6)
        ]  # fmt: skip


@operator("glu", function=False, inplace=False, aliases=("nn.functional.glu",))
class Glu(Operator):
    """First half of a dim times the sigmoid of its second half."""

    def infer(self, input: Tensor, dim: int = -1) -> Inferred:
        if input.ndim == 0:
            raise RuntimeError("glu does not support scalars because halving size must be even")
        at = shapes.wrap_dim(dim, input.ndim)
        if input.shape[at] % 2:
            raise RuntimeError(
                f"Halving dimension must be even, but dimension {at} is size {input.shape[at]}"
            )
        check_floating("glu_cpu", input)
        shape = (*input.shape[:at], input.shape[at] // 2, *input.shape[at + 1 :])
        return Inferred((contiguous(shape, input.dtype, input.device),), {"dim": at})

    def lower(self, b: Any, input: Any, dim: int) -> Any:
        half = input.shape[dim] // 2
        value, gate = (b.narrow(input, dim, start, half) for start in (0, half))
        return b.map(lambda k, x, y: k.mul(x, k.sigmoid(y)), value, gate)

    def vjp(self, t: Any, grad: Any, input: Any, dim: int) -> Any:
        value, gate = input.chunk(2, dim)
        sigmoid = gate.sigmoid()
        return t.cat((grad * sigmoid, grad * value * sigmoid * (1 - sigmoid)), dim)

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(3, 4)), s(s.real(4, 3), 0)]
