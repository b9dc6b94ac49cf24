"""Recurrent layers: RNN, LSTM, GRU.

Keeps     torch's parameters, their order and initial values; inputs of all times go through one
          product a layer, what depends on the time before is recorded step by step.
Touches   functions/recurrence.py, rnn_cells.py.
Not here  the steps (functions/recurrence.py), layers of one step (rnn_cells.py)."""

from __future__ import annotations

import warnings
from typing import Any

from flambeau.base import promotion
from flambeau.base.errors import helped
from flambeau.gradients.autocast import is_autocast_enabled
from flambeau.nn.functions import recurrence
from flambeau.nn.functions.dropout import dropout
from flambeau.nn.modules.module import Module
from flambeau.nn.modules.rnn_cells import GRUCell, LSTMCell, RNNCell, RNNCellBase, draw_all
from flambeau.nn.parameter import undrawn
from flambeau.tensor import functions as t

# What is said of LSTM's two states when one has another size.
_OF_STATES = ("Expected hidden[0] size {}, got {}", "Expected hidden[1] size {}, got {}")
_KINDS = {2: "unbatched 2-D", 3: "batched 3-D"}
_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


class RNNBase(Module):
    """What RNN, LSTM and GRU share."""

    __constants__ = [
        "batch_first", "bias", "bidirectional", "dropout", "hidden_size", "input_size", "mode",
        "num_layers", "proj_size",
    ]  # fmt: skip

    def __init__(
        self, mode: str, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
        batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False,
        proj_size: int = 0, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        share = float(dropout)
        _check_settings(bias, batch_first, input_size, hidden_size, num_layers, dropout, proj_size)
        if mode not in _GATES:
            raise ValueError("Unrecognized RNN mode: " + mode)
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = share
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._flat_weights_names: list[str] = []
        self._all_weights: list[list[str]] = []
        gates = _GATES[mode] * hidden_size
        n_directions = 2 if bidirectional else 1
        state_size = proj_size if proj_size > 0 else hidden_size
        for layer in range(num_layers):
            width = input_size if layer == 0 else state_size * n_directions
            for direction in range(n_directions):
                tail = f"_l{layer}" + ("_reverse" if direction else "")
                shapes: dict[str, tuple[int, ...]] = {
                    "weight_ih": (gates, width), "weight_hh": (gates, state_size),
                }  # fmt: skip
                if bias:
                    shapes["bias_ih"] = shapes["bias_hh"] = (gates,)
                if proj_size > 0:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                names = [name + tail for name in shapes]
                for name, shape in zip(names, shapes.values(), strict=True):
                    self.register_parameter(name, undrawn(shape, device, dtype))
                self._flat_weights_names.extend(names)
                self._all_weights.append(names)
        if dropout > 0 and num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero "
                f"dropout expects num_layers greater than 1, but got dropout={dropout} and "
                f"num_layers={num_layers}",
                stacklevel=3,
            )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw everything from U(-1/sqrt(hidden_size), 1/sqrt(hidden_size))."""
        draw_all(self)

    def flatten_parameters(self) -> None:
        """Nothing to do: weights need not lie side by side."""

    @property
    def all_weights(self) -> list[list[Any]]:
        """Parameters by layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    @property
    def _flat_weights(self) -> list[Any]:
        return [getattr(self, name) for name in self._flat_weights_names]

    def __getstate__(self) -> dict[str, Any]:
        """What torch's own layers have in files: the list of weights, too."""
        return {**self.__dict__, "_flat_weights": self._flat_weights}

    def __setstate__(self, own: dict[str, Any]) -> None:
        super().__setstate__({name: own[name] for name in own if name != "_flat_weights"})

    def extra_repr(self) -> str:
        usual = {"proj_size": 0, "num_layers": 1, "bias": True, "batch_first": False, "dropout": 0}
        usual["bidirectional"] = False
        shown = [f", {name}={getattr(self, name)}"
                 for name, value in usual.items() if getattr(self, name) != value]  # fmt: skip
        return f"{self.input_size}, {self.hidden_size}{''.join(shown)}"

    # Calling ------------------------------------------------------------------------

    def _state_width(self) -> int:
        return self.proj_size if self.proj_size > 0 else self.hidden_size

    def check_input(self, input: Any, batch_sizes: Any) -> None:
        """Refuse inputs of another dtype, number of dims or of features."""
        weight = self._flat_weights[0]
        if input.dtype is not weight.dtype and not is_autocast_enabled("cpu"):
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({weight.dtype}). "
                f"Convert input: input.to({weight.dtype}), or convert model: "
                f"model.to({input.dtype})"
            )
        n_dims = 3 if batch_sizes is None else 2
        if input.dim() != n_dims:
            raise RuntimeError(f"input must have {n_dims} dimensions, got {input.dim()}")
        if input.shape[-1] != self.input_size:
            raise RuntimeError(
                helped(
                    "input.size(-1) must be equal to input_size. Expected "
                    f"{self.input_size}, got {input.shape[-1]}",
                    expected=f"{self.input_size} features in its last dim",
                )
            )

    def _expected_size(self, input: Any, batch_sizes: Any, width: int) -> tuple[int, int, int]:
        batch = input.shape[0 if self.batch_first else 1] if batch_sizes is None else batch_sizes[0]
        return self.num_layers * (2 if self.bidirectional else 1), int(batch), width

    def get_expected_hidden_size(self, input: Any, batch_sizes: Any) -> tuple[int, int, int]:
        """The shape of the first state for an input."""
        return self._expected_size(input, batch_sizes, self._state_width())

    def check_hidden_size(
        self, hx: Any, expected_hidden_size: Any, msg: str = "Expected hidden size {}, got {}"
    ) -> None:
        """Refuse a state of another shape."""
        if tuple(hx.shape) != tuple(expected_hidden_size):
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.shape)))

    def check_forward_args(self, input: Any, hidden: Any, batch_sizes: Any) -> None:
        """Refuse inputs and states that do not fit."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx: Any, permutation: Any) -> Any:
        """A state with its batch in another order."""
        return hx if permutation is None else hx.index_select(1, permutation)

    def _batched(self, input: Any) -> tuple[Any, bool]:
        """(input as (time, batch, features), whether it had a batch)."""
        name = self._get_name()
        if input.dim() not in (2, 3):
            tensor = " tensor" if name == "RNN" else ""
            raise ValueError(
                f"{name}: Expected input to be 2D or 3D, got {input.dim()}D{tensor} instead"
            )
        has_batch = input.dim() == 3
        dim = 0 if self.batch_first else 1
        batch = input if has_batch else input.unsqueeze(dim)
        self.check_input(batch, None)
        steps = batch.transpose(0, 1) if self.batch_first else batch
        if not steps.shape[0]:
            raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
        return steps, has_batch

    def _start(self, given: Any, shape: tuple[int, ...], like: Any, message: str) -> Any:
        """The first state: (layers * directions, batch, width)."""
        if given is None:
            return like.new_zeros(shape)
        self.check_hidden_size(given, shape, message)
        if given.dtype is not like.dtype and not is_autocast_enabled("cpu"):
            state, input = (promotion.SCALAR_TYPE_NAMES[each.dtype.name] for each in (given, like))
            raise RuntimeError(
                f"mat1 and mat2 must have the same dtype, but got {state} and {input}"
            )
        return given

    def first_states(self, hx: Any, steps: Any, batch: int | None = None) -> tuple[Any, ...]:
        """The checked states that steps of a batch begin with."""
        count = self.num_layers * (2 if self.bidirectional else 1)
        shape = (count, steps.shape[1] if batch is None else batch, self._state_width())
        return (self._start(hx, shape, steps, "Expected hidden size {}, got {}"),)

    def _run(self, steps: Any, states: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
        """(outputs of the last layer, last states), time first."""
        n_directions = 2 if self.bidirectional else 1
        finals: list[list[Any]] = [[] for _ in states]
        current = steps
        for layer in range(self.num_layers):
            outputs = []
            for direction in range(n_directions):
                number = layer * n_directions + direction
                made, last = recurrence.RUNS[self.mode](
                    self.mode, current, [each[number] for each in states],
                    self.weights_at(number), is_reverse=direction == 1,
                )  # fmt: skip
                outputs.append(made)
                for held, each in zip(finals, last, strict=True):
                    held.append(each)
            current = outputs[0] if n_directions == 1 else t.cat(outputs, 2)
            current = self.between_layers(current, layer)
        return current, tuple(t.stack(held) for held in finals)

    def weights_at(self, number: int) -> dict[str, Any]:
        """Parameters of a layer and direction, without the ends of their names."""
        names = self._all_weights[number]
        return {name.split("_l")[0]: getattr(self, name) for name in names}

    def between_layers(self, output: Any, layer: int) -> Any:
        """What a layer gives to the next one: its output, with dropout in training."""
        if self.dropout > 0 and self.training and layer < self.num_layers - 1:
            return dropout(output, self.dropout)
        return output

    def _finished(self, output: Any, has_batch: bool) -> Any:
        if not has_batch:
            return output.squeeze(1)
        return output.transpose(0, 1) if self.batch_first else output

    def forward(self, input: Any, hx: Any = None) -> Any:
        from flambeau.nn.utils import rnn as packing

        if isinstance(input, packing.PackedSequence):
            return packing.run_packed(self, input, hx)
        steps, has_batch = self._batched(input)
        n_dims = 3 if has_batch else 2
        if hx is not None and hx.dim() != n_dims:
            raise RuntimeError(
                f"For {_KINDS[n_dims]} input, hx should also be {n_dims}-D but got {hx.dim()}-D "
                "tensor"
            )
        (start,) = self.first_states(hx if has_batch or hx is None else hx.unsqueeze(1), steps)
        output, (last,) = self._run(steps, (start,))
        return self._finished(output, has_batch), last if has_batch else last.squeeze(1)


def _two_states(hx: Any) -> tuple[Any, Any]:
    """What an LSTM begins with: (h_0, c_0). Raises what looking for the second raises."""
    try:
        return hx[0], hx[1]
    except IndexError as error:
        raise IndexError(
            helped(str(error), expected="hx as a tuple of two tensors, (h_0, c_0)")
        ) from None


def _check_settings(
    bias: Any, batch_first: Any, input_size: Any, hidden_size: Any, num_layers: int, dropout: Any,
    proj_size: int,
) -> None:  # fmt: skip
    if not isinstance(dropout, (int, float)) or not 0 <= dropout <= 1 or isinstance(dropout, bool):
        raise ValueError(
            "dropout should be a number in range [0, 1] representing the probability of an element "
            "being zeroed"
        )
    for name, given in (("bias", bias), ("batch_first", batch_first)):
        if not isinstance(given, bool):
            raise TypeError(f"{name} should be of type bool, got: {type(given).__name__}")
    for name, size in (("input_size", input_size), ("hidden_size", hidden_size)):
        if not isinstance(size, int):
            raise TypeError(f"{name} should be of type int, got: {type(size).__name__}")
        if size <= 0:
            raise ValueError(f"{name} must be greater than zero")
    if num_layers <= 0:
        raise ValueError("num_layers must be greater than zero")
    if proj_size < 0:
        raise ValueError("proj_size should be a positive integer or zero to disable projections")
    if proj_size >= hidden_size:
        raise ValueError("proj_size has to be smaller than hidden_size")


class RNN(RNNBase):
    """h = tanh(x W_ih^T + b_ih + h W_hh^T + b_hh), or with relu (Elman, 1990)."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        if len(args) > 3:
            nonlinearity = args[3]
            args = args[:3] + args[4:]
        else:
            nonlinearity = kwargs.pop("nonlinearity", "tanh")
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(
                f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'."
            )
        super().__init__(f"RNN_{nonlinearity.upper()}", *args, **kwargs)
        self.nonlinearity = nonlinearity


class LSTM(RNNBase):
    """Long short-term memory (Hochreiter and Schmidhuber, 1997).

    >>> import flambeau as torch
    >>> output, (hidden, cell) = torch.nn.LSTM(3, 4)(torch.zeros(5, 2, 3))
    >>> output.shape, hidden.shape
    (torch.Size([5, 2, 4]), torch.Size([1, 2, 4]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def get_expected_cell_size(self, input: Any, batch_sizes: Any) -> tuple[int, int, int]:
        """The shape of the first cell state for an input."""
        return self._expected_size(input, batch_sizes, self.hidden_size)

    def check_forward_args(self, input: Any, hidden: Any, batch_sizes: Any) -> None:
        """Refuse inputs and states that do not fit."""
        self.check_input(input, batch_sizes)
        hidden_size = self.get_expected_hidden_size(input, batch_sizes)
        self.check_hidden_size(hidden[0], hidden_size, _OF_STATES[0])
        cell_size = self.get_expected_cell_size(input, batch_sizes)
        self.check_hidden_size(hidden[1], cell_size, _OF_STATES[1])

    def permute_hidden(self, hx: Any, permutation: Any) -> Any:
        """Both states with their batch in another order."""
        if permutation is None:
            return hx
        return tuple(each.index_select(1, permutation) for each in hx)

    def first_states(self, hx: Any, steps: Any, batch: int | None = None) -> tuple[Any, ...]:
        """The checked states that steps of a batch begin with."""
        count = self.num_layers * (2 if self.bidirectional else 1)
        batch = steps.shape[1] if batch is None else batch
        first, second = (None, None) if hx is None else _two_states(hx)
        hidden = self._start(first, (count, batch, self._state_width()), steps, _OF_STATES[0])
        cell = self._start(second, (count, batch, self.hidden_size), steps, _OF_STATES[1])
        return hidden, cell

    def forward(self, input: Any, hx: Any = None) -> Any:
        from flambeau.nn.utils import rnn as packing

        if isinstance(input, packing.PackedSequence):
            return packing.run_packed(self, input, hx)
        steps, has_batch = self._batched(input)
        if hx is not None:
            n_dims = 3 if has_batch else 2
            hidden, cell = _two_states(hx)
            if hidden.dim() != n_dims or cell.dim() != n_dims:
                raise RuntimeError(
                    f"For {_KINDS[n_dims]} input, hx and cx should also be {n_dims}-D but got "
                    f"({hidden.dim()}-D, {cell.dim()}-D) tensors"
                )
            hx = hx if has_batch else [each.unsqueeze(1) for each in hx]
        output, last = self._run(steps, self.first_states(hx, steps))
        if not has_batch:
            last = tuple(each.squeeze(1) for each in last)
        return self._finished(output, has_batch), last


class GRU(RNNBase):
    """Gated recurrent units (Cho et al., 2014)."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        super().__init__("GRU", *args, **kwargs)


__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]
