"""torch.autograd.forward_ad: dual tensors, whose tangents are worked out when they are asked for.

Keeps     a dual is a place in an ordinary graph; the tangent of a result is J v, by two reverse
          passes from it to the duals of the level.
Touches   functional.py (the two passes), gradients.
Not here  derivatives along directions of whole functions (functional.py, func).

What is computed in no_grad mode has no tangent, and a dual says that it requires gradients."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from flambeau.autograd.functional import along, ones_like
from flambeau.autograd.grad_mode import enable_grad
from flambeau.gradients.entry import grad
from flambeau.gradients.members import requires_grad, set_requires_grad
from flambeau.gradients.runtime import RUNTIME

__all__ = [
    "UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual",
    "unpack_dual",
]  # fmt: skip


class UnpackedDualTensor(NamedTuple):
    """The values of a dual tensor, and the derivatives beside them (None: there are none)."""

    primal: Any
    tangent: Any


class _Dual(NamedTuple):
    place: Any
    tangent: Any
    is_leaf: bool


# The duals of the level that is open; None outside of one. torch has one level for all threads.
_LEVEL: Final[list[list[_Dual]]] = []


def enter_dual_level() -> int:
    """Open the level that duals belong to; there is one at a time."""
    if _LEVEL:
        raise RuntimeError(
            "Nested forward mode AD is not supported at the moment. Please open an issue if you "
            "need this."
        )
    _LEVEL.append([])
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """Close the level: its tensors have no tangents any more."""
    if not _LEVEL:
        raise RuntimeError("Dual level must be a positive number.")
    if level not in (None, 0):
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This "
            "is not supported."
        )
    _LEVEL.pop()


class dual_level:  # noqa: N801 - torch's name
    """A level for a while.

    >>> import flambeau as torch
    >>> with dual_level():
    ...     unpack_dual(make_dual(torch.tensor(3.0), torch.tensor(1.0)) ** 2).tangent
    tensor(6.)
    """

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *error: object) -> None:
        exit_dual_level()


def check_tangent(primal: Any, tangent: Any) -> None:
    """Refuse a tangent of another shape."""
    have, want = tangent._layout.shape, primal._layout.shape
    if have != want:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original "
            f"Tensor, this is not supported. Tensor is of size {list(want)} while the given "
            f"forward gradient is of size {list(have)}."
        )


def make_dual(tensor: Any, tangent: Any, *, level: int | None = None) -> Any:
    """The tensor with a tangent, to compute with."""
    if not _LEVEL:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to "
            "enter_dual_level() first."
        )
    for name, each in (("primal", tensor), ("tangent", tangent)):
        if each._layout.dtype.category < 2:
            raise ValueError(
                f"Expected {name} to be floating point or complex, but got: {each._layout.dtype}"
            )
    check_tangent(tensor, tangent)
    if tangent._layout.strides != tensor._layout.strides:
        tangent = tensor.detach().clone().copy_(tangent)  # it lies as its primal does
    with enable_grad():
        if requires_grad(tensor):
            place = RUNTIME.functions.view(tensor, tensor._layout.shape)
            is_leaf = False
        else:
            place = RUNTIME.alias(tensor)
            set_requires_grad(place, True)
            is_leaf = True
    _LEVEL[-1].append(_Dual(place, tangent, is_leaf))
    return place


def unpack_dual(tensor: Any, *, level: int | None = None) -> UnpackedDualTensor:
    """The values, and the derivatives along the tangents of the level's duals."""
    if not _LEVEL or not requires_grad(tensor):
        return UnpackedDualTensor(tensor, None)
    duals = _LEVEL[-1]
    if not duals:
        return UnpackedDualTensor(tensor, None)
    for dual in duals:
        if dual.place is tensor:
            return UnpackedDualTensor(tensor.detach() if dual.is_leaf else tensor, dual.tangent)
    with enable_grad():
        found = grad(
            tensor, [dual.place for dual in duals], ones_like(tensor), retain_graph=True,
            allow_unused=True,
        )  # fmt: skip
        reached = [each for each, value in zip(duals, found, strict=True) if value is not None]
        if not reached:
            return UnpackedDualTensor(tensor, None)
        places = tuple([dual.place for dual in reached])
        (tangent,) = along((tensor,), places, tuple([dual.tangent for dual in reached]), True)
    if all(dual.is_leaf and not requires_grad(dual.tangent) for dual in reached):
        only = {id(place) for place in places}
        return UnpackedDualTensor(_without(tensor, only), _without(tangent, only))
    return UnpackedDualTensor(tensor, tangent)


def _without(value: Any, places: set[int]) -> Any:
    """The value without its graph, where that leads to duals alone."""
    waiting, seen = [value.grad_fn], set()
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        leaf = getattr(node, "variable", None)
        if leaf is not None and id(leaf) not in places:
            return value
        waiting += [each for each, _ in node.next_functions]
    return value.detach()
