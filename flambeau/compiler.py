"""torch.compiler: marks for a compiler that has to be asked; here nothing has to be.

Keeps     a marked function comes back as itself; nothing is being traced, ever.
Touches   nothing.
Not here  fusion and compilation (engine, codegen), how to look at them (debug)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from flambeau.base.missing import module_getattr
from flambeau.tensor.public.settings import compile

__all__ = [
    "allow_in_graph", "assume_constant_result", "compile", "cudagraph_mark_step_begin", "disable",
    "is_compiling", "is_dynamo_compiling", "is_exporting", "reset", "set_stance",
]  # fmt: skip


def is_compiling() -> bool:
    """Whether the caller is being traced instead of run: no.

    >>> is_compiling(), is_dynamo_compiling(), is_exporting()
    (False, False, False)
    """
    return False


def is_dynamo_compiling() -> bool:
    """Whether the caller is being traced instead of run: no."""
    return False


def is_exporting() -> bool:
    """Whether the caller is being exported: no."""
    return False


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """The function itself, which was not traced before either; without one, a decorator.

    >>> disable(len) is len, disable(recursive=False)(len) is len
    (True, True)
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        return function

    return decorate if fn is None else fn


def allow_in_graph(fn: Any) -> Any:
    """The function itself, or the list of them."""
    return fn


def assume_constant_result(fn: Any) -> Any:
    """The function itself: it is called each time."""
    return fn


def set_stance(
    stance: str = "default", *, skip_guard_eval_unsafe: bool = False, force_backend: Any = None
) -> AbstractContextManager[None]:
    """A block in which everything runs as it does outside: there is one way to run."""
    return nullcontext()


def reset() -> None:
    """Forget what was traced: nothing was."""


def cudagraph_mark_step_begin() -> None:
    """A new step of a CUDA graph begins: there is none."""


__getattr__ = module_getattr(__name__, names=__all__)
