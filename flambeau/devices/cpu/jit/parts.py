"""A module's text as the functions it is made of: what several texts share is compiled once.

Keeps     what may be shared is told by text alone: an internal function that uses nothing of its
          module but functions that may be shared as well; its digest covers those too.
Not here  compiling (compiler.py), putting compiled parts together (layout.py)."""

from __future__ import annotations

import re
from collections.abc import Collection
from hashlib import sha256
from typing import Final

_INTERNAL: Final = "define internal "
_DEFINITION: Final = re.compile(r"^define [^\n]*\{\n.*?^\}\n", re.MULTILINE | re.DOTALL)
_NAME: Final = re.compile(r"@([\w.$]+)\(")
_USED: Final = re.compile(r"@([\w.$]+)")
_OUTER: Final = re.compile(r"^(?:declare [^\n@]*@([\w.$]+)\(|@([\w.$]+) = external )", re.MULTILINE)


class Module:
    """One module's text, taken apart.

    digests   name of each function that may be shared -> what tells it from others
    """

    def __init__(self, text: str) -> None:
        self._functions: dict[str, str] = {}
        self._rest = _DEFINITION.sub(self._take, text)
        # What the process has.
        self._outer = {one or other for one, other in _OUTER.findall(self._rest)}
        self.digests: dict[str, str] = {}
        for name in self._functions:
            self._digest(name, set())

    def text_without(self, known: Collection[str]) -> str:
        """The text with these functions only declared; others that may be shared can be called from
        outside, and can be taken out of the object on their own."""
        parts = [self._rest]
        for name, function in self._functions.items():
            if name not in self.digests:
                parts.append(function)
                continue
            head, body = function.removeprefix(_INTERNAL).split("{\n", 1)
            if name in known:
                parts.append(f"declare hidden {head}\n")
            else:
                parts.append(f'define hidden {head}section ".text.{name}" {{\n{body}')
        return "".join(parts)

    def _take(self, match: re.Match[str]) -> str:
        function = match[0]
        named = _NAME.search(function)
        if named is None:
            return function
        self._functions[named[1]] = function
        return ""

    def _digest(self, name: str, above: set[str]) -> str | None:
        """Digest of a function; None where it may not be shared: it is not internal, or uses what
        only its module has, or one of those it is called by (`above`)."""
        found = self.digests.get(name)
        if found is not None:
            return found
        function = self._functions[name]
        # Metadata is numbered within its module.
        if not function.startswith(_INTERNAL) or " !" in function or name in above:
            return None
        used = []
        for other in sorted(set(_USED.findall(function)) - {name} - self._outer):
            if other not in self._functions:
                return None
            inner = self._digest(other, above | {name})
            if inner is None:
                return None
            used.append(inner)
        digest = sha256("\0".join([function, *used]).encode()).hexdigest()
        self.digests[name] = digest
        return digest
