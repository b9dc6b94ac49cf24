"""The process group: who is there, and which rank this process has.

Keeps     before init_process_group every question about ranks raises torch's error; a world is made
          of exactly one process.
Touches   the environment (RANK, WORLD_SIZE), when the group is made.
Not here  what a group does (collectives.py)."""

from __future__ import annotations

import os
from typing import Any, Final

from flambeau.base.errors import helped

__all__ = [
    "Backend", "GroupMember", "ProcessGroup", "Work", "destroy_process_group", "get_backend",
    "get_global_rank", "get_group_rank", "get_node_local_rank", "get_process_group_ranks",
    "get_rank", "get_world_size", "group", "init_process_group", "is_available",
    "is_gloo_available", "is_initialized", "is_mpi_available", "is_nccl_available",
    "is_torchelastic_launched", "is_ucc_available", "is_xccl_available", "new_group",
]  # fmt: skip

_NOT_INITIALIZED: Final = (
    "Default process group has not been initialized, please make sure to call init_process_group."
)


class Backend(str):
    """A backend's name in lower case."""

    __slots__ = ()
    UNDEFINED = "undefined"
    GLOO = "gloo"
    NCCL = "nccl"
    UCC = "ucc"
    MPI = "mpi"

    def __new__(cls, name: str) -> Any:
        if not isinstance(name, str):
            raise ValueError("Backend constructor parameter must be string-ish")
        return super().__new__(cls, name.lower())


class ProcessGroup:
    """Some processes that work together: here, this one."""

    def __init__(self, backend: str, name: str = "0") -> None:
        self.backend = backend
        self.group_name = name

    def rank(self) -> int:
        """This process's number in the group."""
        return 0

    def size(self) -> int:
        """Number of processes in the group."""
        return 1

    def name(self) -> str:
        """The backend's name."""
        return self.backend


class Work:
    """A collective that has been started: with one process it is done when it is made."""

    def wait(self, timeout: Any = None) -> bool:
        """Wait for the end."""
        return True

    def is_completed(self) -> bool:
        """Whether it has ended."""
        return True

    is_success = is_completed


class GroupMember:
    """The default group, and what stands for a group that this process is not in."""

    WORLD: ProcessGroup | None = None
    NON_GROUP_MEMBER: Final = -100


class _GroupNames(type):
    @property
    def WORLD(cls) -> Any:
        """The default group, None before it is made."""
        return GroupMember.WORLD


class group(metaclass=_GroupNames):  # noqa: N801 - torch's name
    """Names of groups: group.WORLD."""


def is_available() -> bool:
    """Whether groups can be made: of one process.

    >>> is_available(), is_initialized()
    (True, False)
    """
    return True


def is_initialized() -> bool:
    """Whether init_process_group has been called."""
    return GroupMember.WORLD is not None


def is_gloo_available() -> bool:
    """Whether the backend gloo can be asked for."""
    return True


def _absent() -> bool:
    """No such backend here."""
    return False


is_nccl_available = is_mpi_available = is_ucc_available = is_xccl_available = _absent


def is_torchelastic_launched() -> bool:
    """Whether torchrun started this process."""
    return os.getenv("TORCHELASTIC_RUN_ID") is not None


def _from_environment(name: str) -> int:
    value = os.environ.get(name)
    if value is None:
        raise ValueError(
            helped(
                "Error initializing torch.distributed using env:// rendezvous: environment "
                f"variable {name} expected, but not set",
                fix="rank=0, world_size=1 for a group of this process alone",
            )
        )
    return int(value)


def init_process_group(
    backend: str | None = None, init_method: str | None = None, timeout: Any = None,
    world_size: int = -1, rank: int = -1, store: Any = None, group_name: str = "",
    pg_options: Any = None, device_id: Any = None,
) -> None:  # fmt: skip
    """Make the default group, of this process alone.

    Raises   ValueError: called twice, or rank and size are not known. RuntimeError: a world of
             several processes, a backend for GPUs.
    """
    if is_initialized():
        raise ValueError("trying to initialize the default process group twice!")
    chosen = Backend(backend or "gloo")
    if chosen not in (Backend.GLOO, "cpu:gloo"):
        raise RuntimeError(
            helped(
                f"Distributed package doesn't have {chosen.upper()} built in",
                expected='the backend "gloo"',
            )
        )
    if store is None and (init_method or "env://").startswith("env://"):
        rank = _from_environment("RANK") if rank < 0 else rank
        world_size = _from_environment("WORLD_SIZE") if world_size < 0 else world_size
    if world_size < 0 or rank < 0:
        raise ValueError("Error initializing torch.distributed: rank and world_size must be given")
    if world_size != 1:
        raise RuntimeError(
            helped(
                "init_process_group: flambeau's groups have one process",
                given=f"world_size={world_size}",
                expected="world_size=1",
                fix="run the program without a launcher: its threads use all cores already",
            )
        )
    if rank != 0:
        raise ValueError(f"rank {rank} is not in a world of size 1")
    GroupMember.WORLD = ProcessGroup(str(chosen))


def destroy_process_group(group: Any = None) -> None:
    """Forget the group."""
    made = default_group()
    if group is None or group is made:
        GroupMember.WORLD = None


def default_group() -> ProcessGroup:
    """The default group; torch's error before it is made."""
    made = GroupMember.WORLD
    if made is None:
        raise ValueError(_NOT_INITIALIZED)
    return made


def get_rank(group: Any = None) -> int:
    """This process's number; -1 where it is not in the group."""
    default_group()
    return -1 if group == GroupMember.NON_GROUP_MEMBER else 0


def get_world_size(group: Any = None) -> int:
    """Number of processes; -1 where this one is not in the group."""
    default_group()
    return -1 if group == GroupMember.NON_GROUP_MEMBER else 1


def get_backend(group: Any = None) -> str:
    """The backend's name."""
    return (group or default_group()).backend


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """This process's number on its machine, which a launcher says."""
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError(
        "LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow "
        "`get_node_local_rank` to work, assuming you are not running in a multi-device context and "
        "want the code to run locally instead."
    )


def get_process_group_ranks(group: Any = None) -> list[int]:
    """Numbers in the world of the group's processes."""
    default_group()
    return [0]


def get_global_rank(group: Any, group_rank: int) -> int:
    """A process's number in the world, from its number in a group."""
    default_group()
    if group_rank != 0:
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return 0


get_group_rank = get_global_rank


def new_group(
    ranks: Any = None, timeout: Any = None, backend: Any = None, pg_options: Any = None,
    use_local_synchronization: bool = False, group_desc: Any = None, device_id: Any = None,
) -> Any:  # fmt: skip
    """Another group of this process."""
    own = default_group()
    if ranks is not None and list(ranks) not in ([], [0]):
        raise ValueError("the new group's rank should be within the world_size set by init")
    if ranks is not None and not list(ranks):
        return GroupMember.NON_GROUP_MEMBER
    return ProcessGroup(str(Backend(backend or own.backend)), "1")
