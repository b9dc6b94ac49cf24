"""torch.utils.dlpack: tensors out of other libraries' arrays that share their memory.

Keeps     nothing of its own.
Touches   nothing.
Not here  the sharing (tensor.sharing)."""

from __future__ import annotations

from typing import Any

from flambeau.base.missing import module_getattr
from flambeau.tensor.public.members import from_dlpack

__all__ = ["from_dlpack", "to_dlpack"]


def to_dlpack(tensor: Any) -> Any:
    """The capsule by which another library reads the tensor's memory."""
    return tensor.__dlpack__()


__getattr__ = module_getattr(__name__, names=__all__)
