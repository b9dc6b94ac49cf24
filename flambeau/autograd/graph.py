"""torch.autograd.graph: nodes, edges, saved-tensor hooks, multi-tensor hooks.

Keeps     torch's names.
Touches   gradients (graph, entry, saved, hooks).
Not here  the graph itself."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Self

from flambeau.base.errors import helped
from flambeau.gradients.backward import current_pass
from flambeau.gradients.entry import GradientEdge, get_gradient_edge
from flambeau.gradients.graph import Node
from flambeau.gradients.hooks import RemovableHandle, register_hook
from flambeau.gradients.members import history, requires_grad
from flambeau.gradients.saved import bump, disable_saved_tensors_hooks, saved_tensors_hooks

__all__ = [
    "GradientEdge", "Node", "allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks",
    "get_gradient_edge", "increment_version", "register_multi_grad_hook", "save_on_cpu",
    "saved_tensors_hooks",
]  # fmt: skip


class save_on_cpu(saved_tensors_hooks):  # noqa: N801 - torch's name
    """Keep saved values on the CPU and move them back for the backward pass."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack(tensor: Any) -> Any:
            return tensor.device, tensor.cpu()

        def unpack(packed: Any) -> Any:
            device, tensor = packed
            return tensor.to(device)

        super().__init__(pack, unpack)


class allow_mutation_on_saved_tensors:  # noqa: N801 - torch's name
    """A context in which saved values may be written in place: the graph keeps what was saved.

    Each value is copied when it is saved. Graphs recorded inside are differentiated inside.

    >>> import flambeau as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> with allow_mutation_on_saved_tensors():
    ...     y = x * 2
    ...     z = (y * y).sum()
    ...     _ = y.zero_()
    ...     z.backward()
    >>> x.grad
    tensor([8., 8.])
    """

    def __init__(self) -> None:
        self._is_open = False
        self._hooks = saved_tensors_hooks(self._pack, self._unpack)

    def _pack(self, tensor: Any) -> Any:
        return tensor.detach().clone()

    def _unpack(self, kept: Any) -> Any:
        if not self._is_open:
            raise AssertionError(
                helped(
                    "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context"
                    "in which the graph was originally recorded.",
                    fix="call backward() inside the with block",
                )
            )
        return kept

    def clear(self) -> None:
        """Accepted for torch's sake: a copy goes with the graph that holds it."""

    def __enter__(self) -> Self:
        self._hooks.__enter__()
        self._is_open = True
        return self

    def __exit__(self, *error: object) -> None:
        self._is_open = False
        self._hooks.__exit__(*error)


def increment_version(tensor: Any) -> None:
    """Say that a tensor (or several) was written in a way flambeau cannot see."""
    tensors = (tensor,) if not isinstance(tensor, (list, tuple)) else tensor
    for each in tensors:
        bump(each)


class _Handles(RemovableHandle):
    """One handle for the hooks of several tensors."""

    def __init__(self, handles: Sequence[RemovableHandle]) -> None:
        self.handles = tuple(handles)

    def remove(self) -> None:
        """Remove them all."""
        for handle in self.handles:
            handle.remove()


def register_multi_grad_hook(
    tensors: Sequence[Any], fn: Callable[..., Any], *, mode: str = "all"
) -> RemovableHandle:
    """Call fn once a backward pass knows the gradients of all tensors (or of any of them).

    mode "all": fn([grads, None where there was none]) after the last one that takes part;
    mode "any": fn(grad) at the first.
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    for each in tensors:
        if not requires_grad(each):
            raise AssertionError(
                helped(
                    "Expected gradient function to be set",
                    given="a tensor that does not require gradients", fix="leave it out",
                )
            )  # fmt: skip
    histories = [history(each) for each in tensors]
    lock = threading.Lock()
    passes: dict[int, list[Any]] = {}

    def hook_of(position: int) -> Callable[[Any], None]:
        def hook(grad: Any) -> None:
            walk = current_pass()
            with lock:
                seen = passes.setdefault(id(walk), [0, [None] * len(tensors)])
                seen[0] += 1
                seen[1][position] = grad
                first = seen[0] == 1
                last = seen[0] == walk.count_of(histories)
                if last:
                    del passes[id(walk)]
            if mode == "any" and first:
                fn(grad)
            if mode == "all" and last:
                fn(seen[1])

        return hook

    return _Handles([register_hook(each, hook_of(n)) for n, each in enumerate(tensors)])
