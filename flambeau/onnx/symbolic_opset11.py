"""torch.onnx.symbolic_opset11: importable by libraries that bring ONNX forms of their own.

Keeps     no names: nothing is exported.
Touches   nothing.
Not here  exporting, which raises (__init__.py)."""

from __future__ import annotations

from flambeau.base.missing import module_getattr

__all__: list[str] = []

__getattr__ = module_getattr(__name__)
