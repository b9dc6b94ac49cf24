"""Gradients of first and second order, None where torch's are, and the names of nodes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import flambeau as torch
from tests.recorded import gradient_cases

FOLDER = Path(__file__).parents[1] / "recorded"
RECORDED = json.loads((FOLDER / "gradients.json").read_text())
TOLERANCE = 1e-9


def agrees(given: Any, expected: Any) -> bool:
    if isinstance(expected, dict):
        return isinstance(given, dict) and given.keys() == expected.keys() and all(
            agrees(given[key], value) for key, value in expected.items()
        )  # fmt: skip
    if isinstance(expected, list):
        return isinstance(given, list) and len(given) == len(expected) and all(
            map(agrees, given, expected)
        )  # fmt: skip
    if isinstance(expected, float):
        return given == expected or (given != given and expected != expected) or (
            abs(given - expected) <= TOLERANCE * max(1.0, abs(expected))
        )  # fmt: skip
    return bool(given == expected)


@pytest.mark.parametrize("group", RECORDED)
def test_gradients_are_torchs(group: str) -> None:
    assert [case for case, _ in RECORDED[group]] == gradient_cases.groups()[group], "record anew"
    wrong = []
    for case, expected in RECORDED[group]:
        given = gradient_cases.outcome(case, torch)
        if not agrees(given, expected):
            wrong.append(f"{case}\n    {given}\n--- expected\n    {expected}")
    assert not wrong, f"{len(wrong)} of {len(RECORDED[group])}\n" + "\n\n".join(wrong[:20])
