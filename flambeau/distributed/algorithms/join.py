"""torch.distributed.algorithms.join: ranks with fewer inputs shadow the collectives of the others.

Keeps     with one rank nobody is waited for: the block runs as it stands.
Touches   world.py.
Not here  collectives (collectives.py)."""

from __future__ import annotations

from typing import Any, Self

from flambeau.base.missing import module_getattr
from flambeau.distributed.world import default_group

__all__ = ["Join", "JoinHook", "Joinable"]


class JoinHook:
    """What a rank does instead of its step once it has no input left; never asked of one."""

    def main_hook(self) -> None:
        """In the place of one step."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """After all ranks have ended."""


class Joinable:
    """What takes part in a Join: it brings a hook."""

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """The hook of this object."""
        raise NotImplementedError


class Join:
    """A block in which ranks may have different numbers of inputs.

    Raises   ValueError: nothing takes part, or there is no process group
    """

    def __init__(
        self, joinables: list[Any], enable: bool = True, throw_on_early_termination: bool = False,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        if not joinables:
            raise ValueError("The join context manager requires at least one joinable")
        default_group()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    @staticmethod
    def notify_join_context(joinable: Any) -> None:
        """Tell the other ranks that this one still has inputs: there are none to tell."""


__getattr__ = module_getattr(__name__)
