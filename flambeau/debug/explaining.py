"""explain(): what the segments of a `with` block did, and why they were cut.

Keeps     observing changes no plan and no bit.
Touches   engine.run (observers), engine.callsite.
Not here  numbers only (counting.py)."""

from __future__ import annotations

import math
import time
from typing import Any, Self

from flambeau.engine import callsite, run, stream


class SegmentReport:
    """One flushed segment: why it was cut, its records, kernels, and what did not fuse."""

    def __init__(
        self, reason: str, plan: Any, records: list[Any], seconds: list[float], milliseconds: float
    ) -> None:
        self.reason = reason
        self.is_planned_before = plan.runs > 1
        self.milliseconds = milliseconds
        self.operators = [record[0][0].operator.name for record in records]
        self.sites = [record[2] for record in records]
        kernels, refusals = plan.explained()
        self.kernels = [(name, sorted(numbers), units) for name, numbers, units in kernels]
        # A run that had begun before the block is not timed kernel by kernel.
        known = seconds or [math.nan] * len(self.kernels)
        self.kernel_milliseconds = [1e3 * each for each in known]
        self.refusals = list(refusals)
        self.n_statements = plan.statements
        self.arena_bytes = plan.arena_bytes

    def __str__(self) -> str:
        lines = [
            (
                f"segment of {len(self.operators)} records, cut by {self.reason}: "
                f"{len(self.kernels)} kernels, {self.n_statements} statements, "
                f"{self.arena_bytes} bytes of arena, {self.milliseconds:.3f} ms, "
                f"plan {'reused' if self.is_planned_before else 'made'}"
            )
        ]
        for (name, numbers, units), spent in zip(
            self.kernels, self.kernel_milliseconds, strict=True
        ):
            names = ", ".join(self.operators[n] for n in numbers)
            lines.append(f"  kernel {name} ({units} units) {spent:8.3f} ms: {names}")
        for number, why in self.refusals:
            lines.append(
                f"  {self.operators[number]} at {callsite.describe(self.sites[number])} "
                f"starts a kernel: {why}"
            )
        return "\n".join(lines)


class explain:  # noqa: N801 - used as `with explain() as report:`
    """Collects a report per segment flushed inside the block; print it.

    >>> import flambeau as torch
    >>> x = torch.tensor([1.0, 2.0])
    >>> with explain() as report:
    ...     y = (x * 2 + 1).tolist()
    >>> report.segments[0].operators, len(report.segments[0].kernels)
    (['mul', 'add'], 1)
    """

    def __init__(self) -> None:
        self.segments: list[SegmentReport] = []
        self._last = 0.0
        self._was_timed = False

    def _observe(self, reason: str, plan: Any, records: list[Any], seconds: list[float]) -> None:
        now = time.perf_counter()
        spent = (now - self._last) * 1e3
        self.segments.append(SegmentReport(reason, plan, records, seconds, spent))
        self._last = now

    def __enter__(self) -> Self:
        stream.current().synchronize("debug.explain()")
        self._last = time.perf_counter()
        run.OBSERVERS.append(self._observe)
        self._was_timed, run.TIMED[0] = run.TIMED[0], True
        return self

    def __exit__(self, *exception: object) -> None:
        try:
            stream.current().synchronize("debug.explain()")
        finally:
            run.OBSERVERS.remove(self._observe)
            run.TIMED[0] = self._was_timed

    def __str__(self) -> str:
        return "\n".join(map(str, self.segments)) or "nothing was flushed"
