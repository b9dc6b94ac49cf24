"""torch's rules as data (tests/recorded/record_rules.py), read once."""

import json
from pathlib import Path

from flambeau.base import dtypes
from flambeau.base.layout import layout

RULES = json.loads(
    (Path(__file__).parents[1] / "recorded" / "rules.json").read_text(encoding="utf-8")
)


def laid_out(geometry):
    """A float32 layout from [shape, strides]."""
    shape, strides = geometry
    return layout(tuple(shape), tuple(strides), dtypes.float32)
