"""AdaptiveLogSoftmaxWithLoss: a softmax over many classes, the rare ones reached in two steps.

Keeps     frequent classes stand in the head with one entry for each cluster of rare ones; a cluster
          is computed only for the rows whose target lies in it.
Touches   linear, container.
Not here  softmax and losses themselves (loss.py).
Source    Grave and others, Efficient softmax approximation for GPUs, 2017."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from flambeau.nn.modules.container import ModuleList, Sequential
from flambeau.nn.modules.linear import Linear
from flambeau.nn.modules.module import Module
from flambeau.tensor import functions as t


class _ASMoutput(NamedTuple):
    """Log probabilities of the targets, and their negative mean."""

    output: Any
    loss: Any


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log probabilities of targets among n_classes, ordered by how frequent they are.

    >>> import flambeau as torch
    >>> layer = torch.nn.AdaptiveLogSoftmaxWithLoss(16, 20, [5, 10])
    >>> layer(torch.zeros(3, 16), torch.tensor([0, 7, 19])).output.shape
    torch.Size([3])
    """

    def __init__(
        self, in_features: int, n_classes: int, cutoffs: Sequence[int], div_value: float = 4.0,
        head_bias: bool = False, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        given = list(cutoffs)
        if not given:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        if (
            given != sorted(set(given))
            or min(given) <= 0
            or max(given) > n_classes - 1
            or any(int(each) != each for each in given)
        ):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing "
                "order, where each value is between 1 and n_classes-1"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*given, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = given[0]
        self.n_clusters = len(given)
        self.head_size = self.shortlist_size + self.n_clusters
        made = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **made)
        self.tail = ModuleList()
        for place, (low, high) in enumerate(pairwise(self.cutoffs), 1):
            inner = int(in_features // div_value**place)
            first = Linear(in_features, inner, bias=False, **made)
            second = Linear(inner, high - low, bias=False, **made)
            self.tail.append(Sequential(first, second))

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        self.head.reset_parameters()
        for first, second in self.tail:
            first.reset_parameters()
            second.reset_parameters()

    def _check(self, rows: Any, target: Any) -> None:
        if target.dim() == 1:
            if rows.size(0) != target.size(0):
                raise RuntimeError(
                    "Input and target should have the same size in the batch dimension."
                )
            if rows.dim() != 2:
                raise RuntimeError(
                    "1D target tensor expects 2D input tensors, "
                    f"but found inputs with size {rows.size()}"
                )
        elif target.dim() == 0:
            if rows.dim() != 1:
                raise RuntimeError(
                    "0D target tensor expects 1D input tensors, "
                    f"but found inputs with size {rows.size()}"
                )
        else:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")

    def forward(self, input_: Any, target_: Any) -> _ASMoutput:
        self._check(input_, target_)
        if target_.dim() == 0:
            output, loss = self.forward(input_.unsqueeze(0), target_.unsqueeze(0))
            return _ASMoutput(output.squeeze(0), loss)
        lowest, highest = int(target_.min()), int(target_.max())
        if lowest < 0 or highest >= self.n_classes:
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                f"[{lowest}, {highest}] were found. "
            )
        output = input_.new_zeros(target_.size(0))
        entry = target_
        for place, (low, high) in enumerate(pairwise(self.cutoffs)):
            inside = (target_ >= low) & (target_ < high)
            rows = inside.nonzero().squeeze(1)
            if not rows.numel():
                continue
            entry = t.masked_fill(entry, inside, self.shortlist_size + place)
            cluster = t.log_softmax(self.tail[place](input_.index_select(0, rows)), 1)
            wanted = target_.index_select(0, rows) - low
            own = cluster.gather(1, wanted.unsqueeze(1)).squeeze(1)
            output = t.index_copy(output, 0, rows, own)
        head = t.log_softmax(self.head(input_), 1)
        output = output + head.gather(1, entry.unsqueeze(1)).squeeze(1)
        return _ASMoutput(output, (-output).mean())

    def _full(self, rows: Any, head: Any) -> Any:
        known = t.log_softmax(head, 1)
        parts = [known[:, : self.shortlist_size]]
        for place, cluster in enumerate(self.tail, self.shortlist_size):
            parts.append(t.log_softmax(cluster(rows), 1) + known[:, place].unsqueeze(1))
        return t.cat(parts, 1)

    def log_prob(self, input: Any) -> Any:
        """Log probabilities of all classes."""
        return self._full(input, self.head(input))

    def predict(self, input: Any) -> Any:
        """The likeliest class of each row; clusters are computed for rows that lead there."""
        head = self.head(input)
        found = t.argmax(head, 1)
        rows = (found >= self.shortlist_size).nonzero().squeeze(1)
        if not rows.numel():
            return found
        full = self._full(input.index_select(0, rows), head.index_select(0, rows))
        return t.index_copy(found, 0, rows, t.argmax(full, 1))
