"""What a tensor says about its place in the graph: requires_grad, grad_fn, is_leaf, grad.

Keeps     a view follows its base: after an in-place write with gradient anywhere in its family, its
          history is made anew from the base's when somebody looks. torch's rules and errors.
Touches   graph, rebase, runtime.
Not here  the Tensor class that shows these as members (tensor/)."""

from __future__ import annotations

import sys
import warnings
from types import FrameType
from typing import Any, Final

from flambeau.base.errors import helped
from flambeau.engine import callsite
from flambeau.gradients.graph import AccumulateGrad, exposed
from flambeau.gradients.recording.rebase import StridedNode
from flambeau.gradients.runtime import RUNTIME
from flambeau.gradients.saved import INFERENCE

_NOT_A_LEAF: Final = (
    "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad "
    "attribute won't be populated during autograd.backward(). If you indeed want the .grad field "
    "to be populated for a non-leaf Tensor, use .retain_grad() on the non-leaf Tensor. If you "
    "access the non-leaf Tensor by mistake, make sure you access the leaf Tensor instead. See "
    "github.com/pytorch/pytorch/pull/30531 for more information."
)


def history(tensor: Any) -> Any:
    """Where the tensor comes from: None, a Node, an Output or an AccumulateGrad."""
    base = tensor._base
    if base is None:
        return tensor._autograd
    if tensor._rebased is not base._rebased:
        tensor._rebased = base._rebased
        before = tensor._autograd
        made_from = base._autograd
        tensor._autograd = None if made_from is None else StridedNode(tensor, base)
        move_retained(before, tensor)
        return tensor._autograd
    own = tensor._autograd
    if own is None and base._autograd is not None and tensor._layout.dtype.category >= 2:
        # A view made in no_grad mode, or before its base began to require gradients: as in torch,
        # a leaf of its own.
        own = tensor._autograd = AccumulateGrad(tensor)
    return own


def move_retained(before: Any, tensor: Any) -> None:
    """After an in-place write, retain_grad means the gradient of the value it left."""
    node = getattr(before, "node", before)
    if node is None or node.extras is None or tensor._autograd is None:
        return
    if node.extras.retained.pop(before.output_index, None) is not None:
        from flambeau.gradients.hooks import retain_grad

        retain_grad(tensor)


def requires_grad(tensor: Any) -> bool:
    """Whether operators on the tensor are recorded for gradients."""
    return history(tensor) is not None


def is_leaf(tensor: Any) -> bool:
    """Whether the tensor was made by the user, not by a recorded operator."""
    found = history(tensor)
    return found is None or found.__class__ is AccumulateGrad


def is_view(tensor: Any) -> bool:
    """Whether the tensor is a view that gradients know as one."""
    return tensor._base is not None


def grad_fn(tensor: Any) -> Any:
    """The node that made the tensor; None for a leaf."""
    found = history(tensor)
    return None if found is None or found.__class__ is AccumulateGrad else exposed(found)


def output_nr(tensor: Any) -> int:
    """Which output of grad_fn the tensor is."""
    found = history(tensor)
    return 0 if found is None else int(found.output_index)


def retains_grad(tensor: Any) -> bool:
    """Whether .grad of this non-leaf is kept."""
    found = history(tensor)
    if found is None or found.__class__ is AccumulateGrad:
        return False
    node = getattr(found, "node", found)
    return node.extras is not None and found.output_index in node.extras.retained


def get_grad(tensor: Any) -> Any:
    """`.grad`; torch's warning where it can never be anything."""
    grad = tensor._grad
    if grad is None and not is_leaf(tensor) and not retains_grad(tensor):
        warnings.warn(_NOT_A_LEAF, stacklevel=3)
    return grad


def set_grad(tensor: Any, grad: Any) -> None:
    """Assign `.grad`: None, or a tensor of equal shape, dtype and device."""
    if grad is None:
        tensor._grad = None
        return
    if not isinstance(grad, RUNTIME.tensor) and not getattr(grad, "is_sparse", False):
        raise TypeError(
            f"assigned grad expected to be a Tensor or None but got grad of type "
            f"{type(grad).__name__}"
        )
    if grad is tensor:
        raise RuntimeError("can't assign Variable as its own grad")
    want, have = tensor._layout, grad._layout
    if want.dtype is not have.dtype:
        raise RuntimeError(
            helped(
                f"attempting to assign a gradient with dtype '{_type(have)}' to a tensor with "
                f"grad_dtype '{_type(want, True)}'. The gradient must match the tensor's "
                "grad_dtype (defaults to the tensor's dtype).",
                fix=f"x.grad = grad.to({want.dtype})",
            )
        )
    if want.device is not have.device and want.device.type != have.device.type:
        raise RuntimeError(
            f"attempting to assign a gradient with device type '{have.device.type}' to a tensor "
            f"with device type '{want.device.type}'. Please ensure that the gradient and the "
            "tensor are on the same device"
        )
    if want.shape != have.shape:
        raise RuntimeError(
            f"attempting to assign a gradient of size '{list(have.shape)}' to a tensor of size "
            f"'{list(want.shape)}'. Please ensure that the gradient and the tensor are the same "
            "size"
        )
    tensor._grad = grad


_SHORT: Final = {"float64": "double", "float32": "float", "float16": "c10::Half",
                 "bfloat16": "c10::BFloat16", "int64": "long int", "int32": "int"}  # fmt: skip


def _type(layout: Any, title: bool = False) -> str:
    if title:
        return str(RUNTIME.type_name(layout)).removeprefix("torch.").removesuffix("Tensor")
    name: str = layout.dtype.name
    return _SHORT.get(name, name)


NEEDS_FLOATING: Final = "only Tensors of floating point and complex dtype can require gradients"
OF_NEW_TENSORS: Final = "O" + NEEDS_FLOATING[1:]  # of the argument requires_grad=True


# What stands around functions that programs call.
_WRAPPERS: Final = ("__call__", "called", "unasked")


def _no_flag(flag: Any) -> TypeError:
    """torch's error for requires_grad="False" and the like, which names the function called."""
    frame: FrameType | None = sys._getframe(2)
    name = ""
    while frame is not None and callsite.is_internal(frame.f_code):
        if frame.f_code.co_name not in _WRAPPERS:
            name = frame.f_code.co_name
        frame = frame.f_back
    return TypeError(
        helped(
            f"{name}(): argument 'requires_grad' must be bool, not {type(flag).__name__}",
            fix="requires_grad=True or requires_grad=False",
        )
    )


def set_requires_grad(tensor: Any, flag: bool, message: str = NEEDS_FLOATING) -> None:
    """Make a leaf of the tensor, or take it out of all graphs to come.

    Raises TypeError for a flag that is no bool: requires_grad="False" would mean yes."""
    if flag.__class__ is not bool:
        raise _no_flag(flag)
    own = history(tensor)
    if own is not None and own.__class__ is not AccumulateGrad:
        if flag:
            return
        raise RuntimeError(
            "you can only change requires_grad flags of leaf variables. If you want to use a "
            "computed variable in a subgraph that doesn't require differentiation use "
            "var_no_grad = var.detach()."
        )
    if not flag:
        if own is not None:
            tensor._frozen = own  # hooks and identity come back with requires_grad_(True)
            tensor._autograd = None
        return
    if tensor._layout.dtype.category < 2:
        raise RuntimeError(
            helped(message, given=f"dtype {tensor._layout.dtype}", fix="convert with .float()")
        )
    if tensor._versions is INFERENCE and not RUNTIME.is_inference_mode():
        raise RuntimeError(
            "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed."
        )
    if own is None:
        frozen = tensor.__dict__.pop("_frozen", None)
        tensor._autograd = AccumulateGrad(tensor) if frozen is None else frozen


def assign_requires_grad(tensor: Any, flag: Any) -> None:
    """tensor.requires_grad = flag."""
    if not isinstance(flag, bool):
        raise RuntimeError("requires_grad must be a bool")
    set_requires_grad(tensor, flag)


def requires_grad_(tensor: Any, requires_grad: bool = True) -> Any:
    """Ask for gradients of a leaf, or stop; returns the tensor."""
    if not isinstance(requires_grad, bool):
        raise TypeError(
            "requires_grad_(): argument 'requires_grad' (position 1) must be bool, not "
            f"{type(requires_grad).__name__}"
        )
    message = NEEDS_FLOATING.replace(" and complex", "")
    set_requires_grad(tensor, requires_grad, message)
    return tensor


def detach_(tensor: Any) -> Any:
    """Cut the tensor itself from its graph; it becomes a leaf without gradient."""
    if tensor._base is not None:
        raise RuntimeError(
            helped(
                "Can't detach views in-place. Use detach() instead. If you are using "
                "DistributedDataParallel (DDP) for training, and gradient_as_bucket_view is set as "
                "True, gradients are views of DDP buckets, and hence detach_() cannot be called on "
                "these gradients. To fix this error, please refer to the Optimizer.zero_grad() "
                "function in torch/optim/optimizer.py as the solution.",
                fix="x = x.detach()",
            )
        )
    tensor._autograd = None
    return tensor
