"""The steps of an LSTM as one operator, and its gradient as another.

Keeps     what goes in has been through its weights already (one product for all steps); a step is
          one product and one kernel. The gradient of the weights is one product over all steps.
Touches   ops.define, base.
Not here  layers, directions, projections (nn/modules/rnn.py)."""

from __future__ import annotations

from typing import Any

from flambeau.base.layout import contiguous
from flambeau.ops.define import Inferred, Operator, OptionalTensor, Tensor, operator


def _sigmoid(k: Any, x: Any) -> Any:
    return k.sigmoid(x)


def order_of(steps: int, is_reverse: bool) -> list[int]:
    """Numbers of the steps in the order they are taken."""
    return list(range(steps - 1, -1, -1) if is_reverse else range(steps))


GATES = ("enter", "forget", "candidate", "leave")


@operator("lstm_steps", function=False, returns=("outputs", "cells", *GATES))
class LstmSteps(Operator):
    """(steps, batch, 4 hidden) through an LSTM: its outputs, its cells and each of its gates at
    every step (Hochreiter and Schmidhuber, 1997)."""

    out = False

    def infer(
        self, input: Tensor, hidden: Tensor, cell: Tensor, weight: Tensor, bias: OptionalTensor,
        is_reverse: bool = False,
    ) -> Inferred:  # fmt: skip
        steps, batch, width = input.shape
        made = contiguous((steps, batch, width // 4), input.dtype, input.device)
        return Inferred((made,) * 6, {"is_reverse": bool(is_reverse)})

    def lower(
        self, b: Any, input: Any, hidden: Any, cell: Any, weight: Any, bias: Any, is_reverse: bool
    ) -> None:
        element = input.dtype.compute
        steps, _, width = input.shape
        size = width // 4
        turned = b.transpose(b.convert(weight, element), 0, 1)
        packed = b.map(lambda k, x: x, turned)
        hidden, cell = b.convert(hidden, element), b.convert(cell, element)
        for step in order_of(steps, is_reverse):
            back = b.product(hidden, packed)
            into = b.select(input, 0, step)

            def gate(number: int, formula: Any, into: Any = into, back: Any = back) -> Any:
                start = number * size
                values = [b.narrow(into, 1, start, size), b.narrow(back, 1, start, size)]
                if bias is not None:
                    values.append(b.narrow(bias, 0, start, size))

                def whole(k: Any, x: Any, y: Any, z: Any = None) -> Any:
                    return formula(k, k.add(x, y if z is None else k.add(y, z)))

                return b.map(whole, *values, compute=element)

            enter, forget = gate(0, _sigmoid), gate(1, _sigmoid)
            candidate, leave = gate(2, lambda k, x: k.tanh(x)), gate(3, _sigmoid)
            cell = b.map(
                lambda k, f, c, i, g: k.add(k.mul(f, c), k.mul(i, g)),
                forget, cell, enter, candidate, compute=element,
            )  # fmt: skip
            hidden = b.map(lambda k, o, c: k.mul(o, k.tanh(c)), leave, cell, compute=element)
            made = (hidden, cell, enter, forget, candidate, leave)
            for number, each in enumerate(made):
                b.write(b.select(b.output(number), 0, step), each)

    def vjp(
        self, t: Any, grads: Any, hidden: Any, cell: Any, weight: Any, outputs: Any, cells: Any,
        enter: Any, forget: Any, candidate: Any, leave: Any, is_reverse: bool, needs: Any,
    ) -> Any:  # fmt: skip
        gates = (enter, forget, candidate, leave)
        before = t.cat([hidden.unsqueeze(0), outputs[:-1]])
        cells_before = t.cat([cell.unsqueeze(0), cells[:-1]])
        if is_reverse:
            before = t.cat([outputs[1:], hidden.unsqueeze(0)])
            cells_before = t.cat([cells[1:], cell.unsqueeze(0)])
        # Gates have cotangents only where gradients of gradients pass through them.
        if t.is_grad_enabled() or any(each is not None for each in grads[2:]):
            into, into_hidden, into_cell = _steps_backward(
                t, grads, cells, cells_before, gates, weight, is_reverse
            )
        else:
            into, into_hidden, into_cell = t.lstm_steps_backward(
                grads[0], grads[1], cells, cells_before, *gates, weight, is_reverse
            )
        flat = into.reshape(-1, into.shape[-1])
        rows = before.reshape(-1, before.shape[-1])
        return (
            into if needs[0] else None,
            into_hidden if needs[1] else None,
            into_cell if needs[2] else None,
            flat.t().mm(rows) if needs[3] else None,
            flat.sum(0) if needs[4] else None,
        )

    def samples(self, s: Any) -> list[Any]:
        return [
            s(s.real(3, 2, 8), s.real(2, 2), s.real(2, 2), s.real(8, 2), s.real(8), False),
            s(s.real(2, 1, 4), s.real(1, 1), s.real(1, 1), s.real(4, 1), None, True),
        ]


def _steps_backward(
    t: Any, grads: Any, cells: Any, cells_before: Any, gates: Any, weight: Any, is_reverse: bool
) -> Any:
    """lstm_steps_backward in recorded operators, with cotangents of the gates too."""
    into_outputs, into_cells, *into_gates = grads
    steps = cells.shape[0]
    made: list[Any] = [None] * steps
    back = later = None
    for step in reversed(order_of(steps, is_reverse)):
        enter, forget, candidate, leave = (each[step] for each in gates)
        squashed = cells[step].tanh()
        into_hidden = back if back is not None else t.zeros_like(squashed)
        if into_outputs is not None:
            into_hidden = into_hidden + into_outputs[step]
        into_cell = into_hidden * leave * (1 - squashed * squashed)
        if later is not None:
            into_cell = into_cell + later
        if into_cells is not None:
            into_cell = into_cell + into_cells[step]
        parts = [
            into_cell * candidate, into_cell * cells_before[step], into_cell * enter,
            into_hidden * squashed,
        ]  # fmt: skip
        parts = [
            part if given is None else part + given[step]
            for part, given in zip(parts, into_gates, strict=True)
        ]
        made[step] = t.cat(
            [
                parts[0] * enter * (1 - enter), parts[1] * forget * (1 - forget),
                parts[2] * (1 - candidate * candidate), parts[3] * leave * (1 - leave),
            ],
            -1,
        )  # fmt: skip
        back, later = made[step].mm(weight), into_cell * forget
    return t.stack(made), back, later


@operator("lstm_steps_backward", function=False, returns=("grad_input", "grad_hidden", "grad_cell"))
class LstmStepsBackward(Operator):
    """Cotangents of what entered the steps of an LSTM and of its first state."""

    out = False
    differentiable = False

    def infer(
        self, grad_outputs: OptionalTensor, grad_cells: OptionalTensor, cells: Tensor,
        cells_before: Tensor, enter: Tensor, forget: Tensor, candidate: Tensor, leave: Tensor,
        weight: Tensor, is_reverse: bool,
    ) -> Inferred:  # fmt: skip
        steps, batch, size = cells.shape
        state = contiguous((batch, size), cells.dtype, cells.device)
        made = contiguous((steps, batch, 4 * size), cells.dtype, cells.device)
        return Inferred((made, state, state), {"is_reverse": is_reverse})

    def lower(
        self, b: Any, grad_outputs: Any, grad_cells: Any, cells: Any, cells_before: Any,
        enter: Any, forget: Any, candidate: Any, leave: Any, weight: Any, is_reverse: bool,
    ) -> Any:  # fmt: skip
        gates = (enter, forget, candidate, leave)
        element = cells.dtype.compute
        steps, batch, size = cells.shape
        weight = b.convert(weight, element)
        back = later = None
        for step in reversed(order_of(steps, is_reverse)):
            gate = [b.select(each, 0, step) for each in gates]
            enter, forget, candidate, leave = gate
            into_hidden = total(b, element, (back, _at(b, grad_outputs, step)))
            if into_hidden is None:
                into_hidden = b.full((batch, size), 0, element)
            squashed = b.map(lambda k, c: k.tanh(c), b.select(cells, 0, step), compute=element)
            through = b.map(
                lambda k, h, o, c: k.mul(k.mul(h, o), k.sub(1, k.mul(c, c))),
                into_hidden, leave, squashed, compute=element,
            )  # fmt: skip
            into_cell = total(b, element, (through, later, _at(b, grad_cells, step)))
            pairs = [
                (into_cell, candidate), (into_cell, b.select(cells_before, 0, step)),
                (into_cell, enter), (into_hidden, squashed),
            ]  # fmt: skip
            made = b.select(b.output(0), 0, step)
            for number, (one, other) in enumerate(pairs):
                part = b.map(lambda k, x, y: k.mul(x, y), one, other, compute=element)
                slope = tanh_slope if number == 2 else sigmoid_slope
                part = b.map(slope, part, gate[number], compute=element)
                b.write(b.narrow(made, 1, number * size, size), part, 4 * step + number)
            back = b.product(b.convert(made, element), weight)
            later = b.map(lambda k, x, y: k.mul(x, y), into_cell, forget, compute=element)
        b.write(b.output(1), back)
        b.write(b.output(2), later)

    def samples(self, s: Any) -> list[Any]:
        return [
            s(s.real(3, 2, 2), None, *[s.real(3, 2, 2)] * 6, s.real(8, 2), False),
            s(s.real(2, 1, 1), s.real(2, 1, 1), *[s.real(2, 1, 1)] * 6, s.real(4, 1), True),
        ]


def sigmoid_slope(k: Any, grad: Any, y: Any) -> Any:
    """Cotangent through a sigmoid that gave y."""
    return k.mul(k.mul(grad, y), k.sub(1, y))


def tanh_slope(k: Any, grad: Any, y: Any) -> Any:
    """Cotangent through a tanh that gave y."""
    return k.mul(grad, k.sub(1, k.mul(y, y)))


def _at(b: Any, value: Any, step: int) -> Any:
    return None if value is None else b.select(value, 0, step)


def total(b: Any, element: Any, values: tuple[Any, ...]) -> Any:
    """The sum of those that are there, in order; None where none is."""
    total = None
    for each in values:
        if each is not None:
            total = each if total is None else b.map(
                lambda k, x, y: k.add(x, y), total, each, compute=element
            )  # fmt: skip
    return total
