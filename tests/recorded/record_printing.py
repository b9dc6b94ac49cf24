"""Records how torch prints tensors, as the data of tests/tensor/public/test_printing.py.

    python tests/recorded/record_printing.py        (with torch 2.13 installed)

Keeps     a case is an expression over the name `torch`, and the options it is printed with.
Touches   torch; writes printing.json beside this file.
Not here  the comparison (tests/tensor/public/test_printing.py)."""

from __future__ import annotations

import json
from pathlib import Path

import torch

NUMBERS = (
    "[1.0, 2.0]",
    "[1.5, 2.25]",
    "[1e-5, 1.0]",
    "[1e5, 1.0]",
    "[1e9, 2e9]",
    "[0.0, 0.0]",
    "[1.0, float('nan')]",
    "[1.5, float('inf'), -float('inf')]",
    "[float('nan')]",
    "[-0.0, 0.5]",
    "[1234567.0]",
    "[99999999.0, 1.0]",
    "[1e8]",
    "[100000001.0]",
    "[0.1, 1000.0]",
    "[-1e-7]",
    "[1e-45, 1.0]",
    "[3.0, float('nan'), 1e10]",
    "[1e-3, 1e3]",
    "[123.456, -7.0]",
    "3.14159",
    "-1e-9",
    "7",
    "True",
    "[True, False]",
    "[1, -200, 30]",
    "[]",
    "[[]]",
    "[[], []]",
    "[[1.0], [2.5]]",
    "[[[1, 2], [3, 4]], [[5, 6], [7, 8]]]",
    "[1 + 2j, -3.5j]",
    "1j",
    "[[1.5 - 2j, float('nan')]]",
    "[2**40]",
    "[1e38, -1e-38]",
    "[9.99999]",
    "[0.00009999]",
)
DTYPES = ("float64", "float16", "bfloat16", "int32", "uint8", "bool", "complex128")
EXPRESSIONS = (
    *[f"torch.tensor({each})" for each in NUMBERS],
    *[
        f"torch.tensor([1.5, -2.0, 300.25], dtype=torch.float64).to(torch.{each})"
        for each in DTYPES
        if each != "complex128"
    ],
    *[f"torch.zeros(2, 0, dtype=torch.{each})" for each in DTYPES],
    *[f"torch.zeros(0, dtype=torch.{each})" for each in DTYPES],
    "torch.tensor([1 + 2j], dtype=torch.complex128)",
    "torch.arange(1001)", "torch.arange(1000)", "torch.arange(1001.0)", "torch.arange(2000) / 7",
    "torch.arange(3000).reshape(3, 1000)", "torch.arange(3000).reshape(1000, 3)",
    "torch.arange(1200).reshape(2, 20, 30)", "torch.arange(2400).reshape(2, 3, 20, 20)",
    "torch.arange(24).reshape(2, 3, 4)", "torch.arange(24.0).reshape(2, 3, 4).permute(2, 0, 1)",
    "torch.arange(100.0)", "torch.arange(30.0).reshape(2, 15)", "torch.arange(40) * 1000003",
    "torch.arange(3000.0).reshape(1000, 3).t()", "torch.arange(12.0).reshape(3, 4)[:, ::2]",
    "torch.tensor(2.5, requires_grad=True)", "torch.tensor([1.0, 2.0], requires_grad=True) * 2",
    "torch.tensor([1.0, 2.0], requires_grad=True).exp().sum()",
    "torch.arange(18.0).requires_grad_(True)", "torch.arange(17.0).requires_grad_(True).sin()",
    "torch.ones(3, dtype=torch.float64, requires_grad=True) + 1",
    "torch.ones(20, 2, dtype=torch.float16)", "torch.zeros(3, device='meta')",
    "torch.zeros(2, 3, dtype=torch.int32, device='meta')", "torch.zeros(1, 1, 1)",
    "torch.ones(2, 3) > 0", "torch.zeros(1001) > 0", "torch.tensor([[1e-8, 1.0], [2.0, 3.0]])",
    "torch.Size([2, 3])", "torch.Size([])", "torch.float32", "torch.device('cpu')",
    "torch.arange(4.0).reshape(2, 2).data",
)  # fmt: skip
OPTIONS: tuple[dict[str, object], ...] = (
    {}, {"precision": 2}, {"precision": 8, "linewidth": 40}, {"threshold": 5}, {"edgeitems": 1,
    "threshold": 3}, {"sci_mode": True}, {"sci_mode": False}, {"profile": "short"},
    {"profile": "full"}, {"linewidth": 200}, {"edgeitems": 0, "threshold": 2},
)  # fmt: skip
SHORT = tuple(each for each in EXPRESSIONS if "1001" not in each and "000)" not in each)


def main() -> None:
    """Write the file."""
    cases = []
    for options in OPTIONS:
        for expression in EXPRESSIONS if not options else SHORT:
            torch.set_printoptions(profile="default")
            torch.set_printoptions(**options)
            cases.append([expression, options, repr(eval(expression))])
    path = Path(__file__).with_name("printing.json")
    path.write_text(json.dumps(cases, indent=0) + "\n")


if __name__ == "__main__":
    main()
