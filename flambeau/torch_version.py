"""torch.torch_version: a version string that also compares as a version.

Keeps     `torch.__version__ >= (2, 1)`, `> "1.13"` and comparisons with packaging's Version give
          what they give in torch; against text that is no version it compares as text.
Touches   nothing; packaging is not needed.
Not here  the number itself (base/config.py).
Source    PEP 440."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from flambeau.base.config import VERSION

if TYPE_CHECKING:
    import re

__all__ = ["TorchVersion"]

_PRE_RANK: Final = {"a": 0, "alpha": 0, "b": 1, "beta": 1, "c": 2, "rc": 2, "pre": 2, "preview": 2}
_Key = tuple[object, ...]


@functools.cache
def _form() -> re.Pattern[str]:
    """A version as PEP 440 spells it; made when first compared: all programs import this."""
    import re

    return re.compile(
        r"v?(?:(?P<epoch>\d+)!)?(?P<release>\d+(?:\.\d+)*)"
        r"(?:[-_.]?(?P<pre>alpha|a|beta|b|preview|pre|c|rc)[-_.]?(?P<pre_n>\d*))?"
        r"(?:-(?P<post_short>\d+)|[-_.]?(?P<post>post|rev|r)[-_.]?(?P<post_n>\d*))?"
        r"(?:[-_.]?(?P<dev>dev)[-_.]?(?P<dev_n>\d*))?"
        r"(?:\+(?P<local>[a-z0-9]+(?:[-_.][a-z0-9]+)*))?",
        re.IGNORECASE,
    )


def _key(text: str) -> _Key | None:
    """PEP 440's order as a tuple, or None for what is no version."""
    found = _form().fullmatch(text.strip())
    if found is None:
        return None
    release = tuple(int(part) for part in found["release"].split("."))
    while len(release) > 1 and release[-1] == 0:
        release = release[:-1]
    post_text = found["post_short"] or (found["post"] and (found["post_n"] or "0"))
    post = -1 if not post_text else int(post_text)
    dev = int(found["dev_n"] or 0) if found["dev"] else None
    if found["pre"]:
        pre = (_PRE_RANK[found["pre"].lower()], int(found["pre_n"] or 0))
    else:  # 1.0.dev1 comes before 1.0a1; 1.0 and 1.0.post1.dev1 come after 1.0rc1
        pre = (-1, 0) if dev is not None and post < 0 else (3, 0)
    development = (0, dev) if dev is not None else (1, 0)
    local = tuple(
        (1, int(part), "") if part.isdigit() else (0, 0, part.lower())
        for part in (found["local"] or "").replace("-", ".").replace("_", ".").split(".")
        if part
    )
    return (int(found["epoch"] or 0), release, pre, post, development, local)


class TorchVersion(str):
    """A version string that compares with strings, with tuples of numbers, with Versions.

    >>> TorchVersion("2.13.0+flambeau.0.1") >= (2, 1), TorchVersion("2.13.0") > "2.9"
    (True, True)
    """

    __slots__ = ()

    def _keys(self, other: object) -> tuple[_Key, _Key] | None:
        if not isinstance(other, str) and isinstance(other, Iterable):
            other = ".".join(str(part) for part in other)
        own, theirs = _key(str(self)), _key(str(other))
        return None if own is None or theirs is None else (own, theirs)

    def __eq__(self, other: object) -> bool:
        keys = self._keys(other)
        return str.__eq__(self, other) is True if keys is None else keys[0] == keys[1]

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __lt__(self, other: object) -> bool:
        keys = self._keys(other)
        return str(self) < str(other) if keys is None else keys[0] < keys[1]

    def __le__(self, other: object) -> bool:
        return self < other or self == other

    def __gt__(self, other: object) -> bool:
        return not self <= other

    def __ge__(self, other: object) -> bool:
        return not self < other

    __hash__ = str.__hash__


__version__: Final = TorchVersion(VERSION)
