"""Layers and losses against torch's recorded answers: repr, initial values, outputs, gradients."""

import json
from pathlib import Path

import pytest

import flambeau as torch
from tests.recorded.layer_cases import CASES, Answers

RECORDED = Path(__file__).resolve().parents[1] / "recorded"

WANTED = json.loads((RECORDED / "layers.json").read_text(encoding="utf-8"))
# torch keeps some constants in float32 where it computes in float64 (hardsigmoid's 1/6).
CLOSE = {"rel": 1e-7, "abs": 1e-9, "nan_ok": True}


def close(given, wanted):
    if isinstance(wanted, float):
        return given == pytest.approx(wanted, **CLOSE)
    if isinstance(wanted, list):
        return len(given) == len(wanted) and all(map(close, given, wanted))
    return given == wanted


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda n: f"{n} {CASES[n][0]}"[:60])
def test_a_layer_answers_as_torch_does(number):
    case = CASES[number]
    wanted = WANTED[f"{number} {case[0]}"]
    answers = Answers(torch)
    if isinstance(wanted, str):
        with pytest.raises(Exception) as caught:  # noqa: PT011 - compared below
            answers.case(*case)
        text = f"{type(caught.value).__name__}: {str(caught.value).splitlines()[0]}"
        assert text == wanted
        return
    given = answers.case(*case)
    for part, value in wanted.items():
        assert close(given[part], value), (part, given[part], value)
