"""Prints the first losses of an example as JSON, under whatever serves `import torch` here.

    python tests/examples/losses_of.py NAME float32|float64 STEPS THREADS
    python -m flambeau run tests/examples/losses_of.py NAME float32|float64 STEPS THREADS

Keeps     an ordinary PyTorch script: both sides run this very file.
Touches   examples/NAME.py.
Not here  comparing (test_against_torch.py)."""

import importlib.util
import json
import sys
from pathlib import Path

import torch

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def main():
    name, dtype, steps, threads = sys.argv[1:]
    torch.set_num_threads(int(threads))
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    losses = list(example.losses(int(steps), dtype=getattr(torch, dtype)))
    print(json.dumps({"version": torch.__version__, "losses": losses}))


if __name__ == "__main__":
    main()
