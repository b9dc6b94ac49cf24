"""torch.utils.benchmark: how long a statement takes, with medians.

Keeps     torch's names.
Touches   the files beside it.
Not here  the benchmarks of flambeau itself (benchmarks/)."""

from __future__ import annotations

from flambeau.base.missing import module_getattr
from flambeau.utils.benchmark.measurement import Measurement, TaskSpec, select_unit
from flambeau.utils.benchmark.timing import Timer

__all__ = ["Measurement", "TaskSpec", "Timer", "select_unit"]

__getattr__ = module_getattr(__name__)
