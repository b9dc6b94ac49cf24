"""Writes bad_input.json: what torch raises for tests/engine/bad_input_support.py.

Run it with an interpreter that has torch 2.13:  python tests/recorded/record_bad_input.py"""

import json
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "engine"))
import bad_input_support as cases


def main():
    found = {case: cases.outcome(torch, case) for case in cases.CASES}
    path = Path(__file__).with_name("bad_input.json")
    path.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
