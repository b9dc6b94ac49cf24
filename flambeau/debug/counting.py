"""counts(): what happened inside a `with` block, as numbers.

Keeps     counting costs nothing while nobody looks: rooms count anyway, this takes differences.
Touches   engine (run), devices.cpu (jit, memory, runner) and their statistics.
Not here  what fused and why (explaining.py)."""

from __future__ import annotations

from typing import Self

from flambeau.devices.cpu import jit, memory, runner
from flambeau.engine import run, stream


class counts:  # noqa: N801 - used as `with counts() as seen:`
    """Counts between entry and exit (or now, while inside). Pending work is run at both ends.

    kernels_compiled   kernels LLVM compiled (not: found in the object cache)
    kernels_loaded     kernels found in the object cache
    kernels_launched   steps run          segments_planned, segments_flushed, records
    allocations        blocks handed out  peak_bytes   most bytes live at once, above those at entry
    threads_used       most threads that took part in one step

    >>> import flambeau as torch
    >>> x = torch.tensor([1.0, 2.0])
    >>> with counts() as seen:
    ...     y = (x + 1).tolist()
    >>> seen.segments_flushed, seen.records
    (1, 1)
    """

    def __init__(self) -> None:
        self._start: dict[str, int] = {}
        self._end: dict[str, int] | None = None

    def __enter__(self) -> Self:
        stream.current().synchronize("debug.counts()")
        memory.STATS.reset_peak()
        runner.STATS.threads_used = 0
        self._end = None
        self._start = _now()
        return self

    def __exit__(self, *exception: object) -> None:
        stream.current().synchronize("debug.counts()")
        self._end = _now()

    def __getattr__(self, name: str) -> int:
        if name.startswith("_") or name not in self._start:
            raise AttributeError(f"counts has no {name!r}; it has {', '.join(self._start)}")
        now = self._end if self._end is not None else _now()
        if name == "threads_used":
            return now[name]
        if name == "peak_bytes":
            return max(0, now[name] - self._start["current_bytes"])
        return now[name] - self._start[name]

    def __repr__(self) -> str:
        parts = [f"{name}={getattr(self, name)}" for name in self._start if name != "current_bytes"]
        return f"counts({', '.join(parts)})"


def _now() -> dict[str, int]:
    return {
        "kernels_compiled": jit.STATS.compiled,
        "kernels_loaded": jit.STATS.loaded,
        "kernels_launched": runner.STATS.kernels_launched,
        "segments_planned": run.STATS.segments_planned,
        "segments_flushed": run.STATS.segments_flushed,
        "records": run.STATS.records,
        "allocations": memory.STATS.allocations,
        "peak_bytes": memory.STATS.peak_bytes,
        "current_bytes": memory.STATS.current_bytes,
        "threads_used": runner.STATS.threads_used,
    }
