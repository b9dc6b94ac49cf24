"""torch.distributed.tensor: tensors on a mesh of processes, of which there is one.

Keeps     a tensor on a mesh of one process is whole: its part is the tensor itself, however it is
          placed.
Touches   device_mesh.py, placement_types.py.
Not here  meshes of several processes, which cannot be made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flambeau.base.missing import module_getattr
from flambeau.distributed.device_mesh import DeviceMesh, init_device_mesh
from flambeau.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard
from flambeau.nn.modules.module import Module
from flambeau.nn.parameter import Parameter
from flambeau.tensor import Tensor

__all__ = [
    "DTensor", "DeviceMesh", "Partial", "Placement", "Replicate", "Shard", "distribute_module",
    "distribute_tensor", "init_device_mesh",
]  # fmt: skip


class DTensor(Tensor):
    """A tensor that knows its mesh and how it lies there."""

    _mesh: DeviceMesh | None = None
    _placements: tuple[Placement, ...] = ()

    @property
    def device_mesh(self) -> DeviceMesh | None:
        """The mesh; None for what was computed of a tensor on one."""
        return self._mesh

    @property
    def placements(self) -> tuple[Placement, ...]:
        """How it lies on each dim of the mesh."""
        return self._placements

    @staticmethod
    def from_local(
        local_tensor: Tensor, device_mesh: DeviceMesh, placements: Sequence[Placement] = (),
        **named: Any,
    ) -> DTensor:  # fmt: skip
        """The tensor whose part on this rank is `local_tensor`."""
        made: DTensor = local_tensor.as_subclass(DTensor)
        made._mesh = device_mesh
        made._placements = tuple(placements) or (Replicate(),) * device_mesh.ndim
        return made

    def to_local(self, **named: Any) -> Tensor:
        """This rank's part: the tensor."""
        return self.as_subclass(Tensor)  # type: ignore[no-any-return]

    def full_tensor(self, **named: Any) -> Tensor:
        """The whole tensor."""
        return self.as_subclass(Tensor)  # type: ignore[no-any-return]

    def redistribute(
        self, device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] = (),
        **named: Any,
    ) -> DTensor:  # fmt: skip
        """The same tensor, otherwise placed."""
        mesh = device_mesh or self._mesh
        if mesh is None:
            raise RuntimeError("DTensor needs a device mesh to be redistributed on")
        return DTensor.from_local(self.as_subclass(Tensor), mesh, placements)


def distribute_tensor(
    tensor: Tensor, device_mesh: DeviceMesh, placements: Sequence[Placement] = (), **named: Any
) -> DTensor:
    """The tensor on a mesh: of one process, the same memory."""
    made = DTensor.from_local(tensor.detach(), device_mesh, placements)
    made.requires_grad_(tensor.requires_grad)
    return made


def distribute_module(
    module: Module, device_mesh: DeviceMesh,
    partition_fn: Callable[[str, Module, DeviceMesh], None] | None = None,
    input_fn: Any = None, output_fn: Any = None,
) -> Module:  # fmt: skip
    """The module with its parameters on a mesh, by partition_fn(name, module, mesh) or whole."""
    for name, each in module.named_modules():
        if partition_fn is not None:
            partition_fn(name, each, device_mesh)
        for key, parameter in list(each._parameters.items()):
            if parameter is not None and not isinstance(parameter.data, DTensor):
                placed = distribute_tensor(parameter.data, device_mesh)
                each.register_parameter(key, Parameter(placed, parameter.requires_grad))
    if input_fn is not None:
        module.register_forward_pre_hook(lambda mod, given: input_fn(mod, given, device_mesh))
    if output_fn is not None:
        module.register_forward_hook(lambda mod, _, made: output_fn(mod, made, device_mesh))
    return module


__getattr__ = module_getattr(__name__)
