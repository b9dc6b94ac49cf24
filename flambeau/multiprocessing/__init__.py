"""torch.multiprocessing: Python's multiprocessing, and what torch adds to it.

Keeps     names are those of the standard library's module.
Touches   multiprocessing.
Not here  the loader's workers (utils.data)."""

from __future__ import annotations

import multiprocessing
from typing import Any

from flambeau.base.errors import helped
from flambeau.base.missing import missing_name

_STRATEGIES = ("file_descriptor", "file_system")
_chosen = ["file_descriptor"]


def get_all_sharing_strategies() -> set[str]:
    """Names of the ways to share memory."""
    return set(_STRATEGIES)


def get_sharing_strategy() -> str:
    """The way to share memory that was chosen."""
    return _chosen[0]


def set_sharing_strategy(new_strategy: str) -> None:
    """Choose a way to share memory: remembered."""
    if new_strategy not in _STRATEGIES:
        raise AssertionError(
            helped(
                "unknown sharing strategy", given=new_strategy, expected=" or ".join(_STRATEGIES)
            )
        )
    _chosen[0] = new_strategy


class ProcessContext:
    """Processes that spawn has started."""

    def __init__(self, processes: list[Any]) -> None:
        self.processes = processes

    def pids(self) -> list[int]:
        """Their process numbers."""
        return [process.pid for process in self.processes]

    def join(self, timeout: float | None = None) -> bool:
        """Wait for all; RuntimeError where one failed."""
        for process in self.processes:
            process.join(timeout)
        for rank, process in enumerate(self.processes):
            if process.exitcode:
                raise RuntimeError(f"process {rank} terminated with exit code {process.exitcode}")
        return all(process.exitcode is not None for process in self.processes)


def spawn(
    fn: Any, args: Any = (), nprocs: int = 1, join: bool = True, daemon: bool = False,
    start_method: str = "spawn",
) -> Any:  # fmt: skip
    """Call fn(rank, *args) in nprocs processes."""
    context: Any = multiprocessing.get_context(start_method)
    processes = []
    for rank in range(nprocs):
        process = context.Process(target=fn, args=(rank, *args), daemon=daemon)
        process.start()
        processes.append(process)
    made = ProcessContext(processes)
    if join:
        made.join()
        return None
    return made


start_processes = spawn


def __getattr__(name: str) -> Any:
    if not name.startswith("__") and hasattr(multiprocessing, name):
        return getattr(multiprocessing, name)
    raise missing_name(__name__, name, dir(multiprocessing))
