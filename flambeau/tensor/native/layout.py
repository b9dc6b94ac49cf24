"""Where CPython keeps what: offsets of slots, told by member descriptors and checked.

Keeps     nothing is believed: each offset is proved on an object before it is used; builds laid out
          otherwise (no GIL, debug, another implementation) are refused.
Touches   ctypes; base, engine, gradients, tensor (whose slots they are).
Not here  what the offsets are used for."""

from __future__ import annotations

import ctypes
import sys
from typing import Final

from flambeau.base.config import Config
from flambeau.base.layout import Layout
from flambeau.devices.cpu import memory
from flambeau.engine import external
from flambeau.engine.segment import Segment
from flambeau.engine.storage import Storage
from flambeau.engine.stream import Stream
from flambeau.engine.view import Place, View
from flambeau.gradients import graph
from flambeau.gradients.graph import Node, OperatorNode
from flambeau.gradients.recording.plan import PlanProgram
from flambeau.tensor.native.types import UnknownLayoutError
from flambeau.tensor.tensor import Tensor

_HEAD_BYTES: Final = 16
_MEMBER_OF_DESCRIPTOR: Final = 40  # of PyMemberDescrObject, behind head, type, name, qualname
_OFFSET_OF_MEMBER: Final = 16  # of PyMemberDef, behind name and type


def check_build() -> None:
    """Refuse builds whose objects have another head."""
    import sysconfig

    fine = (
        sys.implementation.name == "cpython"
        and object.__basicsize__ == _HEAD_BYTES
        and not sysconfig.get_config_var("Py_GIL_DISABLED")
        and not hasattr(sys, "getobjects")
    )
    if not fine:
        raise UnknownLayoutError("not the usual build of CPython")
    if word_at(id(_Sample()), 8) != id(_Sample):
        raise UnknownLayoutError("an object's type lies elsewhere")


class _Sample:
    __slots__ = ()


def word_at(address: int, offset: int = 0) -> int:
    """The word behind an address."""
    return ctypes.c_uint64.from_address(address + offset).value


def offsets_of(kind: type, *names: str) -> dict[str, int]:
    """'Class.slot' -> offset in bytes, for these slots of a class."""
    made: object = object.__new__(kind)
    found = {}
    for name in names:
        descriptor = vars(kind)[name]
        member = word_at(id(descriptor), _MEMBER_OF_DESCRIPTOR)
        offset = word_at(member, _OFFSET_OF_MEMBER)
        if not _HEAD_BYTES <= offset < kind.__basicsize__:
            raise UnknownLayoutError(f"{kind.__name__}.{name} at {offset}")
        proof = _Sample()
        descriptor.__set__(made, proof)
        if word_at(id(made), offset) != id(proof):
            raise UnknownLayoutError(f"{kind.__name__}.{name} is not at {offset}")
        descriptor.__delete__(made)
        found[f"{kind.__name__}.{name}"] = offset
    return found


def slots() -> dict[str, int]:
    """Offsets of all slots that native code reads and writes; UnknownLayoutError where they cannot
    be known."""
    check_build()
    return {
        **offsets_of(View, "_storage", "_layout", "_offset", "_place"),
        **offsets_of(Tensor, "_autograd", "_base"),
        **offsets_of(Layout, "memo"),
        **offsets_of(
            Storage, "layout", "segment", "slot", "version", "external", "write_site", "block",
            "bounds",
        ),
        **offsets_of(Place, "segment", "slot"),
        **offsets_of(
            Segment, "records", "fresh", "armed", "limit", "closed", "inputs", "touched", "offsets",
            "views", "places", "direct", "flushed", "last_uses", "run", "stream", "weighed",
        ),
        **offsets_of(Stream, "segment", "asks", "grad_enabled", "inference", "site"),
        **offsets_of(Node, "edges", "layouts", "extras", "site", "sequence"),
        **offsets_of(OperatorNode, "plan", "attributes", "saved"),
        **offsets_of(PlanProgram, "program"),
        **offsets_of(graph.Output, "node"),
        **offsets_of(Config, "fuse", "threads"),
        **offsets_of(memory.Block, "address"),
        **offsets_of(external.OutsideBlock, "address"),
        **offsets_of(external.External, "owner", "references"),
    }  # fmt: skip
