"""Optimizers and schedules against torch's recorded answers: losses, states, rates."""

import json
from pathlib import Path

import pytest

import flambeau as torch
from tests.recorded.training_cases import OPTIMIZERS, SCHEDULES, Training

RECORDED = Path(__file__).resolve().parents[1] / "recorded"

WANTED = json.loads((RECORDED / "training.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("text", OPTIMIZERS)
def test_twenty_steps_lose_as_torch_loses(text):
    wanted, given = WANTED[text], Training(torch).trained(text)
    assert given["repr"] == wanted["repr"]
    # Muon works in bfloat16: one sum near the middle of two numbers is rounded the other way.
    within = 1e-6 if "Muon" in text else 1e-9
    assert given["losses"] == pytest.approx(wanted["losses"], rel=within)
    names = [[name, kind] for name, kind, _ in wanted["state"]]
    assert [[name, kind] for name, kind, _ in given["state"]] == names
    sums = [total for _, _, total in wanted["state"]]
    assert [total for _, _, total in given["state"]] == pytest.approx(
        sums, rel=10 * within, abs=1e-12
    )


@pytest.mark.parametrize("text", SCHEDULES)
def test_rates_are_torchs_to_the_last_bit(text):
    assert Training(torch).answer(text) == WANTED[text]
