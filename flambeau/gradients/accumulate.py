"""Adding to a leaf's .grad, by torch's rules.

Keeps     the first gradient becomes .grad as it is where nobody else holds it, else a copy; later
          ones are added in place, or out of place under create_graph. .grad has the leaf's strides
          when those are gapless. One lock for all threads: several passes may share leaves.
Touches   graph, hooks, runtime.
Not here  the walk (backward.py).
Source    torch/csrc/autograd/functions/accumulate_grad.h."""

from __future__ import annotations

import threading
from sys import getrefcount
from typing import Any, Final

from flambeau.gradients import hooks
from flambeau.gradients.graph import AccumulateGrad, conformed
from flambeau.gradients.recording.rebase import copied
from flambeau.gradients.runtime import RUNTIME

_LOCK: Final = threading.RLock()


def _local_references() -> int:
    value = object()
    return getrefcount(value)


# References seen of a value that one local name holds and getrefcount is given.
_HELD: Final = _local_references()


def accumulate(leaf: AccumulateGrad, arrived: dict[Any, Any], create_graph: bool) -> None:
    """Add what arrived at a leaf to its tensor's .grad and run its hooks."""
    extras = leaf.extras
    if extras is not None and extras.tensor_hooks:
        cotangents = [arrived.pop(leaf)]
        hooks.run_tensor_hooks(extras, cotangents)
        arrived[leaf] = cotangents.pop()
    tensor = leaf.owner()
    if tensor is None:
        if extras is None or not extras.accumulated:
            arrived.pop(leaf)
            return
        tensor = leaf.variable
    elif tensor._autograd is not leaf:
        arrived.pop(leaf)  # requires_grad was switched off since
        return
    cotangent = arrived.pop(leaf)
    if cotangent._layout is not tensor._layout:
        cotangent = conformed(cotangent, tensor._layout, leaf, 0)
    with _LOCK:
        before = tensor._grad
        if RUNTIME.has_sparse and (cotangent.is_sparse or getattr(before, "is_sparse", False)):
            tensor._grad = _with_sparse(before, cotangent, create_graph)
        elif before is not None:
            if create_graph:
                tensor._grad = before + cotangent
            else:
                before.add_(cotangent)
        elif not create_graph and _obeys(cotangent._layout, tensor._layout) and (
            getrefcount(cotangent) == _HELD and _is_exclusive(cotangent)
        ):  # fmt: skip
            if cotangent._base is not None or cotangent._autograd is not None:
                cotangent = RUNTIME.alias(cotangent)
            tensor._grad = cotangent
        else:
            tensor._grad = _copy(cotangent, tensor._layout)
    hooks.run_leaf_hooks(leaf, tensor)


def _with_sparse(before: Any, cotangent: Any, create_graph: bool) -> Any:
    """What .grad becomes where it or what arrives is sparse."""
    if before is None:
        return cotangent if create_graph else cotangent.detach().clone()
    if before.is_sparse and not cotangent.is_sparse:
        return cotangent + before  # a dense one takes a sparse one, not the other way
    if before.is_sparse or create_graph:
        return before + cotangent
    return cotangent.add_into(before)


def _obeys(have: Any, want: Any) -> bool:
    """Whether a gradient's strides are those its leaf asks for."""
    if have is want:
        return True
    return bool(have.strides == want.strides if want.is_dense else have.is_contiguous)


def _is_exclusive(cotangent: Any) -> bool:
    """Whether no tensor, graph or pending work but this tensor (and its base) holds the memory."""
    storage = cotangent._storage
    # The tensor's own slots: a storage is also the place of views that cover it whole.
    held = _HELD + (2 if cotangent._place is storage else 1)
    base = cotangent._base
    if base is not None:
        if getrefcount(base) != _HELD + 1:
            return False
        if base._layout.n_elements != cotangent._layout.n_elements:
            return False
        held += 2 if base._place is storage else 1
    return getrefcount(storage) == held + RUNTIME.engine_references(storage)


def _copy(cotangent: Any, layout: Any) -> Any:
    """A copy with the leaf's strides if those are gapless, else row-major."""
    if not layout.is_dense or layout.is_contiguous:
        packed = cotangent.contiguous()
        return cotangent.clone() if packed._storage is cotangent._storage else packed
    return copied(cotangent, layout)
