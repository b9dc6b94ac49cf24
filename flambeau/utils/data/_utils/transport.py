"""Tensors between processes: as packed bytes inside a pickle.

Keeps     pending work runs before a tensor is packed; what arrives has memory of its own.
Touches   tensor.creation and conversion.
Not here  files (io)."""

from __future__ import annotations

import ctypes
import io
import pickle
from typing import Any

from flambeau.base import dtypes
from flambeau.tensor import Tensor, conversion, creation


def _rebuilt(raw: Any, shape: tuple[int, ...], name: str) -> Tensor:
    return creation.from_bytes(raw, shape, dtypes.by_name(name))


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        """How a plain tensor is packed; anything else as usual."""
        if isinstance(value, Tensor) and not value.is_leaf:
            raise RuntimeError(
                "Cowardly refusing to serialize non-leaf tensor which requires_grad, since "
                "autograd does not support crossing process boundaries.  If you just want to "
                "transfer the data, call detach() on the tensor before serializing (e.g., putting "
                "it on the queue)."
            )
        if type(value) is not Tensor or value.requires_grad:
            return NotImplemented
        packed = value.resolve_conj().contiguous()
        layout = packed._layout
        raw = b""
        if layout.n_elements:
            address = conversion.address_of(packed, "sent to another process")
            raw = ctypes.string_at(address, layout.n_bytes)
        return _rebuilt, (raw, tuple(layout.shape), layout.dtype.name)


def dumps(value: Any) -> bytes:
    """Packed."""
    buffer = io.BytesIO()
    _Pickler(buffer, pickle.HIGHEST_PROTOCOL).dump(value)
    return buffer.getvalue()


def loads(raw: bytes) -> Any:
    """Unpacked; for what dumps() made in a process of our own."""
    return pickle.loads(raw)
