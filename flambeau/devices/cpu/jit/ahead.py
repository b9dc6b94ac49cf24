"""Texts compiled by a thread of their own, before they are needed.

Keeps     one text at a time, so that others' kernels are compiled in between; nothing is in LLVM
          when the process ends. In a child the thread is gone: what it left is compiled when asked.
Touches   jit, threads, atexit.
Not here  compiling itself (the package's own module)."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Mapping
from typing import Final

from flambeau.devices.cpu import jit

_TURN_S: Final = 0.0001


class Ahead:
    """Functions on their way; an error is left to whoever compiles them in earnest."""

    def __init__(self, texts: Mapping[str, jit.Text]) -> None:
        self._texts = texts
        self._is_ending = False
        self._thread = threading.Thread(target=self._work, name="flambeau ahead", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:  # none can be started: they are compiled when they are needed
            return
        atexit.register(self._end)

    def is_over(self) -> bool:
        """Whether nothing more will be compiled. Gives the thread a turn: beside one that lets go
        of the interpreter for a moment at each flush it would always come too late."""
        if self._thread is threading.current_thread():  # a finalizer that ran here computes
            return False
        if self._thread.is_alive():
            self._thread.join(_TURN_S)
        return not self._thread.is_alive()

    def _work(self) -> None:
        for name, text in self._texts.items():
            if self._is_ending:
                return
            try:
                jit.compile_functions({name: text})
            except Exception:
                return

    def _end(self) -> None:
        self._is_ending = True
        self._thread.join()
