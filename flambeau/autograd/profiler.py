"""torch.autograd.profiler: which operators ran, how often, and how long their kernels took.

Keeps     profiling changes no bit and cuts no segment: work asked for in a record_function block
          counts there wherever it runs; a kernel's time is shared evenly by what it fused.
Touches   engine (run's observers, stream, callsite).
Not here  tables (profiler_util.py), schedules (flambeau.profiler), kernels (debug.explain)."""

from __future__ import annotations

import functools
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any, Final, Self

from flambeau.autograd.profiler_util import EventList, FunctionEvent, Interval
from flambeau.base.missing import module_getattr
from flambeau.engine import callsite, run, stream

# Recordings that are on, in the order they began.
_ACTIVE: Final[list[Recording]] = []


class _Block:
    """An open block of record_function on one thread."""

    def __init__(self, event: FunctionEvent | None, start: float) -> None:
        self.event = event
        self.start = start
        self.elsewhere = 0.0  # of its time, that of kernels and of blocks in it


class Recording:
    """Events between start() and stop()."""

    def __init__(self, *, shapes: bool = False, lines: bool = False) -> None:
        self.with_shapes = shapes
        self.with_lines = lines
        self.events: list[FunctionEvent] = []
        self.kernels: list[tuple[str, float, float, int, list[str]]] = []
        self._began = 0.0
        self._was_timed = False
        self._blocks: dict[int, list[_Block]] = {}
        # Records that wait, by id, with the block they were asked for in.
        self._asked: dict[int, tuple[Any, _Block]] = {}
        self._noted: dict[int, tuple[Any, int]] = {}

    def start(self) -> None:
        """Run what waits, then begin."""
        stream.current().synchronize("profiler")
        self._was_timed, run.TIMED[0] = run.TIMED[0], True
        run.OBSERVERS.append(self._observe)
        _ACTIVE.append(self)
        self._began = time.perf_counter()

    def stop(self) -> None:
        """Run what waits, then end."""
        try:
            stream.current().synchronize("profiler")
        finally:
            _ACTIVE.remove(self)
            run.OBSERVERS.remove(self._observe)
            run.TIMED[0] = self._was_timed
        for thread in list(self._blocks):
            while len(self._blocks[thread]) > 1:
                self._close(thread)

    def found(self) -> EventList:
        """All events, in the order they began to be known, numbered."""
        for number, event in enumerate(self.events):
            event.id = number
        return EventList(self.events, self.kernels)

    def enter(self, name: str) -> FunctionEvent:
        """Open a block."""
        thread = threading.get_ident()
        self._note(thread)
        event = FunctionEvent(name, self._innermost(thread).event, thread, is_block=True)
        self.events.append(event)
        self._blocks[thread].append(_Block(event, time.perf_counter()))
        return event

    def leave(self, event: FunctionEvent) -> None:
        """Close a block, and those in it."""
        thread = threading.get_ident()
        self._note(thread)
        while any(block.event is event for block in self._blocks.get(thread, ())):
            self._close(thread)

    def _close(self, thread: int) -> None:
        blocks, now = self._blocks[thread], time.perf_counter()
        block = blocks.pop()
        event, spent = block.event, now - block.start
        blocks[-1].elsewhere += spent
        if event is not None:
            event.self_cpu_time_total += max(0.0, spent - block.elsewhere) * 1e6
            event.time_range = Interval(self._since(block.start), self._since(now))

    def _innermost(self, thread: int) -> _Block:
        blocks = self._blocks.get(thread)
        if blocks is None:
            blocks = self._blocks[thread] = [_Block(None, self._began)]
        return blocks[-1]

    def _note(self, thread: int) -> None:
        """Remember of the records that wait which block they were asked for in."""
        segment = stream.current().segment
        known, first = self._noted.get(thread, (None, 0))
        records = segment.records
        block = self._innermost(thread)
        for record in records[first if known is segment else 0 :]:
            self._asked[id(record)] = (record, block)
        self._noted[thread] = (segment, len(records))

    def _since(self, moment: float) -> float:
        return (moment - self._began) * 1e6

    def _observe(self, reason: str, plan: Any, records: list[Any], seconds: list[float]) -> None:
        thread = threading.get_ident()
        here = self._innermost(thread)
        kernels = plan.explained()[0]
        seconds = seconds or [0.0] * len(kernels)  # a run that had begun before is not timed
        here.elsewhere += sum(seconds)
        events = [self._event(record, here, thread) for record in records]
        start = self._since(time.perf_counter()) - sum(seconds) * 1e6
        first_start = start
        for (name, numbers, _), spent in zip(kernels, seconds, strict=True):
            length = spent * 1e6
            fused = sorted(set(numbers))
            for place, number in enumerate(fused):
                event = events[number]
                event.self_cpu_time_total += length / len(fused)
                begin = start + length * place / len(fused)
                if not event.time_range.start:
                    event.time_range = Interval(begin, begin)
                event.time_range = Interval(
                    event.time_range.start, start + length * (place + 1) / len(fused)
                )
            operators = [events[number].name for number in fused]
            self.kernels.append((name, start, length, thread, operators))
            start += length
        for event in events:
            if not event.time_range.start:  # a view, or a value nobody reads
                event.time_range = Interval(first_start, first_start)

    def _event(self, record: Any, here: _Block, thread: int) -> FunctionEvent:
        asked = self._asked.pop(id(record), None)
        block = asked[1] if asked is not None and asked[0] is record else here
        signature = record[0][0]
        event = FunctionEvent(f"aten::{signature.operator.name}", block.event, thread)
        if self.with_shapes:
            event.input_shapes = [list(layout.shape) for layout in signature.layouts]
        if self.with_lines:
            event.stack = [callsite.describe(record[2])]
        self.events.append(event)
        return event


class record_function:  # noqa: N801 - used as `with record_function("name"):`
    """Names a block, or a function, in profiles; costs nothing without one.

    >>> import flambeau as torch
    >>> with profile() as p, record_function("both"):
    ...     y = torch.ones(3) + 1
    >>> p.function_events[0].name
    'both'
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name
        self.args = args
        self._open: list[tuple[Recording, FunctionEvent]] = []

    def __enter__(self) -> Self:
        self._open = [(recording, recording.enter(self.name)) for recording in _ACTIVE]
        return self

    def __exit__(self, *exception: object) -> None:
        for recording, event in self._open:
            recording.leave(event)
        self._open = []

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def named(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self.name, self.args):
                return function(*args, **kwargs)

        return named


def warn_of(**asked: bool) -> None:
    """Say which of the things asked for a profile does not have."""
    reasons = {
        "use_cuda": "CUDA is not available, disabling CUDA profiling",
        "profile_memory": "flambeau measures memory by plan, not by operator: "
        "see debug.counts().peak_bytes; profile_memory does nothing",
        "with_flops": "flambeau does not estimate operations; with_flops does nothing",
        "with_modules": "flambeau does not record modules; with_modules does nothing",
    }
    for name, is_asked in asked.items():
        if is_asked:
            warnings.warn(reasons[name], stacklevel=3)


class profile:  # noqa: N801 - used as `with profile() as p:`
    """Collects events of a `with` block; prints as their table."""

    def __init__(
        self, enabled: bool = True, *, use_cuda: bool = False, use_device: Any = None,
        record_shapes: bool = False, with_flops: bool = False, profile_memory: bool = False,
        with_stack: bool = False, with_modules: bool = False, use_kineto: bool = False,
        use_cpu: bool = True, experimental_config: Any = None, acc_events: bool = False,
    ) -> None:  # fmt: skip
        warn_of(
            use_cuda=use_cuda or use_device == "cuda", profile_memory=profile_memory,
            with_flops=with_flops, with_modules=with_modules,
        )  # fmt: skip
        self.enabled = enabled
        self.entered = False
        self.function_events: EventList | None = None
        self._recording = Recording(shapes=record_shapes, lines=with_stack)

    def __enter__(self) -> Self | None:
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        self.entered = True
        self._recording.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self.enabled:
            self._recording.stop()
            self.function_events = self._recording.found()

    def _finished(self) -> EventList:
        if self.function_events is None:
            raise RuntimeError("Profiler didn't finish running")
        return self.function_events

    def __str__(self) -> str:
        if self.function_events is None:
            return "<unfinished torch.autograd.profile>"
        return str(self.function_events)

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0
    ) -> EventList:
        """Sums by name."""
        return self._finished().key_averages(group_by_input_shape, group_by_stack_n)

    def table(self, *args: Any, **kwargs: Any) -> str:
        """The table of all events, one by one."""
        return self._finished().table(*args, **kwargs)

    def total_average(self) -> Any:
        """Everything in one sum."""
        return self._finished().total_average()

    def export_chrome_trace(self, path: Any) -> None:
        """Write what ran when, for chrome://tracing or Perfetto."""
        self._finished().export_chrome_trace(path)

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of all that was measured."""
        return self._finished().self_cpu_time_total


__getattr__ = module_getattr(__name__)
