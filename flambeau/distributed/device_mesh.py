"""torch.distributed.device_mesh: processes laid out in dims; here one, in dims of size one.

Keeps     a mesh is of this process alone.
Touches   world.py.
Not here  tensors on a mesh (tensor/)."""

from __future__ import annotations

import math
from typing import Any

from flambeau.base.dtypes import int32
from flambeau.base.errors import helped
from flambeau.base.missing import module_getattr
from flambeau.distributed.world import default_group
from flambeau.tensor import Tensor
from flambeau.tensor.creation import as_tensor
from flambeau.tensor.public.ranges import arange

__all__ = ["DeviceMesh", "init_device_mesh"]


class DeviceMesh:
    """Ranks in dims that may have names.

    Raises   RuntimeError: other ranks than this one
    """

    def __init__(
        self, device_type: str, mesh: Any, *, mesh_dim_names: tuple[str, ...] | None = None,
        **named: Any,
    ) -> None:  # fmt: skip
        self.device_type = device_type
        self.mesh: Tensor = as_tensor(mesh, dtype=int32)
        self.mesh_dim_names = mesh_dim_names
        self._group = default_group()
        if self.mesh.numel() != 1:
            raise RuntimeError(
                helped(
                    f"Mesh should not be bigger than default world size 1, but found "
                    f"{self.mesh.numel()} ranks!",
                    given=f"a mesh of shape {tuple(self.mesh.shape)}",
                    fix="a mesh whose dims are all of size 1",
                )
            )

    @property
    def ndim(self) -> int:
        """Number of dims."""
        return self.mesh.ndim

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the dims: ones."""
        return tuple(self.mesh.shape)

    def size(self, mesh_dim: int | None = None) -> int:
        """Number of ranks, in all or along one dim."""
        return 1

    def get_rank(self) -> int:
        """This process's rank."""
        return 0

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """This process's place along a dim."""
        return 0

    def get_coordinate(self) -> list[int]:
        """This process's place along all dims."""
        return [0] * self.ndim

    def get_group(self, mesh_dim: int | str | None = None) -> Any:
        """The group of the ranks along a dim."""
        return self._group

    def __getitem__(self, names: str | tuple[str, ...]) -> DeviceMesh:
        wanted = (names,) if isinstance(names, str) else tuple(names)
        unknown = [each for each in wanted if each not in (self.mesh_dim_names or ())]
        if unknown:
            raise KeyError(f"Invalid mesh_dim_names {wanted} specified. Valid mesh_dim_names are "
                           f"{list(self.mesh_dim_names or ())}.")  # fmt: skip
        mesh = self.mesh.reshape((1,) * len(wanted))
        return DeviceMesh(self.device_type, mesh, mesh_dim_names=wanted)

    def __repr__(self) -> str:
        return f"DeviceMesh({self.shape}, device: '{self.device_type}')"


def init_device_mesh(
    device_type: str, mesh_shape: tuple[int, ...], *,
    mesh_dim_names: tuple[str, ...] | None = None, **named: Any,
) -> DeviceMesh:  # fmt: skip
    """A mesh of a shape, of this process; the default group is made where there is none.

    Raises   RuntimeError: a shape of more than one process
    """
    from flambeau.distributed.world import init_process_group, is_initialized

    if mesh_dim_names is not None and len(mesh_dim_names) != len(mesh_shape):
        raise RuntimeError(
            "mesh_shape and mesh_dim_names should have same length! Found "
            f"len(mesh_dim_names): {len(mesh_dim_names)} and len(mesh_shape):{len(mesh_shape)}."
        )
    if not is_initialized():
        init_process_group(rank=0, world_size=1)
    ranks = arange(math.prod(mesh_shape), dtype=int32).reshape(mesh_shape)
    return DeviceMesh(device_type, ranks, mesh_dim_names=mesh_dim_names)


__getattr__ = module_getattr(__name__)
