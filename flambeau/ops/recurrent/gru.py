"""The steps of a GRU as one operator, and its gradient as another.

Keeps     as the steps of an LSTM: what goes in has been through its weights already; a step is one
          product and one kernel. The gradient of the weights is one product over all steps.
Touches   ops.define, ops.recurrent.lstm, base.
Not here  layers and directions (nn/modules/rnn.py)."""

from __future__ import annotations

from typing import Any

from flambeau.base.layout import contiguous
from flambeau.ops.define import Inferred, Operator, OptionalTensor, Tensor, operator
from flambeau.ops.recurrent.lstm import order_of, sigmoid_slope, tanh_slope, total

PARTS = ("reset", "update", "fresh", "inner")


@operator("gru_steps", function=False, returns=("outputs", *PARTS))
class GruSteps(Operator):
    """(steps, batch, 3 hidden) through a GRU: its outputs, its gates, its candidate and what the
    state before gives to the candidate, at every step (Cho et al., 2014)."""

    out = False

    def infer(
        self, input: Tensor, hidden: Tensor, weight: Tensor, bias: OptionalTensor,
        is_reverse: bool = False,
    ) -> Inferred:  # fmt: skip
        steps, batch, width = input.shape
        made = contiguous((steps, batch, width // 3), input.dtype, input.device)
        return Inferred((made,) * 5, {"is_reverse": bool(is_reverse)})

    def lower(
        self, b: Any, input: Any, hidden: Any, weight: Any, bias: Any, is_reverse: bool
    ) -> None:
        element = input.dtype.compute
        steps, _, width = input.shape
        size = width // 3
        packed = b.map(lambda k, x: x, b.transpose(b.convert(weight, element), 0, 1))
        hidden = b.convert(hidden, element)
        for step in order_of(steps, is_reverse):
            back = b.product(hidden, packed)
            into = b.select(input, 0, step)

            def part(value: Any, number: int) -> Any:
                return b.narrow(value, len(value.shape) - 1, number * size, size)

            def backward_part(number: int, back: Any = back) -> Any:
                mine = part(back, number)
                if bias is None:
                    return mine
                return b.map(lambda k, x, y: k.add(x, y), mine, part(bias, number), compute=element)

            reset, update = (
                b.map(
                    lambda k, x, y: k.sigmoid(k.add(x, y)),
                    part(into, number), backward_part(number), compute=element,
                )
                for number in (0, 1)
            )  # fmt: skip
            inner = backward_part(2)
            fresh = b.map(
                lambda k, x, r, y: k.tanh(k.add(x, k.mul(r, y))),
                part(into, 2), reset, inner, compute=element,
            )  # fmt: skip
            hidden = b.map(
                lambda k, h, n, z: k.add(k.mul(k.sub(h, n), z), n), hidden, fresh, update,
                compute=element,
            )  # fmt: skip
            for number, each in enumerate((hidden, reset, update, fresh, inner)):
                b.write(b.select(b.output(number), 0, step), each)

    def vjp(
        self, t: Any, grads: Any, hidden: Any, weight: Any, outputs: Any, reset: Any, update: Any,
        fresh: Any, inner: Any, is_reverse: bool, needs: Any,
    ) -> Any:  # fmt: skip
        parts = (reset, update, fresh, inner)
        before = t.cat([hidden.unsqueeze(0), outputs[:-1]])
        if is_reverse:
            before = t.cat([outputs[1:], hidden.unsqueeze(0)])
        # Gates have cotangents only where gradients of gradients pass through them.
        if t.is_grad_enabled() or any(each is not None for each in grads[1:]):
            into, into_back, into_hidden = _steps_backward(
                t, grads, before, parts, weight, is_reverse
            )
        else:
            into, into_back, into_hidden = t.gru_steps_backward(
                grads[0], before, *parts, weight, is_reverse
            )
        flat = into_back.reshape(-1, into_back.shape[-1])
        return (
            into if needs[0] else None,
            into_hidden if needs[1] else None,
            flat.t().mm(before.reshape(-1, before.shape[-1])) if needs[2] else None,
            flat.sum(0) if needs[3] else None,
        )

    def samples(self, s: Any) -> list[Any]:
        return [
            s(s.real(3, 2, 6), s.real(2, 2), s.real(6, 2), s.real(6), False),
            s(s.real(2, 1, 3), s.real(1, 1), s.real(3, 1), None, True),
        ]


def _steps_backward(
    t: Any, grads: Any, before: Any, parts: Any, weight: Any, is_reverse: bool
) -> Any:
    """gru_steps_backward in recorded operators, with cotangents of the gates too."""
    into_outputs, *into_parts = grads
    steps = before.shape[0]
    made: list[Any] = [None] * steps
    made_back: list[Any] = [None] * steps
    back = None
    for step in reversed(order_of(steps, is_reverse)):
        reset, update, fresh, inner = (each[step] for each in parts)
        extra = [None if each is None else each[step] for each in into_parts]

        def with_extra(value: Any, number: int, extra: Any = extra) -> Any:
            return value if extra[number] is None else value + extra[number]

        into_hidden = back if back is not None else t.zeros_like(before[step])
        if into_outputs is not None:
            into_hidden = into_hidden + into_outputs[step]
        into_fresh = with_extra(into_hidden * (1 - update), 2) * (1 - fresh * fresh)
        into_reset = with_extra(into_fresh * inner, 0) * reset * (1 - reset)
        into_update = with_extra(into_hidden * (before[step] - fresh), 1) * update * (1 - update)
        into_inner = with_extra(into_fresh * reset, 3)
        made[step] = t.cat([into_reset, into_update, into_fresh], -1)
        made_back[step] = t.cat([into_reset, into_update, into_inner], -1)
        back = into_hidden * update + made_back[step].mm(weight)
    return t.stack(made), t.stack(made_back), back


@operator("gru_steps_backward", function=False, returns=("grad_input", "grad_back", "grad_hidden"))
class GruStepsBackward(Operator):
    """Cotangents of what entered the steps of a GRU, of the products with its states, and of its
    first state."""

    out = False
    differentiable = False

    def infer(
        self, grad_outputs: OptionalTensor, before: Tensor, reset: Tensor, update: Tensor,
        fresh: Tensor, inner: Tensor, weight: Tensor, is_reverse: bool,
    ) -> Inferred:  # fmt: skip
        steps, batch, size = before.shape
        state = contiguous((batch, size), before.dtype, before.device)
        made = contiguous((steps, batch, 3 * size), before.dtype, before.device)
        return Inferred((made, made, state), {"is_reverse": is_reverse})

    def lower(
        self, b: Any, grad_outputs: Any, before: Any, reset: Any, update: Any, fresh: Any,
        inner: Any, weight: Any, is_reverse: bool,
    ) -> None:  # fmt: skip
        element = before.dtype.compute
        steps, batch, size = before.shape
        weight = b.convert(weight, element)
        parts = (before, reset, update, fresh, inner)
        back = None
        for step in reversed(order_of(steps, is_reverse)):
            state, r, z, n, y = (b.select(each, 0, step) for each in parts)
            given = None if grad_outputs is None else b.select(grad_outputs, 0, step)
            into_hidden = total(b, element, (back, given))
            if into_hidden is None:
                into_hidden = b.full((batch, size), 0, element)

            def made(formula: Any, *values: Any) -> Any:
                return b.map(formula, *values, compute=element)

            into_fresh = made(lambda k, g, u: k.mul(g, k.sub(1, u)), into_hidden, z)
            into_fresh = made(tanh_slope, into_fresh, n)
            into_update = made(lambda k, g, h, f: k.mul(g, k.sub(h, f)), into_hidden, state, n)
            into_reset = made(sigmoid_slope, made(lambda k, g, v: k.mul(g, v), into_fresh, y), r)
            into_update = made(sigmoid_slope, into_update, z)
            into_inner = made(lambda k, g, v: k.mul(g, v), into_fresh, r)
            rows = [b.select(b.output(number), 0, step) for number in (0, 1)]
            for row, last in zip(rows, (into_fresh, into_inner), strict=True):
                for number, each in enumerate((into_reset, into_update, last)):
                    b.write(b.narrow(row, 1, number * size, size), each, 3 * step + number)
            through = made(lambda k, g, u: k.mul(g, u), into_hidden, z)
            carried = b.product(b.convert(rows[1], element), weight)
            back = made(lambda k, one, other: k.add(one, other), through, carried)
        b.write(b.output(2), back)

    def samples(self, s: Any) -> list[Any]:
        return [
            s(s.real(3, 2, 2), *[s.real(3, 2, 2)] * 5, s.real(6, 2), False),
            s(None, *[s.real(2, 1, 1)] * 5, s.real(3, 1), True),
        ]
