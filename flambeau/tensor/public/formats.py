"""Memory formats and layouts as torch names them.

Keeps     one object per name; compare with `is`.
Touches   nothing.
Not here  strides that follow from a format (base/shapes.py)."""

from __future__ import annotations

from typing import Final

__all__ = [
    "channels_last", "channels_last_3d", "contiguous_format", "layout", "memory_format",
    "preserve_format", "sparse_bsc", "sparse_bsr", "sparse_coo", "sparse_csc", "sparse_csr",
    "strided",
]  # fmt: skip


class _Named:
    """An object known by torch's name of it."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> tuple[object, ...]:
        return (named, (self.name,))

    def __copy__(self) -> _Named:
        return self

    def __deepcopy__(self, memo: object) -> _Named:
        return self


class memory_format(_Named):  # noqa: N801 - torch's name
    """An order of dims in memory."""


class layout(_Named):  # noqa: N801 - torch's name
    """How elements are kept: strided, or sparse in some way."""


contiguous_format: Final = memory_format("contiguous_format")
preserve_format: Final = memory_format("preserve_format")
channels_last: Final = memory_format("channels_last")
channels_last_3d: Final = memory_format("channels_last_3d")
strided: Final = layout("strided")
sparse_coo: Final = layout("sparse_coo")
sparse_csr: Final = layout("sparse_csr")
# No tensor has these: they are there to be compared with.
sparse_csc: Final = layout("sparse_csc")
sparse_bsr: Final = layout("sparse_bsr")
sparse_bsc: Final = layout("sparse_bsc")

ORDERS: Final = {
    each.name: each
    for each in (contiguous_format, preserve_format, channels_last, channels_last_3d)
}
LAYOUTS: Final = {
    each.name: each
    for each in (strided, sparse_coo, sparse_csr, sparse_csc, sparse_bsr, sparse_bsc)
}


def named(name: str) -> object:
    """The object of that name."""
    return globals()[name]


memory_format.__module__ = layout.__module__ = "torch"
