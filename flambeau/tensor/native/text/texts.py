"""The texts of all native functions of the recorder.

Keeps     a text depends on its kind, its name and the offsets alone.
Touches   the files beside it that write their parts.
Not here  compiling them (library.py)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from flambeau.tensor.native.flush import parts_text
from flambeau.tensor.native.flush import text as flush_text
from flambeau.tensor.native.reading import text as reading_text
from flambeau.tensor.native.text import (
    attach_text,
    general_text,
    inplace_text,
    kinds_text,
    lists_text,
    record_text,
    view_text,
    walk_text,
)
from flambeau.tensor.native.text.writer import declarations


def text_of(kind: str, name: str, offsets: Mapping[str, int]) -> str:
    """The module that defines the function of this kind under the name."""
    helpers = "\n".join((
        declarations(), record_text.site_text(), record_text.touch_text(offsets),
        record_text.slot_text(offsets),
        record_text.stream_text(), kinds_text.tensor_text(), kinds_text.plain_text(offsets),
        record_text.value_text(), record_text.find_text(),
    ))  # fmt: skip
    gradients = (
        attach_text.entry_text(offsets)
        + attach_text.history_text(offsets)
        + attach_text.result_text(offsets)
    )
    bodies: dict[str, Callable[[str], str]] = {
        "unary": lambda name: helpers + gradients
        + attach_text.attach_text(offsets, binary=False)
        + record_text.record_text(name, offsets, binary=False),
        "binary": lambda name: helpers + gradients
        + attach_text.attach_text(offsets, binary=True)
        + record_text.record_text(name, offsets, binary=True),
        "general": lambda name: helpers + gradients + general_text.attach_any_text(offsets)
        + general_text.general_text(name, offsets),
        "view": lambda name: helpers + gradients + general_text.attach_any_text(offsets)
        + view_text.make_view_text(offsets) + view_text.plain_family_text(offsets)
        + view_text.view_text(name, offsets),
        "getitem": lambda name: helpers + gradients + general_text.attach_any_text(offsets)
        + view_text.make_view_text(offsets) + view_text.plain_family_text(offsets)
        + view_text.getitem_text(name, offsets),
        "inplace_unary": lambda name: helpers
        + inplace_text.inplace_text(name, offsets, binary=False),
        "inplace_binary": lambda name: helpers
        + inplace_text.inplace_text(name, offsets, binary=True),
        "walk": lambda name: helpers + "".join((
            walk_text.unpack_text(offsets), walk_text.needs_text(offsets),
            walk_text.drop_text(), walk_text.arguments_text(offsets),
            walk_text.hand_on_text(offsets), walk_text.leaf_text(),
            walk_text.walk_text(name, offsets),
        )),
        "discover": lambda name: declarations() + walk_text.discover_text(name, offsets),
        "flush": lambda name: declarations() + flush_text.flush_text(name, offsets),
        "quick": lambda name: declarations() + flush_text.caller_text(name),
        "item": lambda name: declarations() + reading_text.item_text(name, offsets),
        "numpy": lambda name: declarations() + reading_text.numpy_text(name, offsets),
        "slots": lambda name: helpers + lists_text.slots_text(name),
        "bumps": lambda name: declarations() + lists_text.bumps_text(name, offsets),
        "free_block": lambda name: declarations() + parts_text.free_text(name),
        "guard": lambda name: declarations() + kinds_text.simple_text()
        + kinds_text.guard_text(name),
        "bind": lambda name: declarations() + inplace_text.bind_text(name),
    }  # fmt: skip
    return bodies[kind](name)
