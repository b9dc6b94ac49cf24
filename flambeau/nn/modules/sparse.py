"""Embedding layers.

Keeps     torch's initial values; the padding row is 0 and gets no gradient.
Touches   nn.init, nn.functional.
Not here  gathering rows (ops.indexing)."""

from __future__ import annotations

from typing import Any

from flambeau.autograd.grad_mode import no_grad
from flambeau.nn import functional as F
from flambeau.nn import init
from flambeau.nn.modules.module import Module
from flambeau.nn.parameter import Parameter, undrawn


def _padding(padding_idx: int | None, num_embeddings: int) -> int | None:
    """The padding row's number, counted from the start."""
    if padding_idx is None or padding_idx == 0:
        return padding_idx
    if not -num_embeddings <= padding_idx < num_embeddings:
        raise AssertionError("Padding_idx must be within num_embeddings")
    return padding_idx % num_embeddings


def _draw(layer: Any) -> None:
    init.normal_(layer.weight)
    if layer.padding_idx is not None:
        with no_grad():
            layer.weight[layer.padding_idx].fill_(0)


def _settings(table: Any) -> str:
    """What repr shows of a table's settings that are not the usual ones."""
    text = "" if table.max_norm is None else f", max_norm={table.max_norm}"
    if table.norm_type != 2:
        text += f", norm_type={table.norm_type}"
    if table.scale_grad_by_freq is not False:
        text += f", scale_grad_by_freq={table.scale_grad_by_freq}"
    return text


class Embedding(Module):
    """Rows of a trained table, looked up by number.

    >>> import flambeau as torch
    >>> torch.nn.Embedding(10, 3)(torch.tensor([[1, 2], [4, 5]])).shape
    torch.Size([2, 2, 3])
    """

    __constants__ = [
        "embedding_dim", "max_norm", "norm_type", "num_embeddings", "padding_idx",
        "scale_grad_by_freq", "sparse",
    ]  # fmt: skip

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None,
        max_norm: float | None = None, norm_type: float = 2.0, scale_grad_by_freq: bool = False,
        sparse: bool = False, _weight: Any = None, _freeze: bool = False, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = _padding(padding_idx, num_embeddings)
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse
        if _weight is None:
            self.weight = undrawn((num_embeddings, embedding_dim), device, dtype)
            self.weight.requires_grad = not _freeze
            self.reset_parameters()
        else:
            if list(_weight.shape) != [num_embeddings, embedding_dim]:
                raise AssertionError(
                    "Shape of weight does not match num_embeddings and embedding_dim"
                )
            self.weight = Parameter(_weight, requires_grad=not _freeze)

    def reset_parameters(self) -> None:
        """Draw the table from N(0, 1); the padding row is 0."""
        _draw(self)

    def forward(self, input: Any) -> Any:
        return F.embedding(
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type,
            self.scale_grad_by_freq, self.sparse,
        )  # fmt: skip

    def extra_repr(self) -> str:
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        text = f"{self.num_embeddings}, {self.embedding_dim}{padding}{_settings(self)}"
        return text + (", sparse=True" if self.sparse else "")

    @classmethod
    def from_pretrained(
        cls, embeddings: Any, freeze: bool = True, padding_idx: int | None = None,
        max_norm: float | None = None, norm_type: float = 2.0, scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Any:  # fmt: skip
        """An embedding over a given table, not trained unless freeze is False."""
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, columns = embeddings.shape
        return cls(
            rows, columns, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse,
            _weight=embeddings, _freeze=freeze,
        )  # fmt: skip


class EmbeddingBag(Module):
    """Sums, means or maxima of bags of rows."""

    def __init__(
        self, num_embeddings: int, embedding_dim: int, max_norm: float | None = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, mode: str = "mean",
        sparse: bool = False, _weight: Any = None, include_last_offset: bool = False,
        padding_idx: int | None = None, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.padding_idx = _padding(padding_idx, num_embeddings)
        if _weight is None:
            self.weight = undrawn((num_embeddings, embedding_dim), device, dtype)
            self.reset_parameters()
        else:
            self.weight = Parameter(_weight)
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset

    def reset_parameters(self) -> None:
        """Draw the table from N(0, 1); the padding row is 0."""
        _draw(self)

    def forward(self, input: Any, offsets: Any = None, per_sample_weights: Any = None) -> Any:
        return F.embedding_bag(
            input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq,
            self.mode, self.sparse, per_sample_weights, self.include_last_offset,
            self.padding_idx,
        )  # fmt: skip

    def extra_repr(self) -> str:
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        text = f"{self.num_embeddings}, {self.embedding_dim}{_settings(self)}"
        return f"{text}, mode={self.mode!r}{padding}"

    @classmethod
    def from_pretrained(
        cls, embeddings: Any, freeze: bool = True, max_norm: float | None = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, mode: str = "mean",
        sparse: bool = False, include_last_offset: bool = False, padding_idx: int | None = None,
    ) -> Any:  # fmt: skip
        """Bags over a given table, not trained unless freeze is False."""
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, columns = embeddings.shape
        made = cls(
            rows, columns, max_norm, norm_type, scale_grad_by_freq, mode, sparse, embeddings,
            include_last_offset, padding_idx,
        )  # fmt: skip
        made.weight.requires_grad = not freeze
        return made
