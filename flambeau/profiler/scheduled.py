"""profile with a schedule: waits, warms up, records, hands over, and so on by its step().

Keeps     torch's actions by step number; events of the last cycle only, or of all if acc_events.
Touches   autograd.profiler.
Not here  measuring (autograd/profiler.py), tables (autograd/profiler_util.py)."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any, Self

from flambeau.autograd.profiler import Recording, record_function, warn_of
from flambeau.autograd.profiler_util import EventList


class ProfilerAction(Enum):
    """What to do in a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


class ProfilerActivity(Enum):
    """What to watch; here there is the CPU."""

    CPU = 0
    XPU = 1
    CUDA = 3


_RECORDING = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


def supported_activities() -> set[ProfilerActivity]:
    """What can be watched."""
    return {ProfilerActivity.CPU}


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0,
    skip_first_wait: int = 0,
) -> Callable[[int], ProfilerAction]:  # fmt: skip
    """Cycles of `wait` idle steps, `warmup` and `active` recorded ones; `repeat` of them, or for
    ever with 0, after `skip_first` steps. The first wait is left out by `skip_first_wait`.

    >>> action = schedule(wait=1, warmup=1, active=2)
    >>> [action(step).name for step in range(5)]
    ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE', 'NONE']
    """
    if min(wait, warmup, repeat, skip_first) < 0 or active <= 0:
        raise AssertionError(
            f"Invalid profiler schedule arguments. Got wait={wait} (need >= 0), "
            f"warmup={warmup} (need >= 0), active={active} (need > 0), "
            f"repeat={repeat} (need >= 0), skip_first={skip_first} (need >= 0)."
        )
    length = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait:
            step += wait
        cycle, place = divmod(step, length)
        if (repeat > 0 and cycle >= repeat) or place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        is_last = place == length - 1
        return ProfilerAction.RECORD_AND_SAVE if is_last else ProfilerAction.RECORD

    return action


def tensorboard_trace_handler(
    dir_name: Any, worker_name: str | None = None, use_gzip: bool = False
) -> Callable[[Any], None]:
    """For `on_trace_ready`: writes a trace a cycle into a folder."""

    def write(finished: profile) -> None:
        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        name = f"{worker}.{time.time_ns()}.pt.trace.json{'.gz' if use_gzip else ''}"
        finished.export_chrome_trace(os.path.join(dir_name, name))

    return write


class profile:  # noqa: N801 - used as `with profile() as p:`
    """Profile of a `with` block, or of the steps that `schedule(step number)` says.

    Times are of the kernels that ran; a kernel's is shared evenly by the operators it fused.

    >>> import flambeau as torch
    >>> with profile(activities=[ProfilerActivity.CPU]) as p:
    ...     y = torch.ones(3).exp().tolist()
    >>> [(each.key, each.count) for each in p.key_averages() if "exp" in each.key]
    [('aten::exp', 1)]
    """

    def __init__(
        self, *, activities: Iterable[Any] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[..., Any] | None = None, record_shapes: bool = False,
        profile_memory: bool = False, with_stack: bool = False, with_flops: bool = False,
        with_modules: bool = False, experimental_config: Any = None,
        execution_trace_observer: Any = None, acc_events: bool = False,
        use_cuda: bool | None = None,
    ) -> None:  # fmt: skip
        wanted = supported_activities() if activities is None else set(activities)
        if not wanted & set(ProfilerActivity):
            raise AssertionError("No valid profiler activities found")
        warn_of(
            use_cuda=bool(use_cuda) or (activities is not None and ProfilerActivity.CUDA in wanted),
            profile_memory=profile_memory, with_flops=with_flops, with_modules=with_modules,
        )  # fmt: skip
        self.activities = wanted
        self.schedule = schedule
        self.on_trace_ready = on_trace_ready
        self.acc_events = acc_events
        self.step_num = 0
        self._settings = {"shapes": record_shapes, "lines": with_stack}
        self._recording: Recording | None = None
        self._events: EventList | None = None
        self._step: record_function | None = None
        self.current_action = self._action()

    def _action(self) -> ProfilerAction:
        return ProfilerAction.RECORD if self.schedule is None else self.schedule(self.step_num)

    def start(self) -> None:
        """Begin, or wait, as the schedule says."""
        self.current_action = self._action()
        if self.current_action in _RECORDING:
            self._begin()
        self._mark()

    def stop(self) -> None:
        """End; hands over what was recorded in a cycle that did not end."""
        self._unmark()
        if self._recording is not None:
            self._end()

    def step(self) -> None:
        """The next step of the loop begins."""
        self._unmark()
        before = self.current_action
        self.step_num += 1
        self.current_action = self._action()
        is_saved = before is ProfilerAction.RECORD_AND_SAVE
        if self._recording is not None and (is_saved or self.current_action not in _RECORDING):
            self._end()
        if self._recording is None and self.current_action in _RECORDING:
            self._begin()
        self._mark()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def _mark(self) -> None:
        if self.schedule is not None and self._recording is not None:
            self._step = record_function(f"ProfilerStep#{self.step_num}")
            self._step.__enter__()

    def _unmark(self) -> None:
        if self._step is not None:
            self._step.__exit__()
            self._step = None

    def _begin(self) -> None:
        self._recording = Recording(**self._settings)
        self._recording.start()

    def _end(self) -> None:
        recording = self._recording
        self._recording = None
        if recording is None:
            return
        recording.stop()
        events = recording.found()
        for event in events:
            if event.is_user_annotation and event.name.startswith("ProfilerStep#"):
                event.key = "ProfilerStep*"
        if self.acc_events and self._events is not None:
            events = EventList([*self._events, *events], [*self._events.kernels, *events.kernels])
        self._events = events
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def events(self) -> EventList:
        """Every operator and block of the last cycle."""
        if self._events is None:
            raise AssertionError("Profiler must be initialized before accessing events")
        return self._events

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0
    ) -> EventList:
        """Sums by name."""
        if self._events is None:
            raise AssertionError("Profiler must be initialized before getting key averages")
        return self._events.key_averages(group_by_input_shape, group_by_stack_n)

    def export_chrome_trace(self, path: Any) -> None:
        """Write what ran when, for chrome://tracing or Perfetto; compressed if it ends in .gz."""
        self.events().export_chrome_trace(path)
