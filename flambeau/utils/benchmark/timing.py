"""Timer: runs a statement many times and reads the clock around it.

Keeps     every run is a whole one: what the statement's last expression gave is held until it has
          been computed, and the clock is read after that. Values nobody holds are not computed.
Touches   engine.stream (the flush), tensor.public.settings (threads).
Not here  medians and printing (measurement.py)."""

from __future__ import annotations

import ast
import sys
import textwrap
import timeit
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from flambeau.base.errors import helped
from flambeau.engine import stream
from flambeau.tensor.public import settings
from flambeau.utils.benchmark.measurement import Measurement, TaskSpec, quantile

_TEMPLATE: Final = """
def _measured(_number, _clock, _run):
    _run()
    _start = _clock()
    for _ in range(_number):
        _run()
    return _clock() - _start
"""
# A block is long enough when reading the clock is less than this share of it.
_CLOCK_SHARE: Final = 1e-4
_BLOCK_SHARE: Final = 1e-3
_MOST_RUNS: Final = 2**31 - 1


def _run_all() -> None:
    stream.current().synchronize("benchmark.Timer")


def _compiled(statement: str, setup: str, scope: dict[str, Any]) -> Callable[..., float]:
    """The function that measures; names of the setup are its locals, as timeit has them."""
    module = ast.parse(_TEMPLATE)
    body = ast.parse(textwrap.dedent(statement)).body
    if body and isinstance(body[-1], ast.Expr):
        held = ast.Name("_held", ast.Store())
        body[-1] = ast.copy_location(ast.Assign([held], body[-1].value), body[-1])
    function: Any = module.body[0]
    loop = function.body[2]
    loop.body[:0] = body
    function.body[:0] = ast.parse(textwrap.dedent(setup)).body
    ast.fix_missing_locations(module)
    exec(compile(module, "<torch.utils.benchmark.Timer>", "exec"), scope)
    return scope["_measured"]  # type: ignore[no-any-return]


@contextmanager
def _threads(count: int) -> Iterator[None]:
    before = settings.get_num_threads()
    settings.set_num_threads(count)
    try:
        yield
    finally:
        settings.set_num_threads(before)


class Timer:
    """Measures a statement, with one thread unless told otherwise.

    >>> import flambeau as torch
    >>> timer = Timer("x + 1", globals={"x": torch.ones(3)})
    >>> timer.timeit(5).number_per_run
    5
    """

    def __init__(
        self, stmt: str = "pass", setup: str = "pass", global_setup: str = "",
        timer: Callable[[], float] = timeit.default_timer,
        globals: dict[str, Any] | None = None,
        label: str | None = None, sub_label: str | None = None, description: str | None = None,
        env: str | None = None, num_threads: int = 1, language: Any = "py",
    ) -> None:  # fmt: skip
        if not isinstance(stmt, str):
            raise ValueError(f"Expected a string as stmt, got {type(stmt).__name__}")
        if str(language).lower() not in ("py", "python"):
            raise NotImplementedError(
                helped(
                    "flambeau's Timer measures Python only",
                    given=f"language={language!r}",
                    fix="write the statement in Python",
                )
            )
        if global_setup:
            raise ValueError(
                f"global_setup is C++ only, got `{global_setup}`. Most likely this code can simply "
                "be moved to `setup`."
            )
        setup = textwrap.dedent(setup).strip("\n")
        stmt = textwrap.dedent(stmt).strip("\n")
        scope = dict(globals or {})
        scope.setdefault("torch", sys.modules["flambeau"])  # a statement may say torch unasked
        self._clock = timer
        self._measured = _compiled(stmt, setup, scope)
        self._task_spec = TaskSpec(
            stmt, setup, global_setup, label, sub_label, description, env, num_threads
        )

    def _time(self, number: int) -> float:
        return max(self._measured(number, self._clock, _run_all), 1e-9)

    def _measurement(self, number: int, times: list[float]) -> Measurement:
        return Measurement(number, times, self._task_spec)

    def timeit(self, number: int = 1000000) -> Measurement:
        """One measurement of `number` runs, after a few to warm up."""
        with _threads(self._task_spec.num_threads):
            self._time(max(number // 100, 2))
            return self._measurement(number, [self._time(number)])

    def repeat(self, repeat: int = -1, number: int = -1) -> None:
        """As in torch: not there."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def autorange(self, callback: Any = None) -> None:
        """As in torch: not there."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def _block(self, min_run_time: float) -> int:
        """Runs a measurement, ten times more until the clock does not matter."""
        clock = quantile(sorted(self._time(0) for _ in range(5)), 0.5)
        number = 1
        while True:
            spent = self._time(number)
            is_long = clock / spent <= _CLOCK_SHARE and spent >= min_run_time * _BLOCK_SHARE
            if is_long or spent > min_run_time or number * 10 > _MOST_RUNS:
                return number
            number *= 10

    def blocked_autorange(
        self, callback: Callable[[int, float], Any] | None = None, min_run_time: float = 0.2
    ) -> Measurement:
        """Measurements until `min_run_time` seconds have been measured."""
        return self._ranged(callback, lambda times: sum(times) >= min_run_time, min_run_time)

    def adaptive_autorange(
        self, threshold: float = 0.1, *, min_run_time: float = 0.01, max_run_time: float = 10.0,
        callback: Callable[[int, float], Any] | None = None,
    ) -> Measurement:  # fmt: skip
        """Measurements until they agree, by a middle half narrower than `threshold` medians."""

        def is_enough(times: list[float]) -> bool:
            total = sum(times)
            if total > max_run_time:
                return True
            agree = len(times) > 3 and self._measurement(1, times).meets_confidence(threshold)
            return total >= min_run_time and agree

        return self._ranged(callback, is_enough, min_run_time)

    def _ranged(
        self, callback: Any, is_enough: Callable[[list[float]], bool], min_run_time: float
    ) -> Measurement:
        with _threads(self._task_spec.num_threads):
            number = self._block(min_run_time)
            times: list[float] = []
            while not times or not is_enough(times):
                times.append(self._time(number))
                if callback is not None:
                    callback(number, times[-1])
        return self._measurement(number, times)
