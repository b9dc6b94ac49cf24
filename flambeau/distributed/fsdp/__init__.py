"""torch.distributed.fsdp: modules whose parameters are divided among ranks, of which there is one.

Keeps     with one rank, a module has all of its parameters, and computes what it computes.
Touches   world.py, nn.Module.
Not here  optimizers' states (optim.py)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flambeau.base.dtypes import dtype
from flambeau.base.missing import module_getattr
from flambeau.distributed.world import default_group
from flambeau.nn.modules.module import Module

__all__ = [
    "CPUOffload", "CPUOffloadPolicy", "FSDPModule", "FullyShardedDataParallel", "MixedPrecision",
    "MixedPrecisionPolicy", "OffloadPolicy", "fully_shard",
]  # fmt: skip


@dataclass
class CPUOffload:
    """Whether parameters rest on the CPU: here they do."""

    offload_params: bool = False


@dataclass
class MixedPrecision:
    """Dtypes of parameters, gradients and buffers while a module computes."""

    param_dtype: dtype | None = None
    reduce_dtype: dtype | None = None
    buffer_dtype: dtype | None = None
    keep_low_precision_grads: bool = False
    cast_forward_inputs: bool = False
    cast_root_forward_inputs: bool = True


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """Dtypes of parameters, gradients and results while a module computes."""

    param_dtype: dtype | None = None
    reduce_dtype: dtype | None = None
    output_dtype: dtype | None = None
    cast_forward_inputs: bool = True


@dataclass
class OffloadPolicy:
    """Parameters stay where they are."""


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Parameters rest on the CPU: here they do."""

    pin_memory: bool = True


class FSDPModule:
    """What a module that was given to fully_shard is besides."""

    def unshard(self, async_op: bool = False) -> None:
        """Bring all parameters here, where they are."""

    def reshard(self) -> None:
        """Leave other ranks' parameters to them: there are none."""

    def set_requires_gradient_sync(self, requires_gradient_sync: bool, **named: Any) -> None:
        """Whether gradients are combined over ranks: with one, there is nothing to combine."""


def fully_shard(module: Any, **named: Any) -> Any:
    """The module itself, or the list of them, with all parameters; now an FSDPModule.

    Raises   ValueError: there is no process group
    """
    default_group()
    for each in module if isinstance(module, (list, tuple)) else [module]:
        kind = type(each)
        if not issubclass(kind, FSDPModule):
            each.__class__ = type(f"FSDP{kind.__name__}", (FSDPModule, kind), {})
    return module


class FullyShardedDataParallel(Module):
    """A module around another, which has all of its parameters.

    Raises   ValueError: there is no process group
    """

    def __init__(self, module: Module, process_group: Any = None, *settings: Any,
                 **named: Any) -> None:  # fmt: skip
        super().__init__()
        default_group()
        self._fsdp_wrapped_module = module

    @property
    def module(self) -> Module:
        """The module inside."""
        return self._fsdp_wrapped_module

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module gives."""
        return self._fsdp_wrapped_module(*args, **kwargs)

    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0) -> Any:
        """Scale gradients to a norm of at most max_norm; returns the norm they had."""
        from flambeau.nn.utils import clip_grad_norm_

        return clip_grad_norm_(self.parameters(), max_norm, norm_type)


__getattr__ = module_getattr(__name__)
