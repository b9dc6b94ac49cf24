"""Writes overlaps.json: which pairs of tests/engine/overlap_support.py torch refuses.

Run it with an interpreter that has torch 2.13:  python tests/recorded/record_overlaps.py"""

import json
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "engine"))
import overlap_support as pairs


def main():
    refused = [
        number for number in range(pairs.N_PAIRS)
        if pairs.outcome(torch, number).startswith("unsupported operation")
    ]  # fmt: skip
    path = Path(__file__).with_name("overlaps.json")
    path.write_text(json.dumps({"torch": torch.__version__, "refused": refused}) + "\n")


if __name__ == "__main__":
    main()
