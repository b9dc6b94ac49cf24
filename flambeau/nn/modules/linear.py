"""Linear layers.

Keeps     torch's initial values, bit for bit, weight first.
Touches   nn.init, nn.functional.
Not here  the product itself (ops.contraction)."""

from __future__ import annotations

import math
from typing import Any

from flambeau.nn import init
from flambeau.nn.modules.module import Module
from flambeau.nn.parameter import undrawn
from flambeau.tensor import functions as t


class Identity(Module):
    """Returns its input, whatever arguments it was made with."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Any) -> Any:
        return input


class Linear(Module):
    """x @ weight.T + bias over the last dim; `weight` is (out_features, in_features).

    >>> import flambeau as torch
    >>> torch.nn.Linear(20, 30)(torch.zeros(128, 20)).shape
    torch.Size([128, 30])
    """

    __constants__ = ["in_features", "out_features"]

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = undrawn((out_features, in_features), device, dtype)
        self.register_parameter("bias", undrawn(out_features, device, dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weight and bias from U(-1/sqrt(in_features), 1/sqrt(in_features))."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Any) -> Any:
        own = self._parameters
        try:
            return t.linear(input, own["weight"], own["bias"])
        except KeyError:  # parametrised: weight is an attribute
            return t.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class NonDynamicallyQuantizableLinear(Linear):
    """Linear, under the name torch's attention gives it."""


class Bilinear(Module):
    """x1^T A x2 + b for each output feature."""

    __constants__ = ["in1_features", "in2_features", "out_features"]

    def __init__(
        self, in1_features: int, in2_features: int, out_features: int, bias: bool = True,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got {in1_features}")
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        self.weight = undrawn((out_features, in1_features, in2_features), device, dtype)
        self.register_parameter("bias", undrawn(out_features, device, dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weight and bias from U(-1/sqrt(in1_features), 1/sqrt(in1_features))."""
        bound = 1 / math.sqrt(self.weight.size(1))
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Any, input2: Any) -> Any:
        from flambeau.nn import functional

        return functional.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )
