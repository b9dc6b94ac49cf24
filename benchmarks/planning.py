"""What planning an operator costs, in torch's eager adds of 4 floats.

    python benchmarks/planning.py

Keeps     one process and one thread's own time for both, so that a busy machine costs both alike;
          plans of earlier runs are not found on disk.
Touches   flambeau.engine.plan_store, to time each plan.
Not here  steady speed (run.py), starting up (startup.py)."""

import importlib.util
import tempfile
import time

from models import CharGPT

import flambeau
from flambeau import debug
from flambeau.engine import plan_store, run
from flambeau.engine.planning import template

LENGTHS = 24


def add_us():
    """Microseconds of torch's eager add, best of several rounds; None without torch."""
    if importlib.util.find_spec("torch") is None:
        return None
    import torch

    a, b = torch.ones(4), torch.ones(4)
    best = float("inf")
    for _ in range(20):
        start = time.thread_time()
        for _ in range(1000):
            a + b
        best = min(best, time.thread_time() - start)
    return best * 1e3


def planned(action):
    """(microseconds, records) of every segment planned while action() runs."""
    seen = []
    original = plan_store.plan_for

    def timed(facts, came_back):
        start = time.thread_time()
        result = original(facts, came_back)
        seen.append(((time.thread_time() - start) * 1e6, len(facts.keys)))
        return result

    plan_store.plan_for = timed
    try:
        action()
    finally:
        plan_store.plan_for = original
    return seen


def main():
    """Figures of a transformer's forward pass, a record each."""
    model = CharGPT(flambeau)

    def forward(batch, length):
        tokens = flambeau.zeros(batch, length, dtype=flambeau.int64)
        with flambeau.no_grad():
            model(tokens).numpy()

    forward(2, 9)  # kernels exist from here on
    forward(7, 40)
    run.forget_plans()

    def fresh():
        for number in range(LENGTHS):
            forward(3 + number * 5 % 7, 10 + number)

    forward(5, 20)

    def known():
        for _ in range(5):
            run.forget_plans()
            forward(5, 20)

    def on_disk():
        folder = tempfile.TemporaryDirectory()
        with folder as name, debug.cache_dir(name), debug.keep_plans(True):
            run.forget_plans()
            forward(5, 20)
            return planned(known)

    add = add_us()
    with debug.keep_plans(False):
        anew = planned(fresh), planned(known)
    for title, figures in (
        (f"{LENGTHS} lengths never seen before, all planning", anew[0]),
        ("a form planned before, plans forgotten", anew[1]),
        ("the same from disk", on_disk()),
    ):
        records = sum(count for _, count in figures)
        each = sum(spent for spent, _ in figures) / records
        ratio = "" if add is None else f" = {each / add:.1f} adds of {add:.2f} us"
        print(f"{title}: {each:.1f} us a record{ratio}")
    statistics = template.STATS
    print(f"plans bound by templates: {statistics.bound}, templates made: {statistics.made}")


if __name__ == "__main__":
    main()
