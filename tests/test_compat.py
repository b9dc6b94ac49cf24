"""flambeau/compat.toml says of every public torch name what the code bears out."""

import json
import tomllib
from pathlib import Path

import pytest

import flambeau as torch
from tests.recorded.record_compat import served

ROOT = Path(__file__).resolve().parents[1]
TABLE = tomllib.loads((ROOT / "flambeau" / "compat.toml").read_text(encoding="utf-8"))
NAMES = json.loads((ROOT / "tests/recorded/torch_names.json").read_text(encoding="utf-8"))["names"]


def test_every_room_is_there():
    assert TABLE.keys() == NAMES.keys()


@pytest.mark.parametrize("owner", NAMES)
def test_every_name_stands_once(owner):
    room = TABLE[owner]
    refused = [name for names in room.get("refused", {}).values() for name in names]
    assert sorted([*room["done"], *room.get("partial", {}), *refused]) == sorted(NAMES[owner])


@pytest.mark.parametrize("owner", NAMES)
def test_the_code_bears_it_out(owner):
    """What is done or partial is there, what is refused is not; after a change run the recorder."""
    room, found = TABLE[owner], served(owner)
    present = {name for name in NAMES[owner] if found is not None and hasattr(found, name)}
    assert present == {*room["done"], *room.get("partial", {})}


def test_a_refused_name_gives_its_reason():
    with pytest.raises(AttributeError, match="no complex dtype of half precision"):
        torch.chalf  # noqa: B018
