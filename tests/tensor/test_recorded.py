"""Reading, writing, filling, asking: what flambeau gives is what torch gave, case by case."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import flambeau as torch
from tests.recorded import tensor_cases

FOLDER = Path(__file__).parents[1] / "recorded"
RECORDED = json.loads((FOLDER / "tensor.json").read_text())


@pytest.mark.parametrize("group", RECORDED)
def test_results_are_torchs(group: str) -> None:
    assert [case for case, _ in RECORDED[group]] == list(tensor_cases.GROUPS[group]), "record anew"
    wrong = []
    for case, expected in RECORDED[group]:
        given = tensor_cases.outcome(case, torch)
        if given != expected:
            wrong.append(f"{case}\n    {given}\n--- expected\n    {expected}")
    assert not wrong, f"{len(wrong)} of {len(RECORDED[group])}\n" + "\n\n".join(wrong[:20])
