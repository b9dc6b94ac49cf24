"""Transformer layers, encoder, decoder and the two together.

Keeps     torch's modules, their names and order, so that state dicts and initial values agree.
Touches   attention, linear, dropout, normalization.
Not here  the attention (attention.py)."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

from flambeau.nn import functional as F
from flambeau.nn import init
from flambeau.nn.modules.activation import GELU, ReLU
from flambeau.nn.modules.attention import MultiheadAttention
from flambeau.nn.modules.container import ModuleList
from flambeau.nn.modules.dropout import Dropout
from flambeau.nn.modules.linear import Linear
from flambeau.nn.modules.module import Module
from flambeau.nn.modules.normalization import LayerNorm


def _square_mask(size: int, device: Any = None, dtype: Any = None) -> Any:
    from flambeau.nn import names as torch

    return torch.triu(
        torch.full((size, size), float("-inf"), device=device, dtype=dtype), diagonal=1
    )


def _copies(module: Any, count: int) -> ModuleList:
    return ModuleList([copy.deepcopy(module) for _ in range(count)])


def _activation(given: Any) -> Callable[..., Any]:
    if given == "relu":
        return F.relu
    if given == "gelu":
        return F.gelu
    if isinstance(given, str):
        raise RuntimeError(f"activation should be relu/gelu, not {given}")
    return given


def _is_causal(mask: Any, given: bool | None, length: int | None) -> bool:
    """Whether a mask is the causal one."""
    if given is not None or mask is None:
        return given is True
    if length is not None and tuple(mask.shape) == (length, length):
        causal = _square_mask(length, dtype=mask.dtype)
        return bool((mask == causal).all())
    return False


def _length(src: Any, batch_first: bool) -> int | None:
    shape = src.shape
    if len(shape) == 2:
        return int(shape[0])
    return int(shape[1 if batch_first else 0])


class TransformerEncoderLayer(Module):
    """Self-attention, then a small network; both added to their input and normalised.

    >>> import flambeau as torch
    >>> torch.nn.TransformerEncoderLayer(8, 2)(torch.zeros(5, 3, 8)).shape
    torch.Size([5, 3, 8])
    """

    __constants__ = ["norm_first"]

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
        activation: Any = "relu", layer_norm_eps: float = 1e-5, batch_first: bool = False,
        norm_first: bool = False, bias: bool = True, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        named = {"device": device, "dtype": dtype}
        super().__init__()
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, **named
        )
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **named)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **named)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **named)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **named)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.activation = _activation(activation)

    def forward(
        self, src: Any, src_mask: Any = None, src_key_padding_mask: Any = None,
        is_causal: bool = False,
    ) -> Any:  # fmt: skip
        x = src
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), src_mask, src_key_padding_mask, is_causal)
            return x + self._ff_block(self.norm2(x))
        x = self.norm1(x + self._sa_block(x, src_mask, src_key_padding_mask, is_causal))
        return self.norm2(x + self._ff_block(x))

    def _sa_block(self, x: Any, mask: Any, padding_mask: Any, is_causal: bool) -> Any:
        attended, _ = self.self_attn(
            x, x, x, attn_mask=mask, key_padding_mask=padding_mask, need_weights=False,
            is_causal=is_causal,
        )  # fmt: skip
        return self.dropout1(attended)

    def _ff_block(self, x: Any) -> Any:
        return self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerDecoderLayer(Module):
    """Self-attention, attention to a memory, then a small network."""

    __constants__ = ["norm_first"]

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
        activation: Any = "relu", layer_norm_eps: float = 1e-5, batch_first: bool = False,
        norm_first: bool = False, bias: bool = True, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        named = {"device": device, "dtype": dtype}
        super().__init__()
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout=dropout, batch_first=batch_first, bias=bias, **named
        )
        self.multihead_attn = MultiheadAttention(
            d_model, nhead, dropout=dropout, batch_first=batch_first, bias=bias, **named
        )
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **named)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **named)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **named)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **named)
        self.norm3 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **named)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.dropout3 = Dropout(dropout)
        self.activation = _activation(activation)

    def forward(
        self, tgt: Any, memory: Any, tgt_mask: Any = None, memory_mask: Any = None,
        tgt_key_padding_mask: Any = None, memory_key_padding_mask: Any = None,
        tgt_is_causal: bool = False, memory_is_causal: bool = False,
    ) -> Any:  # fmt: skip
        own = (tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        other = (memory_mask, memory_key_padding_mask, memory_is_causal)
        x = tgt
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), *own)
            x = x + self._mha_block(self.norm2(x), memory, *other)
            return x + self._ff_block(self.norm3(x))
        x = self.norm1(x + self._sa_block(x, *own))
        x = self.norm2(x + self._mha_block(x, memory, *other))
        return self.norm3(x + self._ff_block(x))

    def _sa_block(self, x: Any, mask: Any, padding_mask: Any, is_causal: bool) -> Any:
        attended, _ = self.self_attn(
            x, x, x, attn_mask=mask, key_padding_mask=padding_mask, is_causal=is_causal,
            need_weights=False,
        )  # fmt: skip
        return self.dropout1(attended)

    def _mha_block(self, x: Any, memory: Any, mask: Any, padding_mask: Any, is_causal: bool) -> Any:
        attended, _ = self.multihead_attn(
            x, memory, memory, attn_mask=mask, key_padding_mask=padding_mask, is_causal=is_causal,
            need_weights=False,
        )  # fmt: skip
        return self.dropout2(attended)

    def _ff_block(self, x: Any) -> Any:
        return self.dropout3(self.linear2(self.dropout(self.activation(self.linear1(x)))))


def _warn_of_nested(layer: Any) -> None:
    """torch's words where its fast path for padded batches would not be taken."""
    attention: Any = getattr(layer, "self_attn", None)
    if not isinstance(layer, TransformerEncoderLayer):
        why = "encoder_layer was not TransformerEncoderLayer"
    elif layer.norm_first:
        why = "encoder_layer.norm_first was True"
    elif not attention.batch_first:
        why = (
            "encoder_layer.self_attn.batch_first was not True(use batch_first for better "
            "inference performance)"
        )
    elif attention.in_proj_bias is None:
        why = "encoder_layer.self_attn was passed bias=False"
    elif layer.activation not in (F.relu, F.gelu) and not isinstance(
        layer.activation, (ReLU, GELU)
    ):
        why = "encoder_layer.activation_relu_or_gelu was not True"
    elif attention.num_heads % 2:
        why = "encoder_layer.self_attn.num_heads is odd"
    else:
        return
    warnings.warn(
        f"enable_nested_tensor is True, but self.use_nested_tensor is False because {why}",
        stacklevel=4,
    )


class TransformerEncoder(Module):
    """Copies of an encoder layer, one after the other."""

    __constants__ = ["norm"]

    def __init__(
        self, encoder_layer: Any, num_layers: int, norm: Any = None,
        enable_nested_tensor: bool = True, mask_check: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.layers = _copies(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        if enable_nested_tensor:
            _warn_of_nested(encoder_layer)
        self.mask_check = mask_check

    def forward(
        self, src: Any, mask: Any = None, src_key_padding_mask: Any = None,
        is_causal: bool | None = None,
    ) -> Any:  # fmt: skip
        batch_first = self.layers[0].self_attn.batch_first
        causal = _is_causal(mask, is_causal, _length(src, batch_first))
        output = src
        for layer in self.layers:
            output = layer(
                output, src_mask=mask, is_causal=causal,
                src_key_padding_mask=src_key_padding_mask,
            )  # fmt: skip
        return output if self.norm is None else self.norm(output)


class TransformerDecoder(Module):
    """Copies of a decoder layer, one after the other."""

    __constants__ = ["norm"]

    def __init__(self, decoder_layer: Any, num_layers: int, norm: Any = None) -> None:
        super().__init__()
        self.layers = _copies(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self, tgt: Any, memory: Any, tgt_mask: Any = None, memory_mask: Any = None,
        tgt_key_padding_mask: Any = None, memory_key_padding_mask: Any = None,
        tgt_is_causal: bool | None = None, memory_is_causal: bool = False,
    ) -> Any:  # fmt: skip
        batch_first = self.layers[0].self_attn.batch_first
        causal = _is_causal(tgt_mask, tgt_is_causal, _length(tgt, batch_first))
        output = tgt
        for layer in self.layers:
            output = layer(
                output, memory, tgt_mask=tgt_mask, memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=causal,
                memory_is_causal=memory_is_causal,
            )  # fmt: skip
        return output if self.norm is None else self.norm(output)


class Transformer(Module):
    """Encoder and decoder (Vaswani et al., 2017)."""

    def __init__(
        self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6,
        num_decoder_layers: int = 6, dim_feedforward: int = 2048, dropout: float = 0.1,
        activation: Any = "relu", custom_encoder: Any = None, custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False,
        bias: bool = True, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        named = {"device": device, "dtype": dtype}
        super().__init__()
        shared = (
            d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first,
            norm_first, bias,
        )  # fmt: skip
        if custom_encoder is not None:
            self.encoder = custom_encoder
        else:
            encoder_layer = TransformerEncoderLayer(*shared, **named)
            norm = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **named)
            self.encoder = TransformerEncoder(encoder_layer, num_encoder_layers, norm)
        if custom_decoder is not None:
            self.decoder = custom_decoder
        else:
            decoder_layer = TransformerDecoderLayer(*shared, **named)
            norm = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **named)
            self.decoder = TransformerDecoder(decoder_layer, num_decoder_layers, norm)
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def _reset_parameters(self) -> None:
        for parameter in self.parameters():
            if parameter.dim() > 1:
                init.xavier_uniform_(parameter)

    def forward(
        self, src: Any, tgt: Any, src_mask: Any = None, tgt_mask: Any = None,
        memory_mask: Any = None, src_key_padding_mask: Any = None,
        tgt_key_padding_mask: Any = None, memory_key_padding_mask: Any = None,
        src_is_causal: bool | None = None, tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Any:  # fmt: skip
        batch_dim = 0 if self.batch_first else 1
        if src.dim() == 3 and src.shape[batch_dim] != tgt.shape[batch_dim]:
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(
            src, mask=src_mask, src_key_padding_mask=src_key_padding_mask,
            is_causal=src_is_causal,
        )  # fmt: skip
        return self.decoder(
            tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )  # fmt: skip

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Any:
        """-inf above the diagonal, 0 elsewhere."""
        return _square_mask(sz, device, dtype)
