"""Signatures: an operator with the layouts and attributes of one call, without memory or values.

Keeps     one object per (operator, layouts, attributes), so that identity is equality in plan keys;
          lowered once. A target whose elements may share memory is read whole into memory of its
          own before the operator sees it, and written last, by one unit, in the elements' order:
          the operator's own writes, and what is forwarded from them, never meet.
Touches   base, lower. Operators are called through the methods of ops.define.Operator.
Not here  finding the signature of a call (tensor/binding.py)."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any, Final

from flambeau.base import dtypes
from flambeau.base.layout import Layout

if TYPE_CHECKING:
    from flambeau.engine.planning.lowering.lower import Lowered, Lowering
    from flambeau.engine.planning.lowering.values import Value

# How a parameter reaches Operator.lower: ("tensor", position), ("number", index, kind),
# ("tensors", (positions)), ("plain", value).
Parameter = tuple[Any, ...]
NUMBER_FORMATS: Final = {bool: "q", int: "q", float: "d"}
# A complex number is two in a row.
_NUMBER_DTYPES: Final = {
    bool: dtypes.int64, int: dtypes.int64, float: dtypes.float64, complex: dtypes.complex128,
}  # fmt: skip


class Signature:
    """What a record does; see the file.

    layouts         of the tensor operands, in order, sequences flattened
    fresh_outputs   layouts of outputs that get memory of their own
    targets         operand positions written in place, in the order of the operator's results
    number_format   struct letters of the run-time numbers
    out_bytes       of all fresh outputs
    """

    __slots__ = (
        "_lowered", "all_layouts", "attributes", "form", "fresh_outputs", "layouts",
        "number_format", "operator", "out_bytes", "out_layout", "parameters", "targets",
        "written",
    )  # fmt: skip

    def __init__(
        self,
        operator: Any,
        layouts: tuple[Layout, ...],
        parameters: dict[str, Parameter],
        attributes: dict[str, Any],
        fresh_outputs: tuple[Layout, ...],
        targets: tuple[int, ...],
        number_format: str,
    ) -> None:
        self.operator = operator
        self.layouts = layouts
        self.parameters = parameters
        self.attributes = attributes
        self.fresh_outputs = fresh_outputs
        self.targets = targets
        self.number_format = number_format
        self.all_layouts = layouts + fresh_outputs
        self.out_layout: Any = fresh_outputs[0] if fresh_outputs else None
        self.out_bytes = sum([layout.span_bytes for layout in fresh_outputs])
        self.form: Any = None  # relative.form_of keeps its answer here
        self.written: bytes | None = None  # plan_store keeps its answer here
        self._lowered: Lowered | None = None

    def lowered(self) -> Lowered:
        """Statements; made once."""
        if self._lowered is None:
            self._lowered = self._lower()
        return self._lowered

    def _lower(self) -> Lowered:
        # Lowering brings the code generator's vocabulary: recording does without.
        from flambeau.engine.planning.lowering.lower import Lowered, Lowering

        builder = Lowering(self.layouts, self.fresh_outputs, self.targets)
        before = {
            position: builder.copied(builder.operand(position, self.layouts[position]))
            for position in self.targets
            if self.layouts[position].may_overlap
        }
        arguments = {
            name: self._argument(builder, parameter, before)
            for name, parameter in self.parameters.items()
        }
        results = self.operator.lower(builder, **arguments, **self.attributes)
        flat = _flatten(results)
        if self.targets:
            for number, position in enumerate(self.targets):
                value = builder.results[number] if number in builder.results else flat[number]
                if value is not None and not self._is_target(value, position):
                    layout = self.layouts[position]
                    if layout.is_conj:
                        value = _conjugated(builder, value)
                    target = builder.operand(position, layout)
                    if position in before:
                        kept = before[position] if self.operator.writes_chosen else None
                        _write_in_order(builder, target, value, kept)
                    else:
                        builder.write(target, value)
        else:
            for number, value in enumerate(flat):
                if value is not None:
                    self._finish(builder, number, value)
        return Lowered(
            builder.statements, len(self.layouts), len(self.fresh_outputs), builder.temporaries
        )

    def _is_target(self, value: Any, position: int) -> bool:
        """Whether a result is the target itself, updated where it lies."""
        layout = self.layouts[position]
        return (
            getattr(value, "reference", -1) == position
            and value.strides == layout.strides
            and value.offset == 0
        )

    def _argument(self, builder: Lowering, parameter: Parameter, before: dict[int, Value]) -> Any:
        kind = parameter[0]
        if kind == "tensor":
            return self._seen(builder, parameter[1], before)
        if kind == "tensors":
            return tuple([self._seen(builder, position, before) for position in parameter[1]])
        if kind == "number":
            return builder.number(parameter[1], _NUMBER_DTYPES[parameter[2]])
        return parameter[1]

    def _seen(self, builder: Lowering, position: int, before: dict[int, Value]) -> Value:
        """An operand as its view shows it."""
        layout = self.layouts[position]
        value = before.get(position) or builder.operand(position, layout)
        return _conjugated(builder, value) if layout.is_conj else value

    def _finish(self, builder: Lowering, number: int, value: Value) -> None:
        """Make `value` the memory of output `number`: by name where it can be, else by a copy."""
        output = builder.output(number)
        first_temporary = len(self.layouts) + len(self.fresh_outputs)
        whole = (
            value.kind == "memory"
            and value.reference >= first_temporary
            and value.dtype is output.dtype
            and value.offset == 0
            and value.shape == output.shape
            and (value.strides == output.strides)
        )
        if whole and _rename(builder, value.reference, output.reference):
            return
        builder.write(output, value)


def _conjugated(builder: Lowering, value: Value) -> Value:
    """Complex conjugates; of real numbers, which are imaginary parts of such, the negated ones."""
    if value.dtype.is_complex:
        return builder.map(lambda k, x: k.conj(x), value)
    return builder.map(lambda k, x: k.neg(x), value)


# A place that no memory has.
_NOWHERE: Final = 1 << 62


def _write_in_order(builder: Lowering, target: Value, value: Any, before: Value | None) -> None:
    """Store into memory that elements share, one after the other in row-major order: the last one
    wins, whatever the threads. Given what was there before, elements equal to it bit by bit are not
    stored, so that they do not undo what was written through others."""
    after = builder.temporary(target.shape, target.dtype)
    builder.write(after, value)
    dims = [dim for dim, size in enumerate(target.shape) if size != 1]
    places = [builder.iota(target.shape, dim) for dim in dims]
    steps = [builder.size_number(target.strides[dim], dtypes.int64) for dim in dims]
    pairs: list[Value] = []
    for each in (before, after) if before is not None else ():
        pairs += builder.parts(each) if each.dtype.is_complex else (each,)

    def formula(k: Any, *operands: Any) -> Any:
        where: Any = k.constant(0, dtypes.int64)
        for place, step in zip(operands[: len(dims)], operands[len(dims) :], strict=False):
            where = k.add(where, k.mul(place, step))
        bits = [_bits(k, each) for each in operands[2 * len(dims) :]]
        if not bits:
            return where
        half = len(bits) // 2
        changed = [k.ne(old, new) for old, new in zip(bits[:half], bits[half:], strict=True)]
        return k.select(k.or_(changed[0], changed[-1]), where, _NOWHERE)

    where = builder.map(formula, *places, *steps, *pairs, dtype=dtypes.int64)
    count, span = prod(target.shape), 1
    for dim in dims:
        span = span + (target.shape[dim] - 1) * target.strides[dim]
    flat = [builder.reshape(each, (count,)) for each in (where, after)]
    memory = target.with_view((span,), (1,))
    builder.kernel("scatter.put_rows", flat, (memory,), skipped=_NOWHERE)


def _bits(k: Any, value: Any) -> Any:
    """A floating-point value as an integer, the same for every NaN, whose bits nothing promises;
    an integer as it is."""
    element = k.dtype_of(value)
    if not element.is_floating_point:
        return value
    bits = k.bitcast(value, dtypes.int64 if element.itemsize == 8 else dtypes.int32)
    return k.select(k.isnan(value), -1, bits)


def _flatten(results: Any) -> list[Any]:
    if results is None:
        return []
    if isinstance(results, (tuple, list)):
        return [v for each in results for v in ([None] if each is None else _flatten(each))]
    return [results]


def _rename(builder: Lowering, old: int, new: int) -> bool:
    """Let a temporary be the output itself. False where its statement computes another dtype."""
    element = builder.outputs[new - builder.n_operands].dtype
    from flambeau.engine.statement import Loop

    made: list[Any] = []
    for statement in builder.statements:
        if isinstance(statement, Loop):
            write = statement.write
            written = element.to_real() if write.part else element
            if write.reference == old and write.dtype is not written:
                return False
            made.append(
                Loop(
                    statement.domain,
                    tuple(p.at(new) if p.reference == old else p for p in statement.reads),
                    statement.numbers,
                    statement.expression,
                    write.at(new) if write.reference == old else write,
                    statement.reduction, statement.n_outer, statement.n_reduced,
                    statement.is_columns,
                )
            )  # fmt: skip
            continue
        made.append(
            type(statement)(
                statement.maker,
                tuple(m.at(new) if m.reference == old else m for m in statement.reads),
                tuple(m.at(new) if m.reference == old else m for m in statement.writes),
                statement.attributes,
            )
        )
    builder.statements[:] = made
    return True


def number_formats(kinds: Sequence[type]) -> str:
    """struct letters of run-time numbers of these Python types."""
    return "".join(NUMBER_FORMATS[kind] for kind in kinds)
