"""torch.types: names for annotations.

Keeps     what programs write in annotations.
Touches   base.dtypes, base.devices.
Not here  any logic."""

from __future__ import annotations

import builtins
import os
from collections.abc import Sequence
from typing import Any

from flambeau.base import devices, dtypes
from flambeau.base.missing import module_getattr
from flambeau.tensor import Size, Tensor

__all__ = ["Device", "FileLike", "Number"]

Number = builtins.int | builtins.float | builtins.bool
FileLike = str | os.PathLike[str] | Any
Device = devices.Device | str | builtins.int | None
_device, _dtype = devices.Device, dtypes.dtype
_int, _float, _bool, _complex = builtins.int, builtins.float, builtins.bool, builtins.complex
_size = Size | list[builtins.int] | tuple[builtins.int, ...]
_TensorOrTensors = Tensor | Sequence[Tensor]

__getattr__ = module_getattr(__name__)
