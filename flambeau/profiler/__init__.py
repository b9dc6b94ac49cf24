"""torch.profiler: profiles of a block, or of some of a loop's steps.

Keeps     torch's names.
Touches   autograd.profiler, the file beside it.
Not here  measuring (autograd/profiler.py), schedules (scheduled.py)."""

from __future__ import annotations

from flambeau.autograd.profiler import record_function
from flambeau.base.missing import module_getattr
from flambeau.profiler.scheduled import (
    ProfilerAction,
    ProfilerActivity,
    profile,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)

__all__ = [
    "ProfilerAction",
    "ProfilerActivity",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]

__getattr__ = module_getattr(__name__)
