"""Recurrent layers of one step: RNNCell, LSTMCell, GRUCell.

Keeps     torch's parameters, their order and initial values, and its sentences about sizes.
Touches   nn.init, functions/recurrence.py.
Not here  the steps (functions/recurrence.py), layers over all times (rnn.py)."""

from __future__ import annotations

import math
from typing import Any, Final

from flambeau.gradients.autocast import outside
from flambeau.nn import init
from flambeau.nn.functions import recurrence
from flambeau.nn.modules.module import Module
from flambeau.nn.parameter import undrawn
from flambeau.tensor import functions as t

_TORCH_PATH: Final = "flambeau.nn.modules.rnn"  # which files name


def draw_all(layer: Any) -> None:
    """Draw all parameters from U(-1/sqrt(hidden_size), 1/sqrt(hidden_size))."""
    bound = 1.0 / math.sqrt(layer.hidden_size) if layer.hidden_size > 0 else 0
    for weight in layer.parameters():
        init.uniform_(weight, -bound, bound)


class RNNCellBase(Module):
    """What the cells share."""

    __module__ = _TORCH_PATH
    __constants__ = ["bias", "hidden_size", "input_size"]

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        gates = num_chunks * hidden_size

        self.weight_ih = undrawn((gates, input_size), device, dtype)
        self.weight_hh = undrawn((gates, hidden_size), device, dtype)
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, undrawn(gates, device, dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw everything from U(-1/sqrt(hidden_size), 1/sqrt(hidden_size))."""
        draw_all(self)

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        nonlinearity = self.__dict__.get("nonlinearity", "tanh")
        return text + (f", nonlinearity={nonlinearity}" if nonlinearity != "tanh" else "")

    def _check_sizes(self, batch: Any, states: list[Any]) -> None:
        """Refuse features, batches and states of other sizes."""
        if batch.shape[1] != self.input_size:
            raise RuntimeError(
                f"input has inconsistent input_size: got {batch.shape[1]} expected "
                f"{self.input_size}"
            )
        for number, each in enumerate(states):
            if each is None:
                continue
            if each.shape[0] != batch.shape[0]:
                raise RuntimeError(
                    f"Input batch size {batch.shape[0]} doesn't match hidden{number} batch size "
                    f"{each.shape[0]}"
                )
            if each.shape[1] != self.hidden_size:
                raise RuntimeError(
                    f"hidden{number} has inconsistent hidden_size: got {each.shape[1]}, expected "
                    f"{self.hidden_size}"
                )

    def _stepped(self, mode: str, input: Any, states: tuple[Any, ...]) -> tuple[Any, ...]:
        if input.dim() not in (1, 2):
            raise ValueError(
                f"{self._get_name()}: Expected input to be 1D or 2D, got {input.dim()}D instead"
            )
        for number, each in enumerate(states):
            if each is not None and each.dim() not in (1, 2):
                what = f"hx[{number}]" if len(states) > 1 else "hidden"
                raise ValueError(
                    f"{self._get_name()}: Expected {what} to be 1D or 2D, got {each.dim()}D instead"
                )
        has_batch = input.dim() == 2
        batch = input if has_batch else input.unsqueeze(0)
        self._check_sizes(
            batch,
            [each if each is None or has_batch else each.unsqueeze(0) for each in states],
        )
        shape = (batch.shape[0], self.hidden_size)
        ready = []
        for each in states:
            if each is None:
                ready.append(batch.new_zeros(shape))
            else:
                ready.append(each if has_batch else each.unsqueeze(0))
        weights = {
            name: getattr(self, name) for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        }
        made = outside(_cell_step, (mode, batch, ready, weights))
        return made if has_batch else tuple(each.squeeze(0) for each in made)


def _cell_step(mode: str, batch: Any, ready: list[Any], weights: dict[str, Any]) -> Any:
    """New states of one step; torch's cells keep their dtype in autocast regions."""
    into = t.linear(batch, weights["weight_ih"], weights["bias_ih"])
    return recurrence.step(mode, into, ready, weights)


class RNNCell(RNNCellBase):
    """One step of RNN."""

    __module__ = _TORCH_PATH

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh",
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Any, hx: Any = None) -> Any:
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return self._stepped(f"RNN_{self.nonlinearity.upper()}", input, (hx,))[0]


class LSTMCell(RNNCellBase):
    """One step of LSTM."""

    __module__ = _TORCH_PATH

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Any, hx: Any = None) -> Any:
        return self._stepped("LSTM", input, (None, None) if hx is None else tuple(hx))


class GRUCell(RNNCellBase):
    """One step of GRU."""

    __module__ = _TORCH_PATH

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Any, hx: Any = None) -> Any:
        return self._stepped("GRU", input, (hx,))[0]
