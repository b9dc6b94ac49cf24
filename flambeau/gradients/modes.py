"""Grad mode and inference mode of the current thread, as contexts and decorators.

Keeps     the mode lives on the thread's stream, so that recording an operator looks up one
          thread-local and no more.
Touches   engine.stream.
Not here  what recording does with the mode (record.py)."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Generator
from types import TracebackType
from typing import Any, TypeVar

from flambeau.engine.stream import current
from flambeau.gradients.saved import INFERENCE

__all__ = [
    "enable_grad", "inference_mode", "is_grad_enabled", "is_inference", "is_inference_mode_enabled",
    "mark_inference", "no_grad", "set_grad_enabled",
]  # fmt: skip

_Function = TypeVar("_Function", bound=Callable[..., Any])


def is_grad_enabled() -> bool:
    """Whether operators on this thread record gradients."""
    return bool(current().grad_enabled)


def is_inference_mode_enabled() -> bool:
    """Whether this thread is inside `inference_mode`."""
    return bool(current().inference)


def set_mode(enabled: bool) -> bool:
    """Set the grad mode and return the one before; inference mode keeps it off."""
    stream = current()
    before = bool(stream.grad_enabled)
    stream.grad_enabled = enabled and not stream.inference
    return before


def mark_inference(result: Any) -> None:
    """Mark what was made in inference mode: it has no version and can never be saved."""
    for tensor in result if isinstance(result, (tuple, list)) else (result,):
        tensor._versions = INFERENCE


def is_inference(tensor: Any) -> bool:
    """Whether the tensor was made in inference mode."""
    return tensor._versions is INFERENCE


def resumed(make: Callable[[], Any], function: Callable[..., Any]) -> Callable[..., Any]:
    """A generator function whose every step runs in a fresh context of `make`."""

    @functools.wraps(function)
    def wrapper(*arguments: Any, **named: Any) -> Generator[Any, Any, Any]:
        generator = function(*arguments, **named)
        try:
            with make():
                response = generator.send(None)
            while True:
                try:
                    request = yield response
                except GeneratorExit:
                    with make():
                        generator.close()
                    raise
                except BaseException as error:
                    with make():
                        response = generator.throw(error)
                else:
                    with make():
                        response = generator.send(request)
        except StopIteration as stop:
            return stop.value

    return wrapper


class Mode:
    """Base of the contexts: `with mode():`, `@mode()` and, where torch allows it, `@mode`.

    Decorates functions, generator functions (the mode holds between steps, not outside) and
    coroutine functions' bodies as torch does; a class gets the mode around its __init__.
    """

    def __enter__(self) -> Any:
        raise NotImplementedError

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        raise NotImplementedError

    def clone(self) -> Mode:
        """A fresh context of the same kind, so that a decorated function may call itself."""
        return type(self)()

    def __call__(self, function: _Function) -> _Function:
        if isinstance(function, type):
            warnings.warn(
                "Decorating classes is deprecated and will be disabled in future versions. You "
                "should only decorate functions or methods. To preserve the current behavior of "
                "class decoration, you can directly decorate the `__init__` method and nothing "
                "else.",
                FutureWarning,
                stacklevel=2,
            )
            kind: Any = function
            kind.__init__ = self(kind.__init__)
            return function
        import inspect  # only decorators need it, and it brings a dozen modules

        if inspect.isgeneratorfunction(function):
            return resumed(self.clone, function)  # type: ignore[return-value]

        @functools.wraps(function)
        def wrapper(*arguments: Any, **named: Any) -> Any:
            with self.clone():
                return function(*arguments, **named)

        return wrapper  # type: ignore[return-value]


class _Bare(Mode):
    """A mode that decorates without parentheses too: `@no_grad`."""

    enabled = False

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        made = object.__new__(cls)
        return made if function is None else made(function)

    def __init__(self, function: Callable[..., Any] | None = None) -> None:
        self.before = False

    def __enter__(self) -> None:
        self.before = set_mode(self.enabled)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        set_mode(self.before)


class no_grad(_Bare):  # noqa: N801 - torch's name
    """Record no gradients inside: `with no_grad():`, `@no_grad()` or `@no_grad`."""


class enable_grad(_Bare):  # noqa: N801 - torch's name
    """Record gradients inside, also within `no_grad`."""

    enabled = True


class set_grad_enabled(Mode):  # noqa: N801 - torch's name
    """Set the grad mode: at once as a function, until the end of the block as a context."""

    def __init__(self, mode: bool) -> None:
        self.mode = bool(mode)
        self.before = set_mode(self.mode)

    def __call__(self, function: _Function) -> _Function:
        set_mode(self.before)  # it was set when the decorator was made; only calls should see it
        return super().__call__(function)

    def __enter__(self) -> None:
        set_mode(self.mode)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        set_mode(self.before)

    def clone(self) -> set_grad_enabled:
        """Another context with the same mode."""
        return set_grad_enabled(self.mode)

    def __repr__(self) -> str:
        return f"torch.autograd.grad_mode.set_grad_enabled(mode={self.mode})"


class inference_mode(Mode):  # noqa: N801 - torch's name
    """Like no_grad, and what is made inside can never take part in a graph."""

    def __new__(cls, mode: Any = True) -> Any:
        made = object.__new__(cls)
        if isinstance(mode, bool):
            return made
        made.__init__(True)  # type: ignore[misc]
        return made(mode)  # decorator without parentheses

    def __init__(self, mode: bool = True) -> None:
        self.mode = mode
        self.before = (False, False)

    def __enter__(self) -> None:
        stream = current()
        self.before = (bool(stream.grad_enabled), bool(stream.inference))
        stream.inference = self.mode
        # Leaving inference mode by inference_mode(False) switches recording on again.
        stream.grad_enabled = not self.mode

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        stream = current()
        stream.grad_enabled, stream.inference = self.before

    def clone(self) -> inference_mode:
        """Another context with the same mode."""
        return inference_mode(self.mode)
