"""How flambeau words an error: torch's class and first sentence, then the help.

Keeps     every user mistake raises torch's exception class with torch's first sentence first, so
          that code and tests that match on it go on working; the help follows on lines of its own.
Touches   nothing.
Not here  the checks themselves."""

from __future__ import annotations

from typing import Final, TypeVar

_Value = TypeVar("_Value")


def helped(
    message: str, *, given: str | None = None, expected: str | None = None, fix: str | None = None
) -> str:
    """torch's sentence with what was given, what was expected and what to change below it.

    >>> print(helped("mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)", fix="use b.T"))
    mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)
      fix       use b.T
    """
    lines = [message]
    for label, text in (("given", given), ("expected", expected), ("fix", fix)):
        if text:
            lines.append(f"  {label:<9} {text}")
    return "\n".join(lines)


NO_CUDA: Final = helped(
    "Torch not compiled with CUDA enabled",
    fix='ask first: device = "cuda" if torch.cuda.is_available() else "cpu"',
)


def present(value: _Value | None, what: str) -> _Value:
    """A value that cannot be None here; if it is, flambeau itself is at fault and says so.

    >>> present(3, "a number")
    3
    """
    if value is None:
        raise RuntimeError(helped(f"internal error: {what} is missing", fix="report this"))
    return value


class OutOfMemoryError(RuntimeError):
    """torch.OutOfMemoryError: memory that cannot be had; nothing was written."""


def _assert(condition: object, message: object) -> None:
    """torch._assert: `assert condition, message`, as a function.

    >>> _assert(1 < 2, "order")
    """
    if not condition:
        raise AssertionError(message)
