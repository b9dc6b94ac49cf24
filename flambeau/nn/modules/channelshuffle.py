"""ChannelShuffle.

Keeps     torch's settings and repr.
Touches   nn.functional.
Not here  the rearranging (functions/images/resizing.py)."""

from __future__ import annotations

from typing import Any

from flambeau.nn import functional as F
from flambeau.nn.modules.module import Module


class ChannelShuffle(Module):
    """Channels of all groups in turn."""

    __constants__ = ["groups"]

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Any) -> Any:
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return f"groups={self.groups}"
