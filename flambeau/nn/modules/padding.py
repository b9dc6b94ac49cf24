"""Paddings as layers.

Keeps     torch's settings and repr.
Touches   nn.functional.
Not here  the padding (functions/padding.py)."""

from __future__ import annotations

from typing import Any

from flambeau.nn import functional as F
from flambeau.nn.modules.module import Module
from flambeau.nn.modules.utils import repeated


class _Pad(Module):
    """Padding of the last dims, the last one first."""

    __constants__ = ["padding"]
    n_spatial = 0
    mode = "constant"

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = repeated(padding, 2 * self.n_spatial)

    def forward(self, input: Any) -> Any:
        return F.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _CircularPad(_Pad):
    def forward(self, input: Any) -> Any:
        least = self.n_spatial + 1
        if input.dim() not in (least, least + 1):
            raise ValueError(f"expected {least}D or {least + 1}D input (got {input.dim()}D input)")
        return super().forward(input)


class _ConstantPad(_Pad):
    __constants__ = ["padding", "value"]

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Any) -> Any:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class _ZeroPad(_ConstantPad):
    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


def _layer(name: str, base: type[_Pad], count: int, mode: str, what: str) -> Any:
    return type(
        name,
        (base,),
        {
            "__doc__": f"{what} around the last {count} dim{'s' if count > 1 else ''}.",
            "__module__": __name__, "n_spatial": count, "mode": mode,
        },
    )  # fmt: skip


ConstantPad1d = _layer("ConstantPad1d", _ConstantPad, 1, "constant", "A number")
ConstantPad2d = _layer("ConstantPad2d", _ConstantPad, 2, "constant", "A number")
ConstantPad3d = _layer("ConstantPad3d", _ConstantPad, 3, "constant", "A number")
ZeroPad1d = _layer("ZeroPad1d", _ZeroPad, 1, "constant", "Zeros")
ZeroPad2d = _layer("ZeroPad2d", _ZeroPad, 2, "constant", "Zeros")
ZeroPad3d = _layer("ZeroPad3d", _ZeroPad, 3, "constant", "Zeros")
ReflectionPad1d = _layer("ReflectionPad1d", _Pad, 1, "reflect", "Reflections")
ReflectionPad2d = _layer("ReflectionPad2d", _Pad, 2, "reflect", "Reflections")
ReflectionPad3d = _layer("ReflectionPad3d", _Pad, 3, "reflect", "Reflections")
ReplicationPad1d = _layer("ReplicationPad1d", _Pad, 1, "replicate", "Edges repeated")
ReplicationPad2d = _layer("ReplicationPad2d", _Pad, 2, "replicate", "Edges repeated")
ReplicationPad3d = _layer("ReplicationPad3d", _Pad, 3, "replicate", "Edges repeated")
CircularPad1d = _layer("CircularPad1d", _CircularPad, 1, "circular", "The other end")
CircularPad2d = _layer("CircularPad2d", _CircularPad, 2, "circular", "The other end")
CircularPad3d = _layer("CircularPad3d", _CircularPad, 3, "circular", "The other end")
