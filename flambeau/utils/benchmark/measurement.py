"""Measurement: the times of a statement, their median and spread, printed as torch prints them.

Keeps     times are seconds; quantiles lie between neighbours, as NumPy's do.
Touches   nothing of flambeau.
Not here  measuring (timing.py)."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from typing import Any, Final

# Interquartile ranges, as a share of the median, from which on a measurement warns.
_LARGE: Final = 0.1
_GROSS: Final = 0.25
_DIGITS: Final = (1, 5)
# What no clock resolves.
_FINEST: Final = 25e-9


@dataclasses.dataclass(init=True, repr=False, eq=True, frozen=True)
class TaskSpec:
    """What was measured."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """Labels, or else the statement."""
        if self.label is not None:
            return self.label + (f": {self.sub_label}" if self.sub_label else "")
        if "\n" not in self.stmt:
            return self.stmt + (f": {self.sub_label}" if self.sub_label else "")
        below = f"\n{self.sub_label}" if self.sub_label else ""
        return f"stmt:{below}\n{_indented(self.stmt)}"

    def setup_str(self) -> str:
        """The setup in one line or several; nothing where it does nothing."""
        if self.setup == "pass" or not self.setup:
            return ""
        if "\n" in self.setup:
            return f"setup:\n{_indented(self.setup)}"
        return f"setup: {self.setup}"

    def summarize(self) -> str:
        """The lines before the numbers."""
        sections = (self.title, self.description or "", self.setup_str())
        return "\n".join(each + "\n" * ("\n" in each) for each in sections if each)


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" if line.strip() else line for line in text.splitlines())


def quantile(ordered: list[float], share: float) -> float:
    """Value below which a share of the ordered values lies."""
    place = share * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def select_unit(seconds: float) -> tuple[str, float]:
    """Unit in which a time has one to three digits before its point, and its length.

    >>> select_unit(0.0123)
    ('ms', 0.001)
    """
    power = math.floor(math.log10(seconds)) // 3 if seconds > 0 else 0
    unit = {-3: "ns", -2: "us", -1: "ms"}.get(power, "s")
    return unit, {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}[unit]


@dataclasses.dataclass(init=True, repr=False)
class Measurement:
    """Times of `number_per_run` runs each.

    >>> Measurement(2, [0.5, 0.25, 1.0], TaskSpec("f(x)", "")).median
    0.25
    """

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = None

    def __getattr__(self, name: str) -> Any:
        if name in {each.name for each in dataclasses.fields(TaskSpec)}:
            return getattr(self.task_spec, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def times(self) -> list[float]:
        """Of one run."""
        return [time / self.number_per_run for time in self.raw_times]

    def _quantile(self, share: float) -> float:
        return quantile(sorted(self.times), share)

    @property
    def median(self) -> float:
        """Half of the runs took less."""
        return self._quantile(0.5)

    @property
    def mean(self) -> float:
        """Average of a run."""
        return math.fsum(self.times) / len(self.raw_times)

    @property
    def iqr(self) -> float:
        """Range of the middle half."""
        return self._quantile(0.75) - self._quantile(0.25)

    @property
    def significant_figures(self) -> int:
        """Digits of the median that the middle half bears out."""
        times = sorted(self.times)
        middle = times[len(times) // 4 : math.ceil(3 * len(times) / 4)]
        mean = math.fsum(middle) / len(middle)
        deviation = math.sqrt(math.fsum((time - mean) ** 2 for time in middle) / len(middle))
        interval = max(1.645 * deviation / math.sqrt(len(middle)), _FINEST)
        digits = math.floor(math.log10(self.median / interval))
        return min(max(digits, _DIGITS[0]), _DIGITS[1])

    def meets_confidence(self, threshold: float = _LARGE) -> bool:
        """Whether the middle half is narrower than a share of the median."""
        return self.iqr / self.median < threshold

    @property
    def _warning(self) -> str:
        if self.meets_confidence(_LARGE):
            return ""
        is_gross = not self.meets_confidence(_GROSS)
        why = (
            "This suggests significant environmental influence."
            if is_gross
            else "This could indicate system fluctuation."
        )
        share = self.iqr / self.median * 100
        return (
            f"  WARNING: Interquartile range is {share:.1f}% of the median measurement.\n"
            f"           {why}"
        )

    @property
    def has_warnings(self) -> bool:
        """Whether times vary a good deal."""
        return bool(self._warning)

    @property
    def title(self) -> str:
        """Labels, or else the statement."""
        return self.task_spec.title

    @property
    def as_row_name(self) -> str:
        """Name in a table."""
        return self.task_spec.sub_label or self.task_spec.stmt or "[Unknown]"

    def __repr__(self) -> str:
        count, threads = len(self.raw_times), self.task_spec.num_threads
        unit, length = select_unit(self.median)
        several = count > 1
        lines = [
            object.__repr__(self),
            self.task_spec.summarize(),
            f"  {'Median: ' if several else ''}{self.median / length:.2f} {unit}",
        ]
        if count >= 4:
            low, high = self._quantile(0.25) / length, self._quantile(0.75) / length
            lines.append(f"  IQR:    {self.iqr / length:.2f} {unit} ({low:.2f} to {high:.2f})")
        lines.append(
            f"  {count} measurement{'s' if several else ''}, {self.number_per_run} runs "
            f"{'per measurement,' if several else ','} {threads} thread{'s' if threads > 1 else ''}"
        )
        if self._warning:
            lines.append(self._warning)
        return "\n".join(lines)

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """One measurement a task, of runs one by one."""
        found: dict[TaskSpec, list[float]] = {}
        for each in measurements:
            found.setdefault(each.task_spec, []).extend(each.times)
        return [Measurement(1, times, task) for task, times in found.items()]
