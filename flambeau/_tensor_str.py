"""torch._tensor_str: how tensors are printed, by the names that libraries import.

Keeps     the same options as torch.set_printoptions.
Touches   tensor.public.printing.
Not here  any logic but the order of arguments."""

from __future__ import annotations

from flambeau.base.missing import module_getattr
from flambeau.tensor import Tensor
from flambeau.tensor.public.printing import OPTIONS as PRINT_OPTS
from flambeau.tensor.public.printing import (
    contents,
    get_printoptions,
    printoptions,
    repr_of,
    set_printoptions,
    with_suffixes,
)

__all__ = ["PRINT_OPTS", "get_printoptions", "printoptions", "set_printoptions"]


def _tensor_str(self: Tensor, indent: int) -> str:
    """The elements as they are printed, lines after the first indented.

    >>> import flambeau as torch
    >>> _tensor_str(torch.arange(3), 0)
    '[0, 1, 2]'
    """
    return contents(self, indent)


def _add_suffixes(tensor_str: str, suffixes: list[str], indent: int, force_newline: bool) -> str:
    """The text with "dtype=..." and the like behind it, broken where the line is full."""
    return with_suffixes(tensor_str, suffixes, indent, force_newline)


def _str(self: Tensor, *, tensor_contents: str | None = None) -> str:
    """The tensor's repr, of other contents where they are given."""
    return repr_of(self, tensor_contents=tensor_contents)


_str_intern = _str

__getattr__ = module_getattr(__name__)
