"""torch.hub.tqdm: a progress bar, of the package tqdm where it is installed.

Keeps     programs that show progress by torch.hub.tqdm run without the package, and show none.
Touches   tqdm, if it is there.
Not here  downloads, which show nothing (loading.py)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Self

__all__ = ["tqdm"]


class _Silent:
    """A progress bar that shows nothing."""

    def __init__(self, iterable: Iterable[Any] | None = None, **named: Any) -> None:
        self.iterable = iterable
        self.total = named.get("total")
        self.n = 0

    def __iter__(self) -> Iterator[Any]:
        for each in self.iterable or ():
            yield each
            self.n += 1

    def update(self, n: int = 1) -> None:
        """Count n more."""
        self.n += n

    def set_description(self, desc: str | None = None, refresh: bool = True) -> None:
        """Taken, and not shown."""

    def close(self) -> None:
        """End."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _bar() -> Any:
    try:
        from tqdm import tqdm as installed  # type: ignore[import-untyped]
    except ImportError:
        return _Silent
    return installed


tqdm = _bar()
