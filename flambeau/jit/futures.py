"""Future: a value that may not be there yet, and what is done once it is.

Keeps     a value is set once; callbacks run in the thread that sets it, in the order they came.
Touches   threading.
Not here  who computes the value: torch.jit.fork does at once, threads of a program later."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Future(Generic[T]):
    """A value of whoever set_result()s or set_exception()s it.

    >>> made = Future()
    >>> later = made.then(lambda future: future.wait() + 1)
    >>> made.set_result(1)
    >>> later.wait()
    2
    """

    def __init__(self, *, devices: Any = None) -> None:
        self._is_there = threading.Event()
        self._lock = threading.Lock()
        self._value: Any = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Future[Any]], Any]] = []

    def done(self) -> bool:
        """Whether the value, or the exception in its place, is there."""
        return self._is_there.is_set()

    def wait(self) -> Any:
        """The value, once it is there; raises the exception in its place."""
        self._is_there.wait()
        return self._found()

    def value(self) -> Any:
        """The value, which has to be there."""
        if not self.done():
            raise RuntimeError("value() of a Future that is not completed; wait() waits for it")
        return self._found()

    def _found(self) -> Any:
        if self._error is not None:
            raise self._error
        return self._value

    def set_result(self, result: Any) -> None:
        """Here is the value."""
        self._complete(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Here is what went wrong instead."""
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._complete(None, result)

    def _complete(self, value: Any, error: BaseException | None) -> None:
        with self._lock:
            if self._is_there.is_set():
                raise RuntimeError(
                    "Attempting to mark a completed Future as complete again. Note that a Future "
                    "can only be marked completed once."
                )
            self._value, self._error = value, error
            self._is_there.set()
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(self)

    def add_done_callback(self, callback: Callable[[Future[Any]], Any]) -> None:
        """Call with this future once the value is there; at once, if it is."""
        with self._lock:
            if not self._is_there.is_set():
                self._callbacks.append(callback)
                return
        callback(self)

    def then(self, callback: Callable[[Future[Any]], Any]) -> Future[Any]:
        """The future of what the callback returns."""
        made: Future[Any] = Future()

        def run(future: Future[Any]) -> None:
            try:
                result = callback(future)
            except Exception as error:
                told = RuntimeError(
                    "Got the following error when running the callback: "
                    f"{type(error).__name__}: {error}"
                )
                told.__cause__ = error
                made.set_exception(told)
            else:
                made.set_result(result)

        self.add_done_callback(run)
        return made


def collect_all(futures: Iterable[Future[Any]]) -> Future[list[Future[Any]]]:
    """The future of the list of futures, there when all of them are."""
    given = list(futures)
    made: Future[list[Future[Any]]] = Future()
    left = [len(given)]
    lock = threading.Lock()

    def one_more(_: Any) -> None:
        with lock:
            left[0] -= 1
            is_last = left[0] == 0
        if is_last:
            made.set_result(given)

    if not given:
        made.set_result(given)
    for future in given:
        future.add_done_callback(one_more)
    return made


def wait_all(futures: Iterable[Future[Any]]) -> list[Any]:
    """The values of all, once they are there."""
    return [future.wait() for future in collect_all(futures).wait()]
