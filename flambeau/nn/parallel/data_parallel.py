"""DataParallel, which has one device to run on here.

Keeps     the wrapped module is `module`, so that state dicts have torch's keys.
Touches   nn.modules.
Not here  several processes (distributed.py)."""

from __future__ import annotations

from typing import Any

from flambeau.base.missing import module_getattr
from flambeau.nn.modules.module import Module


class DataParallel(Module):
    """Runs a module; without GPUs, as torch does, on the inputs as they are."""

    def __init__(
        self, module: Any, device_ids: Any = None, output_device: Any = None, dim: int = 0
    ) -> None:
        super().__init__()
        self.module = module
        self.dim = dim
        self.device_ids: list[Any] = []

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.module(*inputs, **kwargs)


__getattr__ = module_getattr(__name__)
