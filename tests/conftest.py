"""What every test gets: a printed seed, and the helpers (`*_support.py`) beside it."""

import gc
import os
import random
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
SEED = int(os.environ.get("FLAMBEAU_TEST_SEED", "0")) or random.SystemRandom().randrange(1, 10**6)

sys.path.insert(0, str(TESTS.parent))
for helper in sorted(TESTS.rglob("*_support.py")):
    if str(helper.parent) not in sys.path:
        sys.path.append(str(helper.parent))


def pytest_report_header():
    switches = {k: v for k, v in sorted(os.environ.items()) if k.startswith("FLAMBEAU_")}
    return [
        f"flambeau: seed {SEED} (FLAMBEAU_TEST_SEED={SEED} repeats it)",
        f"flambeau: switches {switches or 'none'}",
    ]


def pytest_collection_finish():
    """Thousands of tests lie in memory from here on: no collection need look at them again."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def seed():
    """The number this run draws its random cases from."""
    return SEED


@pytest.fixture(autouse=True)
def _same_start():
    """Python's own random numbers start alike in every test, so that order does not matter."""
    random.seed(SEED)


@pytest.fixture(scope="session", autouse=True)
def _native_recorder():
    """The native recorder from the start: a program that begins without one compiles it later."""
    from flambeau.tensor.native import library

    library.library()


@pytest.fixture(scope="session", autouse=True)
def _plans_of_this_run():
    """Tests that count plans do not depend on what earlier runs left on disk."""
    from flambeau.base.config import CONFIG

    CONFIG.keep_plans = False
