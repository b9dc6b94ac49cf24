"""copy, deepcopy and pickle: tensors taken apart and put together again.

Keeps     deep copies share memory as the tensors that are copied share it; what comes back is a
          leaf.
Touches   conversion, creation, gradients.members.
Not here  PyTorch's files (io), processes of a DataLoader (utils.data)."""

from __future__ import annotations

import copy
import ctypes
from typing import Any, Final

from flambeau.base.devices import CPU, META, Device
from flambeau.base.dtypes import dtype
from flambeau.base.layout import contiguous, layout
from flambeau.engine.view import UNPLACED
from flambeau.gradients import members
from flambeau.tensor import conversion, creation, functions
from flambeau.tensor.tensor import Tensor, new_tensor

# What the engine keeps on a tensor itself; all else is the program's.
_RARE: Final = frozenset(
    ("_creation", "_frozen", "_grad", "_rebased", "_versions", "_view_recipe")
)  # fmt: skip
_FLAGS: Final = ("_is_buffer", "_is_param")


def _is_kept(tensor: Tensor, key: str) -> bool:
    """Whether an attribute goes with a copy."""
    if not key.startswith("_") or key in _FLAGS:
        return True
    return type(tensor) is not Tensor and key not in _RARE


def rebuilt(
    kind: type[Tensor] | None, raw: bytes, shape: tuple[int, ...], strides: tuple[int, ...],
    element: dtype, needs_grad: bool, extra: Any, device: Device = CPU,
) -> Tensor:  # fmt: skip
    """A pickled tensor."""
    given = layout(shape, strides, element, device)
    made = new_tensor(creation.from_bytes(raw, (given.span,), element, device)._storage, given)
    if kind is not None and kind is not Tensor:
        made = kind._from_tensor(made)
    if needs_grad:
        members.set_requires_grad(made, True)
    if extra:
        made.__dict__.update(extra)
    return made


def reduce_ex(self: Tensor, protocol: Any) -> Any:
    """How pickle takes a tensor apart: what comes back is a leaf with its elements, in its order
    of dims where they fill their memory."""
    plain = self.detach()
    if not self._layout.is_dense or self._layout.is_conj:
        plain = functions.contiguous_copy(plain)
    given = plain._layout
    raw = b""
    if given.n_elements and given.device is not META:
        raw = ctypes.string_at(conversion.address_of(plain, "pickle"), given.span_bytes)
    extra = {key: value for key, value in self.__dict__.items() if _is_kept(self, key)}
    needs_grad = members.requires_grad(self)
    return rebuilt, (
        None if type(self) is Tensor else type(self), raw, given.shape, given.strides, given.dtype,
        needs_grad, extra, given.device,
    )  # fmt: skip


def copy_of(self: Tensor) -> Tensor:
    """copy.copy: another tensor over the same memory."""
    made: Tensor = functions.alias(self.detach())
    made._base = None
    if type(self) is not Tensor:
        made = type(self)._from_tensor(made)
    if members.requires_grad(self):
        members.set_requires_grad(made, True)
    return made


def _copied_storage(storage: Any, memo: dict[int, Any]) -> Any:
    """A storage copied whole, once for all tensors that share it."""
    copied = memo.get(id(storage))
    if copied is None:
        given = storage.layout
        row = new_tensor(storage, contiguous((given.span,), given.dtype, given.device))
        copied = memo[id(storage)] = functions.clone(row)._storage
        memo.setdefault(id(memo), []).append(storage)  # its id is not to be another's meanwhile
    return copied


def deepcopy(self: Tensor, memo: dict[int, Any]) -> Tensor:
    """copy.deepcopy: a leaf with memory of its own, shared as the tensors that are copied share."""
    if id(self) in memo:
        return memo[id(self)]
    if not members.is_leaf(self):
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
            "protocol at the moment.  If you were attempting to deepcopy a module, this may be "
            "because of a torch.nn.utils.weight_norm usage, see "
            "https://github.com/pytorch/pytorch/pull/103001"
        )
    made = new_tensor(_copied_storage(self._storage, memo), self._layout)
    if self._offset:
        made._offset, made._place = self._offset, UNPLACED
    if type(self) is not Tensor:
        made = type(self)._from_tensor(made)
    if members.requires_grad(self):
        members.set_requires_grad(made, True)
    if self._grad is not None:
        made._grad = deepcopy(self._grad, memo)
    for key, value in self.__dict__.items():
        if _is_kept(self, key):
            made.__dict__[key] = copy.deepcopy(value, memo)
    memo[id(self)] = made
    return made
