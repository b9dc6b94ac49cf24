"""What a profile found: events, their averages, and torch's table of them.

Keeps     times in microseconds; sums of self times are the time that was measured, once each.
Touches   nothing of flambeau.
Not here  measuring (profiler.py)."""

from __future__ import annotations

import gzip
import json
import os
from typing import Any, Final, NamedTuple

_UNITS: Final = {"s": 1e6, "ms": 1e3, "us": 1.0}
_COLUMN: Final = 12
_HEADINGS: Final = (
    "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg", "# of Calls",
)  # fmt: skip


class Interval(NamedTuple):
    """From `start` to `end`, counted from the profile's start."""

    start: float
    end: float

    def elapsed_us(self) -> float:
        """Length in microseconds."""
        return self.end - self.start


class _Times:
    """Attributes that single events and averages share. Nothing runs on another device."""

    key: str
    count: int
    cpu_time_total: float
    self_cpu_time_total: float
    device_time_total = 0.0
    self_device_time_total = 0.0

    @property
    def cpu_time(self) -> float:
        """Mean of a call."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def cpu_time_str(self) -> str:
        """`cpu_time` with its unit."""
        return formatted(self.cpu_time)

    @property
    def cpu_time_total_str(self) -> str:
        """`cpu_time_total` with its unit."""
        return formatted(self.cpu_time_total)

    @property
    def self_cpu_time_total_str(self) -> str:
        """`self_cpu_time_total` with its unit."""
        return formatted(self.self_cpu_time_total)


class FunctionEvent(_Times):
    """One operator that ran, or one block of record_function."""

    def __init__(
        self, name: str, parent: FunctionEvent | None, thread: int, *, is_block: bool = False
    ) -> None:
        self.id = 0
        self.key = self.name = name
        self.count = 1
        self.thread = thread
        self.time_range = Interval(0.0, 0.0)
        self.self_cpu_time_total = 0.0
        self.is_user_annotation = is_block
        self.input_shapes: list[list[int]] = []
        self.stack: list[str] = []
        self.cpu_parent = parent
        self.cpu_children: list[FunctionEvent] = []
        if parent is not None:
            parent.cpu_children.append(self)

    @property
    def cpu_time_total(self) -> float:  # type: ignore[override]
        """Its own time and that of what was asked for in it, wherever that ran."""
        total, left = 0.0, [self]
        while left:
            event = left.pop()
            total += event.self_cpu_time_total
            left += event.cpu_children
        return total

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent id={self.id} name={self.name} cpu_time={self.cpu_time_str} "
            f"start_us={self.time_range.start:.3f} end_us={self.time_range.end:.3f} "
            f"cpu_children={[child.id for child in self.cpu_children]} thread={self.thread} "
            f"input_shapes={self.input_shapes}>"
        )


class FunctionEventAvg(_Times):
    """Events of one name, summed."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.count = 0
        self.cpu_time_total = 0.0
        self.self_cpu_time_total = 0.0
        self.input_shapes: Any = ""
        self.stack: list[str] = []
        self.is_user_annotation = False

    def add(self, other: Any) -> FunctionEventAvg:
        """Count an event, or another sum, in."""
        self.count += other.count
        self.cpu_time_total += other.cpu_time_total
        self.self_cpu_time_total += other.self_cpu_time_total
        return self

    def __repr__(self) -> str:
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} "
            f"cpu_time={self.cpu_time_str} input_shapes={self.input_shapes}>"
        )


class EventList(list[Any]):
    """Events or averages, with a table.

    `kernels` are (name, start, length, thread, operators) of what really ran, for the trace."""

    def __init__(self, events: Any = (), kernels: Any = ()) -> None:
        super().__init__(events)
        self.kernels: list[tuple[str, float, float, int, list[str]]] = list(kernels)

    def __str__(self) -> str:
        return self.table()

    @property
    def self_cpu_time_total(self) -> float:
        """Sum of all self times."""
        return float(sum(event.self_cpu_time_total for event in self))

    def total_average(self) -> FunctionEventAvg:
        """Everything in one sum."""
        total = FunctionEventAvg("Total")
        for event in self:
            total.add(event)
        return total

    def key_averages(
        self, group_by_input_shapes: bool = False, group_by_stack_n: int = 0
    ) -> EventList:
        """Sums by name, and by input shapes or innermost lines where asked for."""
        found: dict[Any, FunctionEventAvg] = {}
        for event in self:
            key: list[Any] = [event.key, event.is_user_annotation]
            key.append(str(event.input_shapes) if group_by_input_shapes else "")
            key.append(tuple(event.stack[:group_by_stack_n]))
            average = found.get(tuple(key))
            if average is None:
                average = found[tuple(key)] = FunctionEventAvg(event.key)
                average.is_user_annotation = event.is_user_annotation
                average.stack = event.stack[:group_by_stack_n]
                average.input_shapes = event.input_shapes if group_by_input_shapes else ""
            average.add(event)
        return EventList(found.values())

    def table(
        self, sort_by: str | None = None, row_limit: int = 100, max_src_column_width: int = 75,
        max_name_column_width: int = 55, max_shapes_column_width: int = 80,
        header: str | None = None, top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:  # fmt: skip
        """torch's table; `sort_by` is the name of an attribute, the greatest first."""
        rows = list(self)
        if not rows:
            return ""
        if sort_by is not None:
            name = sort_by.replace("cuda", "device").replace("xpu", "device")
            rows.sort(key=lambda event: getattr(event, name), reverse=True)
        if top_level_events_only:
            rows = [event for event in rows if getattr(event, "cpu_parent", None) is None]
        rows = rows[:row_limit] if row_limit >= 0 else rows
        total = self.self_cpu_time_total
        columns = [_column("Name", [row.key for row in rows], max_name_column_width)]
        cells = [_cells(row, total, time_unit) for row in rows]
        for number, heading in enumerate(_HEADINGS):
            columns.append(
                [f"{text:>{_COLUMN}}" for text in (heading, *(each[number] for each in cells))]
            )
        if any(row.input_shapes for row in rows):
            shapes = [str(row.input_shapes) for row in rows]
            columns.append(_column("Input Shapes", shapes, max_shapes_column_width))
        if any(row.stack for row in rows):
            lines = [row.stack[0] if row.stack else "" for row in rows]
            columns.append(_column("Source Location", lines, max_src_column_width))
        return _ruled(columns, header, f"Self CPU time total: {formatted(total, time_unit)}")

    def export_chrome_trace(self, path: Any) -> None:
        """Write blocks and kernels as they ran, for chrome://tracing or Perfetto."""
        process = os.getpid()
        made: list[dict[str, Any]] = []
        for event in self:
            if event.is_user_annotation:
                start, end = event.time_range
                made.append(
                    {"ph": "X", "cat": "user_annotation", "name": event.name, "ts": start,
                     "dur": end - start, "tid": event.thread, "args": {}}
                )  # fmt: skip
        for name, start, length, thread, operators in self.kernels:
            made.append(
                {"ph": "X", "cat": "kernel", "name": name, "ts": start, "dur": length,
                 "tid": thread, "args": {"operators": operators}}
            )  # fmt: skip
        for each in made:
            each["pid"] = process
        opened: Any = gzip.open if str(path).endswith(".gz") else open
        with opened(path, "wt", encoding="utf-8") as file:
            json.dump({"displayTimeUnit": "ms", "traceEvents": made}, file, indent=1)


def formatted(microseconds: float, unit: str | None = None) -> str:
    """A time in the unit asked for, or in one that suits it.

    >>> formatted(1234.5), formatted(12.0), formatted(12.0, "ms")
    ('1.234ms', '12.000us', '0.012ms')
    """
    if unit is None:
        unit = next((name for name in ("s", "ms") if microseconds >= _UNITS[name]), "us")
    return f"{microseconds / _UNITS[unit]:.3f}{unit}"


def _cells(row: Any, total: float, unit: str | None) -> tuple[str, ...]:
    def share(part: float) -> str:
        return f"{100 * part / total if total else 0:.2f}%"

    return (
        share(row.self_cpu_time_total), formatted(row.self_cpu_time_total, unit),
        share(row.cpu_time_total), formatted(row.cpu_time_total, unit),
        formatted(row.cpu_time, unit), str(row.count),
    )  # fmt: skip


def _column(heading: str, texts: list[str], limit: int) -> list[str]:
    width = min(max(map(len, (heading, *texts))) + 4, limit)
    cut = [text if len(text) <= width else text[: width - 3] + "..." for text in texts]
    return [f"{text:>{width}}" for text in (heading, *cut)]


def _ruled(columns: list[list[str]], header: str | None, last: str) -> str:
    rule = "".join("-" * len(column[0]) + "  " for column in columns)
    lines = ["".join(cell + "  " for cell in row) for row in zip(*columns, strict=True)]
    top = ["=" * len(rule), header] if header is not None else []
    return "\n".join([*top, rule, lines[0], rule, *lines[1:], rule, last, ""])
