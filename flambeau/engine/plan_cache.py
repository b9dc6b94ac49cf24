"""Which plan runs a segment: those of this process, by what was recorded and what must be kept.

Keeps     a plan leaves at least what is alive in memory; plans are bounded in number and bytes,
          the longest unused go first. Whoever asks holds the lock of flushes (run.LOCK).
Touches   plan_store, run (its counts).
Not here  plans on disk (plan_store.py), templates and planning (planning/), running (run.py)."""

from __future__ import annotations

from typing import Any, Final

from flambeau.engine import plan_store
from flambeau.engine.plan import Plan, SegmentFacts
from flambeau.engine.run import STATS, Run

MAX_PLANS: Final = 4096
MAX_PLAN_BYTES: Final = 128 << 20
# What a record's key takes, next to its slots.
KEY_BYTES: Final = 64
# Variants of one segment by liveness, after which their union is planned.
MAX_VARIANTS: Final = 3


class _Variants:
    """Plans of one segment, told apart by what they leave in memory.

    used      when, by the count of look-ups
    n_bytes   about what they and their key take
    """

    __slots__ = ("n_bytes", "plans", "used")

    def __init__(self, n_bytes: int) -> None:
        self.plans: list[Plan] = []
        self.n_bytes = n_bytes
        self.used = 0


_PLANS: Final[dict[Any, _Variants]] = {}
# Look-ups of plans so far, and bytes of those kept.
_clock: Final = [0, 0]


def forget() -> None:
    """Drop every plan."""
    _PLANS.clear()
    _clock[1] = 0


def plan_for(run: Run, touched: tuple[int, ...]) -> Plan:
    """A plan that leaves at least what is alive in memory."""
    n_inputs, n_fresh = run.n_inputs, run.n_fresh
    keys = tuple([record[0] for record in run.records])
    lookup = (keys, touched, n_inputs, n_fresh)
    wanted = run.wanted()
    _clock[0] += 1
    came_back = False
    variants = _PLANS.get(lookup)
    if variants is not None:
        variants.used = _clock[0]
        for plan in variants.plans:
            if plan.stored & wanted == wanted:
                if not plan.is_apart:
                    return plan
                # It came back: now fusing pays.
                came_back = True
                wanted = plan.stored
                # A signal handler may have taken it out meanwhile.
                variants.plans = [each for each in variants.plans if each is not plan]
                break
        if len(variants.plans) >= MAX_VARIANTS:
            for plan in variants.plans:
                wanted |= plan.stored
    segment = run.segment
    facts = SegmentFacts(
        keys,
        touched,
        [storage.layout.span_bytes for storage in segment.inputs[:n_inputs]],
        [storage.layout.span_bytes for storage in segment.fresh[:n_fresh]],
        {number for number in range(n_fresh) if wanted >> 8 * number & 1},
    )
    plan, is_new = plan_store.plan_for(facts, came_back)
    STATS.segments_planned += is_new
    if variants is None:
        n_bytes = 500 + KEY_BYTES * len(keys) + 16 * sum(map(len, keys)) + 8 * len(touched)
        variants = _PLANS.setdefault(lookup, _Variants(n_bytes))
        variants.used = _clock[0]
        _clock[1] += n_bytes
    variants.plans.insert(0, plan)
    n_bytes = 1000 + 8 * len(plan.program) + 300 * plan.n_kernels + n_fresh
    variants.n_bytes += n_bytes
    _clock[1] += n_bytes
    del variants.plans[MAX_VARIANTS + 1 :]
    if _clock[1] > MAX_PLAN_BYTES or len(_PLANS) > MAX_PLANS:
        _drop_oldest()
    return plan


def _drop_oldest() -> None:
    """Bring the plans below three quarters of their bounds."""
    for lookup, variants in sorted(_PLANS.items(), key=lambda item: item[1].used):
        if _clock[1] <= MAX_PLAN_BYTES * 3 // 4 and len(_PLANS) <= MAX_PLANS * 3 // 4:
            break
        if _PLANS.pop(lookup, None) is not None:
            _clock[1] -= variants.n_bytes
