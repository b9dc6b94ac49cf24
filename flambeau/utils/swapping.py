"""swap_tensors: two tensors change places while both stay the objects they are.

Keeps     class, attributes, memory and history go over together; a graph that held a leaf before
          raises when its pass reaches it.
Touches   tensors' slots, gradients.graph's leaves.
Not here  modules that swap their parameters (nn.modules.conversions)."""

from __future__ import annotations

import weakref
from typing import Any, Final

from flambeau.gradients.graph import AccumulateGrad

_SLOTS: Final = ("_storage", "_layout", "_offset", "_place", "_autograd", "_base")
_POISON: Final = (
    "Trying to execute AccumulateGrad node that was poisoned by swap_tensors this can happen when "
    "you try to run backward on a tensor that was swapped. For a module m with "
    "`torch.__future__.set_swap_module_params_on_conversion(True)` you should not change the "
    "device or dtype of the module (e.g. `m.cpu()` or `m.half()`) between running forward and "
    "backward. To resolve this, please only change the device/dtype before running forward (or "
    "after both forward and backward)."
)


def _raise_poison() -> Any:
    """Stands where a graph that was made before looks for its leaf's tensor."""
    raise RuntimeError(_POISON)


def _leaf(tensor: Any) -> Any:
    own = tensor._autograd
    return own if own.__class__ is AccumulateGrad else None


def _check_weak_references(tensor: Any, name: str) -> None:
    leaf = _leaf(tensor)
    own = None if leaf is None else leaf.owner
    if any(each is not own for each in weakref.getweakrefs(tensor)):
        raise RuntimeError(f"Cannot swap {name} because it has weakref associated with it")


def swap_tensors(t1: Any, t2: Any) -> None:
    """Give each of two tensors the class, attributes, memory and history of the other.

    Raises   RuntimeError: somebody holds one of them weakly.

    >>> import flambeau as torch
    >>> one, other = torch.ones(2), torch.zeros(3)
    >>> torch.utils.swap_tensors(one, other)
    >>> one
    tensor([0., 0., 0.])
    """
    _check_weak_references(t1, "t1")
    _check_weak_references(t2, "t2")
    t1.__class__, t2.__class__ = t2.__class__, t1.__class__
    t1.__dict__, t2.__dict__ = t2.__dict__, t1.__dict__
    for slot in _SLOTS:
        one = getattr(t1, slot)
        setattr(t1, slot, getattr(t2, slot))
        setattr(t2, slot, one)
    for tensor in (t1, t2):
        leaf = _leaf(tensor)
        if leaf is None:
            continue
        if leaf.extras is not None and leaf.extras.tensor_hooks:
            leaf.owner = weakref.ref(tensor)
            continue
        leaf.owner = _raise_poison
        tensor._autograd = AccumulateGrad(tensor)
