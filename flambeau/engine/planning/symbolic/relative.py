"""Signatures and segments without their sizes: what two of them share when only sizes differ.

Keeps     sizes 0 and 1 and strides 0 and 1 are part of the form, all others are not; everything
          else a lowering may look at is, value and type, and whether elements may overlap.
Touches   base (config, layout), devices.cpu.features, plan, sizes, signature.
Not here  what is kept for a form (template.py)."""

from __future__ import annotations

from typing import Any, Final

from flambeau.base.config import CONFIG
from flambeau.base.dtypes import dtype
from flambeau.base.layout import Layout, contiguous_strides
from flambeau.devices.cpu import features
from flambeau.engine.plan import SegmentFacts
from flambeau.engine.planning.symbolic.sizes import Tape
from flambeau.engine.signature import Signature


class Form:
    """What is left of a signature without sizes; equal ones are one object."""

    __slots__ = ("parts",)

    def __init__(self, parts: tuple[Any, ...]) -> None:
        self.parts = parts


class SizedLayout:
    """A layout whose sizes and strides may be Sizes: as much of it as lowering reads."""

    __slots__ = ("dtype", "is_conj", "itemsize", "may_overlap", "ndim", "shape", "strides")

    def __init__(self, shape: tuple[Any, ...], strides: tuple[Any, ...], meant: Layout) -> None:
        self.shape = shape
        self.strides = strides
        self.dtype = meant.dtype
        self.is_conj = meant.is_conj
        self.may_overlap = meant.may_overlap
        self.itemsize = meant.itemsize
        self.ndim = len(shape)


_FORMS: dict[tuple[Any, ...], Form] = {}
MAX_FORMS: Final = 50_000
_NO_FORM: Final = (None, ())
# Under which a layout's memo keeps its form.
_FORM: Final = "form without sizes"


def form_of(signature: Signature) -> tuple[Form | None, tuple[int, ...]]:
    """Form of a signature and the sizes that it leaves out, in order; no form where an attribute
    cannot be compared."""
    found = signature.form
    if found is None:
        found = signature.form = _form_of(signature)
    return found  # type: ignore[no-any-return]


def _form_of(signature: Signature) -> tuple[Form | None, tuple[int, ...]]:
    sizes: list[int] = []
    layouts: list[Any] = []
    first: dict[Layout, int] = {}
    for layout in signature.all_layouts:
        known = first.setdefault(layout, len(layouts))
        if known == len(layouts):
            form, own = _layout_form(layout)
            layouts.append(form)
            sizes += own
        else:
            layouts.append(known)
    attributes = []
    free = getattr(signature.operator, "sizes", ())
    try:
        for name, value in signature.attributes.items():
            if name in free:
                attributes.append((name, _free_form(value, sizes)))
            else:
                attributes.append((name, _frozen(value)))
        parameters = tuple(
            [
                (name, _frozen(meaning) if meaning[0] == "plain" else meaning)
                for name, meaning in signature.parameters.items()
            ]
        )
        parts = (
            signature.operator, parameters, tuple(attributes), tuple(layouts),
            len(signature.layouts), signature.targets, signature.number_format,
        )  # fmt: skip
        found = _FORMS.get(parts)
    except TypeError:
        return _NO_FORM
    if found is None:
        if len(_FORMS) >= MAX_FORMS:
            _FORMS.clear()
        found = _FORMS[parts] = Form(parts)
    return found, tuple(sizes)


def _is_packed(layout: Layout) -> bool:
    """Whether the strides are those that a fresh tensor of the shape is given."""
    if layout.ndim < 2:
        return layout.strides in ((), (1,))
    return layout.strides == contiguous_strides(layout.shape)


def _layout_form(layout: Layout) -> tuple[tuple[Any, ...], list[int]]:
    """Form of a layout and the sizes that it leaves out."""
    found: Any = layout.memo.get(_FORM)
    if found is None:
        found = layout.memo[_FORM] = _new_layout_form(layout)
    return found  # type: ignore[no-any-return]


def _new_layout_form(layout: Layout) -> tuple[tuple[Any, ...], list[int]]:
    sizes = [size for size in layout.shape if size >= 2]
    shape = tuple([size if size < 2 else -1 for size in layout.shape])
    if _is_packed(layout):
        return (layout.dtype, shape, None, layout.is_conj), sizes
    sizes += [stride for stride in layout.strides if stride not in (0, 1)]
    strides = tuple([s if s in (0, 1) else -1 for s in layout.strides])
    return (layout.dtype, shape, strides, layout.is_conj, layout.may_overlap), sizes


def _free_form(value: Any, sizes: list[int]) -> Any:
    if type(value) is int and value >= 2:
        sizes.append(value)
        return -1
    if type(value) is tuple:
        return tuple([_free_form(each, sizes) for each in value])
    return _frozen(value)


def _frozen(value: Any) -> Any:
    """A key that tells 1 from 1.0 and True, and 0.0 from -0.0."""
    kind = type(value)
    if value is None or kind is str or kind is dtype:
        return value
    if kind is int or kind is bool:
        return (kind, value)
    if kind is float or kind is complex:
        return (kind, repr(value))
    if kind is tuple or kind is list:
        return (kind, *[_frozen(each) for each in value])
    hash(value)
    return value


def sized(signature: Signature, tape: Tape) -> Signature:
    """The signature with Sizes, inputs of the tape in form_of's order, in place of its sizes."""
    made = Signature.__new__(Signature)
    layouts: list[Any] = []
    first: dict[Layout, int] = {}
    for layout in signature.all_layouts:
        known = first.setdefault(layout, len(layouts))
        layouts.append(_sized_layout(layout, tape) if known == len(layouts) else layouts[known])
    count = len(signature.layouts)
    free = getattr(signature.operator, "sizes", ())
    made.operator = signature.operator
    made.parameters = signature.parameters
    made.attributes = {
        name: _sized_attribute(value, tape) if name in free else value
        for name, value in signature.attributes.items()
    }
    made.targets = signature.targets
    made.number_format = signature.number_format
    made.layouts = tuple(layouts[:count])
    made.fresh_outputs = tuple(layouts[count:])
    made.all_layouts = tuple(layouts)
    made.out_layout = None
    made.out_bytes = 0
    made.form = _NO_FORM
    made.written = None
    made._lowered = None
    return made


def _sized_layout(layout: Layout, tape: Tape) -> SizedLayout:
    shape = [size if size < 2 else tape.input(size, 2) for size in layout.shape]
    if _is_packed(layout):
        return SizedLayout(tuple(shape), (), layout)
    strides = [s if s in (0, 1) else tape.input(s) for s in layout.strides]
    return SizedLayout(tuple(shape), tuple(strides), layout)


def complete(signature: Signature) -> None:
    """Strides of contiguous layouts, once all inputs of the tape are there."""
    for layout in signature.all_layouts:
        if len(layout.strides) != len(layout.shape):
            layout.strides = contiguous_strides(layout.shape)  # type: ignore[misc]


def _sized_attribute(value: Any, tape: Tape) -> Any:
    if type(value) is int and value >= 2:
        return tape.input(value, 2)
    if type(value) is tuple:
        return tuple([_sized_attribute(each, tape) for each in value])
    return value


# Segments ------------------------------------------------------------------------


def live_records(facts: SegmentFacts) -> list[int]:
    """Records that write what somebody may see, as far as signatures tell, last one first."""
    touched = facts.touched
    needed = set(facts.kept)
    live: list[int] = []
    keys = facts.keys
    for record in range(len(keys) - 1, -1, -1):
        key = keys[record]
        signature: Signature = key[0]
        end = 1 + len(signature.layouts)
        is_live = False
        for slot in key[end:]:
            if slot in needed:
                is_live = True
        for position in signature.targets:
            slot = key[1 + position]
            storage = slot if slot >= 0 else touched[-1 - slot] >> 1
            if storage < 0 or storage in needed:
                is_live = True
        if is_live:
            live.append(record)
            for slot in key[1:end]:
                storage = slot if slot >= 0 else touched[-1 - slot] >> 1
                if storage >= 0:
                    needed.add(storage)
    return live


def segment_form(
    facts: SegmentFacts, live: list[int]
) -> tuple[tuple[Any, ...] | None, list[int], dict[Signature, int]]:
    """Key of the segment's form, the sizes left out of it, and its signatures in order."""
    signatures: dict[Signature, int] = {}
    parts: list[Any] = []
    sizes: list[int] = []
    keys = facts.keys
    for record in reversed(live):
        key = keys[record]
        signature = key[0]
        number = signatures.get(signature)
        if number is None:
            form, own = signature.form or form_of(signature)
            if form is None:
                return None, sizes, signatures
            number = signatures[signature] = len(signatures)
            sizes += own
            parts.append(form)
        parts.append((record, number, key[1:]))
    formats = "".join([key[0].number_format for key in keys])
    # Where a record's numbers begin follows from how many each record has.
    counts = tuple([len(key[0].number_format) for key in keys]) if formats else len(keys)
    parts.append((formats, counts, facts.touched, len(facts.input_bytes), len(facts.fresh_bytes)))
    parts.append((features.vector_bits(), CONFIG.codegen_level))
    return tuple(parts), sizes, signatures
