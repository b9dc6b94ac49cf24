"""Signatures: an operator with the layouts and attributes of one call, without memory or values.

Keeps     one object per (operator, layouts, attributes), so that identity is equality in plan keys;
          lowered once.
Touches   base, lower. Operators are called through the methods of ops.define.Operator.
Not here  finding the signature of a call (tensor/binding.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from flambeau.base import dtypes
from flambeau.base.layout import Layout

if TYPE_CHECKING:
    from flambeau.engine.planning.lower import Lowered, Lowering
    from flambeau.engine.planning.values import Value

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
        from flambeau.engine.planning.lower import Lowered, Lowering

        builder = Lowering(self.layouts, self.fresh_outputs, self.targets)
        arguments = {
            name: self._argument(builder, parameter) for name, parameter in self.parameters.items()
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
                    builder.write(builder.operand(position, layout), value)
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

    def _argument(self, builder: Lowering, parameter: Parameter) -> Any:
        kind = parameter[0]
        if kind == "tensor":
            return self._seen(builder, parameter[1])
        if kind == "tensors":
            return tuple([self._seen(builder, position) for position in parameter[1]])
        if kind == "number":
            return builder.number(parameter[1], _NUMBER_DTYPES[parameter[2]])
        return parameter[1]

    def _seen(self, builder: Lowering, position: int) -> Value:
        """An operand as its view shows it."""
        layout = self.layouts[position]
        value = builder.operand(position, layout)
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
    """Complex conjugates; of real numbers themselves."""
    return builder.map(lambda k, x: k.conj(x), value) if value.dtype.is_complex else value


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
