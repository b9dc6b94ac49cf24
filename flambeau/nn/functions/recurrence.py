"""Recurrent steps: what one time makes of its input and of the time before.

Keeps     the inputs of all times go through one product; a step is one product and elementwise
          work, which the fuser makes one kernel of.
Touches   tensor.functions.
Not here  layers and directions (modules/rnn.py)."""

from __future__ import annotations

from typing import Any

from flambeau.gradients.autocast import outside
from flambeau.tensor import functions as t
from flambeau.tensor.arguments.taken_over import overridable

Weights = dict[str, Any]

# Steps of one operator: more would be planned for too long.
MAX_STEPS = 64


def step(mode: str, into: Any, states: list[Any], weights: Weights) -> tuple[Any, ...]:
    """New states from `into` (the input through its weights) and the states before."""
    hidden = states[0]
    back = t.linear(hidden, weights["weight_hh"], weights.get("bias_hh"))
    if mode == "LSTM":
        return _lstm(into + back, states[1], weights)
    if mode == "GRU":
        return (_gru(into, back, hidden),)
    total = into + back
    return (t.tanh(total) if mode == "RNN_TANH" else t.relu(total),)


def _lstm(gates: Any, cell: Any, weights: Weights) -> tuple[Any, Any]:
    enter, forget, candidate, leave = gates.chunk(4, -1)
    cell = t.sigmoid(forget) * cell + t.sigmoid(enter) * t.tanh(candidate)
    hidden = t.sigmoid(leave) * t.tanh(cell)
    if "weight_hr" in weights:
        hidden = t.linear(hidden, weights["weight_hr"])
    return hidden, cell


def _gru(into: Any, back: Any, hidden: Any) -> Any:
    into_reset, into_update, into_new = into.chunk(3, -1)
    back_reset, back_update, back_new = back.chunk(3, -1)
    reset = t.sigmoid(into_reset + back_reset)
    update = t.sigmoid(into_update + back_update)
    new = t.tanh(into_new + reset * back_new)
    return (hidden - new) * update + new


def run(
    mode: str, inputs: Any, states: list[Any], weights: Weights, is_reverse: bool = False
) -> tuple[Any, list[Any]]:
    """(outputs of all times, last states) of (time, batch, features)."""
    if mode == "GRU":  # torch's keeps its dtype in autocast regions
        made: tuple[Any, list[Any]] = outside(_run, (mode, inputs, states, weights, is_reverse))
        return made
    return _run(mode, inputs, states, weights, is_reverse)


def _run(
    mode: str, inputs: Any, states: list[Any], weights: Weights, is_reverse: bool
) -> tuple[Any, list[Any]]:
    into = t.linear(inputs, weights["weight_ih"], weights.get("bias_ih"))
    if is_one_operator(mode, into, weights):
        pieces = _in_pieces(mode, into, states, weights, is_reverse)
        last = 0 if is_reverse else -1
        made = _joined([piece[0] for piece in pieces], is_reverse)
        return made, [each[last] for each in pieces[-1]]
    parts = into.unbind(0)
    steps = []
    for part in reversed(parts) if is_reverse else parts:
        states = list(step(mode, part, states, weights))
        steps.append(states[0])
    if is_reverse:
        steps.reverse()
    return t.stack(steps), states


def is_one_operator(mode: str, into: Any, weights: Weights) -> bool:
    """Whether one operator takes many steps."""
    knows = (mode == "LSTM" and "weight_hr" not in weights) or mode == "GRU"
    return bool(knows and into.is_floating_point())


def states_of(mode: str, into: Any, states: list[Any], weights: Weights) -> list[Any]:
    """The states after each step, time first, by an operator of many steps at a time."""
    pieces = _in_pieces(mode, into, states, weights, is_reverse=False)
    return [_joined([piece[n] for piece in pieces], is_reverse=False) for n in range(len(states))]


def _pieces(into: Any, is_reverse: bool) -> list[Any]:
    """The steps that one operator takes at a time, in the order they are taken."""
    pieces = list(into.split(MAX_STEPS)) if into.shape[0] > MAX_STEPS else [into]
    return pieces[::-1] if is_reverse else pieces


def _joined(made: list[Any], is_reverse: bool) -> Any:
    """Outputs of the pieces as one."""
    if len(made) == 1:
        return made[0]
    return t.cat(made[::-1] if is_reverse else made)


def _in_pieces(
    mode: str, into: Any, states: list[Any], weights: Weights, is_reverse: bool
) -> list[list[Any]]:
    """The states after each step of each piece, in the order they are taken."""
    operator = t.lstm_steps if mode == "LSTM" else t.gru_steps
    rest = weights["weight_hh"], weights.get("bias_hh"), is_reverse
    made = []
    for piece in _pieces(into, is_reverse):
        made.append(list(operator(piece, *states, *rest)[: len(states)]))
        states = [each[0 if is_reverse else -1] for each in made[-1]]
    return made


# By mode, under torch's names, so that calls may be taken over.
RUNS = {
    mode: overridable(run, f"torch.{mode.lower()}")
    for mode in ("RNN_TANH", "RNN_RELU", "LSTM", "GRU")
}
