"""The switches as the environment sets them."""

from __future__ import annotations

import pytest

from flambeau.base.config import Config


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, None),
        ({"OMP_NUM_THREADS": "1"}, 1),
        ({"OMP_NUM_THREADS": "3,2"}, 3),
        ({"MKL_NUM_THREADS": "2"}, 2),
        ({"OMP_NUM_THREADS": "4", "MKL_NUM_THREADS": "2"}, 4),
        ({"OMP_NUM_THREADS": "many"}, None),
        ({"OMP_NUM_THREADS": "0"}, None),
        ({"OMP_NUM_THREADS": "1", "FLAMBEAU_THREADS": "2"}, 2),
    ],
)
def test_threads(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], expected: int | None
) -> None:
    """Our own switch, then the variables that torch heeds."""
    for name in ("FLAMBEAU_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert Config().threads == expected
