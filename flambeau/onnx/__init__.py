"""torch.onnx: asked for, it says what to do instead.

Keeps     importing it and asking whether an export runs work; exporting raises.
Touches   nothing.
Not here  files of tensors (io)."""

from __future__ import annotations

from typing import Any

from flambeau.base.errors import helped
from flambeau.base.missing import module_getattr

__all__ = ["OnnxExporterError", "export", "is_in_onnx_export", "register_custom_op_symbolic"]


class OnnxExporterError(RuntimeError):
    """A model that cannot be written as ONNX."""


def is_in_onnx_export() -> bool:
    """Whether a model is being exported right now: no."""
    return False


def export(model: Any, args: Any = (), f: Any = None, **named: Any) -> Any:
    """Raises: flambeau writes no ONNX files."""
    raise OnnxExporterError(
        helped(
            "torch.onnx.export: flambeau writes no ONNX files",
            given=f"a model of type {type(model).__name__}",
            fix="torch.save(model.state_dict(), path), load it into the same model under PyTorch "
            "(files go both ways), and export from there",
        )
    )


def register_custom_op_symbolic(symbolic_name: str, symbolic_fn: Any, opset_version: int) -> None:
    """Give an operator its form in ONNX: never asked for, since nothing is exported."""


_MODULES = ("symbolic_helper", "symbolic_opset11")


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        return _missing(name)
    from importlib import import_module

    return import_module(f"{__name__}.{name}")


_missing = module_getattr(__name__)
