"""Records torch's answers to training_cases.py: run it with torch 2.13 installed.

    python tests/recorded/record_training.py

Keeps     one answer a case, as data.
Touches   torch; writes training.json beside this file.
Not here  the comparison (tests/optim/test_recorded.py)."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from training_cases import Training

if __name__ == "__main__":
    target = Path(__file__).with_name("training.json")
    target.write_text(json.dumps(Training(torch).all(), indent=0) + "\n", encoding="utf-8")
