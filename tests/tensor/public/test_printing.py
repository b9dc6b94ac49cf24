"""Tensors print as torch prints them: texts recorded from torch by tests/recorded."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import flambeau as torch

RECORDED = Path(__file__).parents[2] / "recorded" / "printing.json"
CASES = json.loads(RECORDED.read_text())


@pytest.fixture(autouse=True)
def default_options() -> Iterator[None]:
    torch.set_printoptions(profile="default")
    yield
    torch.set_printoptions(profile="default")


def groups() -> dict[str, list[tuple[str, str]]]:
    found: dict[str, list[tuple[str, str]]] = {}
    for expression, options, text in CASES:
        found.setdefault(json.dumps(options), []).append((expression, text))
    return found


@pytest.mark.parametrize("options", groups())
def test_repr_is_torchs(options: str) -> None:
    cases = groups()[options]
    assert len(cases) > 50
    wrong = []
    for expression, expected in cases:
        torch.set_printoptions(profile="default")
        torch.set_printoptions(**json.loads(options))
        given = repr(eval(expression, {"torch": torch}))
        if given != expected:
            wrong.append(f"{expression}\n{given}\n--- expected\n{expected}")
    assert not wrong, f"{len(wrong)} of {len(cases)}\n" + "\n\n".join(wrong[:5])


def test_printing_makes_no_kernel_and_no_history() -> None:
    x = torch.arange(5000.0).reshape(50, 100)
    view = x.t()[::3]
    view.sum().item()
    before = x._version
    assert "..." in repr(view)
    assert repr(view.sum().item())
    assert x._version == before


@pytest.mark.parametrize(
    ("value", "specification", "expected"),
    [(2.5, ".3f", "2.500"), (2.5, "", "2.5"), (3, ">4", "   3"), (True, "", "True")],
)
def test_format_of_a_number(value: Any, specification: str, expected: str) -> None:
    assert format(torch.tensor(value), specification) == expected


def test_format_of_several_numbers() -> None:
    assert f"{torch.ones(2)}" == "tensor([1., 1.])"
    with pytest.raises(TypeError, match=r"unsupported format string passed to Tensor.__format__"):
        format(torch.ones(2), ".2f")


def test_printoptions_are_put_back() -> None:
    with torch.printoptions(precision=1):
        assert repr(torch.tensor(1.25)) == "tensor(1.2)"
    assert torch.get_printoptions()["precision"] == 4
