"""Functions whose gradients of first and second order tests/autograd compares with torch's.

Keeps     a case is one line of gradient_cases.txt: the letter of an input, then an expression in x.
          Of the second order both are asked for, by x and by the cotangent; None is told from zero.
Touches   nothing.
Not here  recording (record_gradients.py), comparing (tests/autograd/test_recorded.py)."""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Any

INPUTS = {
    "b": [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.0, 3.0, -3.0, 6.0, 21.0, math.nan],
    "z": [[0.0, 2.0, 3.0], [4.0, 0.0, 0.0], [7.0, 0.0, 0.5]],
    "m": [[3.0, 1.0, 2.0], [0.5, 4.0, -1.0]],
    "p": [0.2, 0.5, 0.9],
    "s": 0.7,
}


def groups() -> dict[str, list[str]]:
    """The cases of gradient_cases.txt by their headings."""
    found: dict[str, list[str]] = {}
    for line in Path(__file__).with_suffix(".txt").read_text().splitlines():
        if line.startswith("## "):
            found[line.removeprefix("## ").partition(":")[0]] = cases = []
        elif line:
            cases.append(line)
    return found


def outcome(case: str, torch: Any) -> Any:
    """Names of the results' nodes, gradients, what requires gradients, second gradients; of an
    error its class and first line."""
    letter, _, expression = case.partition(": ")
    given = INPUTS.get(letter, [[0.0] * 3] * 0)
    x = torch.tensor(given, dtype=torch.float64)
    if letter == "e":
        x = x.reshape(0, 3)
    x.requires_grad_(True)
    torch.manual_seed(0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = eval(expression, {"torch": torch, "F": torch.nn.functional, "x": x})
        return _gradients(torch, x, made)
    except Exception as error:
        return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"


def _gradients(torch: Any, x: Any, made: Any) -> Any:
    outs = [made] if isinstance(made, torch.Tensor) else list(made)
    names = [each.grad_fn and each.grad_fn.name() for each in outs]
    outs = [each for each in outs if each.grad_fn is not None]
    weights = [_weights(torch, each) for each in outs]
    (first,) = torch.autograd.grad(outs, [x], weights, create_graph=True, allow_unused=True)
    found = {"names": names, "first": _listed(first)}
    if first is not None and first.requires_grad:
        second = torch.autograd.grad(
            first, [x, *weights], _weights(torch, first), allow_unused=True
        )
        found["second"] = [_listed(each) for each in second]
    return found


def _weights(torch: Any, like: Any) -> Any:
    count = like.numel()
    made = torch.arange(1.0, count + 1, dtype=torch.float64).reshape(like.shape) / (count or 1)
    return made.requires_grad_(True)


def _listed(tensor: Any) -> Any:
    return None if tensor is None else tensor.detach().clone().reshape(-1).tolist()
