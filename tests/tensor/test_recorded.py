"""Reading, writing, filling, asking: what flambeau gives is what torch gave, case by case."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

import flambeau as torch

FOLDER = Path(__file__).parents[1] / "recorded"
RECORDED = json.loads((FOLDER / "tensor.json").read_text())


def cases_module() -> Any:
    where = importlib.util.spec_from_file_location("tensor_cases", FOLDER / "tensor_cases.py")
    assert where is not None
    assert where.loader is not None
    module = importlib.util.module_from_spec(where)
    where.loader.exec_module(module)
    return module


CASES = cases_module()


@pytest.mark.parametrize("group", RECORDED)
def test_results_are_torchs(group: str) -> None:
    assert [case for case, _ in RECORDED[group]] == list(CASES.GROUPS[group]), "record anew"
    wrong = []
    for case, expected in RECORDED[group]:
        given = CASES.outcome(case, torch)
        if given != expected:
            wrong.append(f"{case}\n    {given}\n--- expected\n    {expected}")
    assert not wrong, f"{len(wrong)} of {len(RECORDED[group])}\n" + "\n\n".join(wrong[:20])
