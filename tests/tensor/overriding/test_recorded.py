"""What a __torch_function__ sees, and of what class results are: as torch has it."""

import json
from pathlib import Path

import pytest

import flambeau as torch
from tests.recorded.override_cases import CASES, outcome

RECORDED = json.loads(
    (Path(__file__).parents[2] / "recorded" / "overrides.json").read_text(encoding="utf-8")
)


def test_all_cases_are_recorded():
    assert list(RECORDED) == list(CASES)


@pytest.mark.parametrize("case", CASES)
def test_calls_and_results_are_torchs(case):
    assert outcome(case, torch) == RECORDED[case]
