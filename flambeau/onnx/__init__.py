"""torch.onnx: asked for, it says what to do instead.

Keeps     importing it and asking whether an export runs work; exporting raises.
Touches   nothing.
Not here  files of tensors (io)."""

from __future__ import annotations

from typing import Any

from flambeau.base.errors import helped
from flambeau.base.missing import module_getattr

__all__ = ["OnnxExporterError", "export", "is_in_onnx_export"]


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


__getattr__ = module_getattr(__name__)
