"""torch.ao.quantization: marks of where a model's values would become and stop being integers.

Keeps     marks give what they are given, as torch's do until a model is converted.
Touches   nn.Module.
Not here  quantizing: there are no quantized dtypes."""

from __future__ import annotations

from typing import Any

from flambeau.base.missing import module_getattr
from flambeau.nn.modules.module import Module

__all__ = ["DeQuantStub", "QuantStub"]


class QuantStub(Module):
    """Marks where values would become integers.

    >>> QuantStub()(3)
    3
    """

    def __init__(self, qconfig: Any = None) -> None:
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x: Any) -> Any:
        """The value itself."""
        return x


class DeQuantStub(Module):
    """Marks where values would become floats again."""

    def __init__(self, qconfig: Any = None) -> None:
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x: Any) -> Any:
        """The value itself."""
        return x


__getattr__ = module_getattr(__name__)
