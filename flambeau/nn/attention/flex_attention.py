"""torch.nn.attention.flex_attention: attention whose scores and masks functions say.

Keeps     a function of (batch, head, query, key) is called once, with indices that broadcast to all
          places; rows in which everything is masked give zeros. Floats of 16 bits are scored and
          weighed in float32.
Touches   tensor.
Not here  scaled_dot_product_attention (nn.functional), which keeps its scores in the cache."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from flambeau.base.dtypes import bool_, float32, float64, int32
from flambeau.base.missing import module_getattr
from flambeau.tensor import Tensor
from flambeau.tensor import functions as t
from flambeau.tensor.public.fills import ones, zeros
from flambeau.tensor.public.ranges import arange

__all__ = [
    "AuxOutput", "AuxRequest", "BlockMask", "FlexKernelOptions", "and_masks", "create_block_mask",
    "create_mask", "flex_attention", "noop_mask", "or_masks",
]  # fmt: skip

MaskMod = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
FlexKernelOptions = dict[str, Any]
_DEFAULT_SPARSE_BLOCK_SIZE: Final = 128


class AuxRequest(NamedTuple):
    """Which results are wanted besides."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """Results besides: log of the sum of exponentials, and the largest score, of each row."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """Everything is seen."""
    return ones((), dtype=bool_)


def and_masks(*mask_mods: MaskMod) -> MaskMod:
    """What all masks let be seen."""
    return _joined(mask_mods, t.logical_and, True)


def or_masks(*mask_mods: MaskMod) -> MaskMod:
    """What one of the masks lets be seen."""
    return _joined(mask_mods, t.logical_or, False)


def _joined(mask_mods: tuple[MaskMod, ...], join: Any, empty: bool) -> MaskMod:
    if not all(callable(each) for each in mask_mods):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mask_mods}")

    def joined(b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        found = ones((), dtype=bool_) if empty else zeros((), dtype=bool_)
        for each in mask_mods:
            found = join(found, each(b, h, q, k))
        return found

    return joined


def _places(sizes: tuple[int, ...], device: Any) -> list[Tensor]:
    """Indices of batch, head, query and key that broadcast to all places."""
    return [
        arange(size, dtype=int32, device=device).view((1,) * dim + (size,) + (1,) * (3 - dim))
        for dim, size in enumerate(sizes)
    ]


def create_mask(
    mod_fn: Callable[..., Tensor], B: int | None, H: int | None, Q_LEN: int, KV_LEN: int,
    device: Any = None,
) -> Tensor:  # fmt: skip
    """The mask that a function means, of shape (B, H, Q_LEN, KV_LEN).

    >>> create_mask(lambda b, h, q, k: q >= k, None, None, 2, 2).tolist()
    [[[[True, False], [True, True]]]]
    """
    sizes = (B or 1, H or 1, Q_LEN, KV_LEN)
    made = mod_fn(*_places(sizes, device))
    return made.expand(sizes).contiguous()


class BlockMask:
    """A mask, and which blocks of queries and keys have something to be seen.

    kv_num_blocks, kv_indices             blocks of keys that a block of queries sees in part
    full_kv_num_blocks, full_kv_indices   those that it sees wholly
    """

    def __init__(
        self, seq_lengths: tuple[int, int], kv_num_blocks: Tensor, kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None, full_kv_indices: Tensor | None,
        BLOCK_SIZE: tuple[int, int] = (_DEFAULT_SPARSE_BLOCK_SIZE, _DEFAULT_SPARSE_BLOCK_SIZE),
        mask_mod: MaskMod = noop_mask,
    ) -> None:  # fmt: skip
        self.seq_lengths = seq_lengths
        self.kv_num_blocks = kv_num_blocks
        self.kv_indices = kv_indices
        self.full_kv_num_blocks = full_kv_num_blocks
        self.full_kv_indices = full_kv_indices
        self.BLOCK_SIZE = BLOCK_SIZE
        self.mask_mod = mask_mod

    @classmethod
    def from_kv_blocks(
        cls, kv_num_blocks: Tensor, kv_indices: Tensor, full_kv_num_blocks: Tensor | None = None,
        full_kv_indices: Tensor | None = None, BLOCK_SIZE: Any = _DEFAULT_SPARSE_BLOCK_SIZE,
        mask_mod: MaskMod | None = None, seq_lengths: tuple[int, int] | None = None, **named: Any,
    ) -> BlockMask:  # fmt: skip
        """A mask by the blocks that are seen."""
        sizes = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
        if seq_lengths is None:
            blocks = kv_indices.shape
            seq_lengths = (blocks[-2] * sizes[0], blocks[-1] * sizes[1])
        return cls(
            seq_lengths, kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices, sizes,
            mask_mod or noop_mask,
        )  # fmt: skip

    @property
    def shape(self) -> tuple[int, ...]:
        """(batch, heads, queries, keys)."""
        return (*self.kv_indices.shape[:2], *self.seq_lengths)

    def to_dense(self) -> Tensor:
        """Ones where a block has something to be seen, of shape (batch, heads, blocks, blocks)."""
        found = _dense(self.kv_num_blocks, self.kv_indices)
        if self.full_kv_num_blocks is not None and self.full_kv_indices is not None:
            found = found | _dense(self.full_kv_num_blocks, self.full_kv_indices)
        return found.to(int32)

    def sparsity(self) -> float:
        """Part of the places, in percent, that lie in blocks without anything to be seen."""
        seen = int(self.to_dense().sum()) * self.BLOCK_SIZE[0] * self.BLOCK_SIZE[1]
        return 100 * (1 - seen / math.prod(self.shape))

    def to(self, device: Any) -> BlockMask:
        """The mask on a device."""
        return self

    def __repr__(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%)"


def _dense(counts: Tensor, indices: Tensor) -> Tensor:
    blocks = indices.shape[-1]
    listed = arange(blocks) < counts.unsqueeze(-1)
    found = zeros(indices.shape, dtype=bool_)
    return found.scatter(-1, indices.long(), listed)


def create_block_mask(
    mask_mod: MaskMod, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None,
    BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE, _compile: bool = False,
    separate_full_blocks: bool = True, **named: Any,
) -> BlockMask:  # fmt: skip
    """The mask that a function means, by blocks.

    B, H   batch and heads, None where the mask does not depend on them
    """
    sizes = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
    counts = [-(-length // size) for length, size in zip((Q_LEN, KV_LEN), sizes, strict=True)]
    padded = zeros((*mask.shape[:2], counts[0] * sizes[0], counts[1] * sizes[1]), dtype=bool_)
    padded[:, :, :Q_LEN, :KV_LEN] = mask
    blocks = padded.view(*mask.shape[:2], counts[0], sizes[0], counts[1], sizes[1])
    seen = blocks.sum((3, 5))
    whole = seen == sizes[0] * sizes[1] if separate_full_blocks else seen < 0
    partly = _listed((seen > 0) & ~whole)
    counts_of, listed = _listed(whole) if separate_full_blocks else (None, None)
    return BlockMask((Q_LEN, KV_LEN), *partly, counts_of, listed, sizes, mask_mod)


def _listed(blocks: Tensor) -> tuple[Tensor, Tensor]:
    """How many blocks are marked in each row, and which: those first."""
    order = blocks.to(int32).argsort(dim=-1, descending=True, stable=True)
    return blocks.sum(-1).to(int32), order.to(int32)


def flex_attention(
    query: Tensor, key: Tensor, value: Tensor, score_mod: Callable[..., Tensor] | None = None,
    block_mask: BlockMask | None = None, scale: float | None = None, enable_gqa: bool = False,
    return_lse: bool = False, kernel_options: Any = None, *, return_aux: AuxRequest | None = None,
) -> Any:  # fmt: skip
    """Attention of shape (batch, heads, queries, features), with a function of the scores.

    score_mod    score_mod(score, batch, head, query, key), the scores that are weighed
    block_mask   what is seen, of create_block_mask; None: everything
    scale        factor of the scores; None: 1 / sqrt(features)
    enable_gqa   key and value have fewer heads, each for several of the query's
    return_lse   (result, log of the sum of exponentials) is returned
    return_aux   (result, AuxOutput) is returned
    Raises       ValueError: dims that do not fit

    >>> import flambeau as torch
    >>> x = torch.randn(1, 2, 3, 4)
    >>> causal = create_block_mask(lambda b, h, q, k: q >= k, None, None, 3, 3)
    >>> want = torch.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True)
    >>> torch.allclose(flex_attention(x, x, x, block_mask=causal), want, atol=1e-6)
    True
    """
    _check(query, key, value, enable_gqa)
    if key.size(1) != query.size(1):
        key = key.repeat_interleave(query.size(1) // key.size(1), 1)
        value = value.repeat_interleave(query.size(1) // value.size(1), 1)
    working = float64 if query.dtype is float64 else float32
    factor = 1 / math.sqrt(query.size(-1)) if scale is None else scale
    scores = (query @ key.transpose(-2, -1)).to(working) * factor
    places = _places(tuple(scores.shape), query.device)
    if score_mod is not None:
        scores = score_mod(scores, *places).to(working)
    if block_mask is not None:
        seen = block_mask.mask_mod(*places)
        scores = scores.masked_fill(~seen, -math.inf)
    lse = scores.logsumexp(-1)
    weights = (scores - lse.masked_fill(lse == -math.inf, 0.0).unsqueeze(-1)).exp()
    result = weights.to(query.dtype) @ value
    if return_aux is not None:
        largest = scores.amax(-1) if return_aux.max_scores else None
        return result, AuxOutput(lse if return_aux.lse else None, largest)
    return (result, lse) if return_lse else result


def _check(query: Tensor, key: Tensor, value: Tensor, enable_gqa: bool) -> None:
    if query.dim() != 4 or key.dim() != 4 or value.dim() != 4:
        raise NotImplementedError("NYI: query, key, and value must be 4D tensors")
    if query.dtype is not key.dtype or query.dtype is not value.dtype:
        raise ValueError(
            "Expected query, key, and value to have the same dtype, but got query.dtype: "
            f"{query.dtype}, key.dtype: {key.dtype}, and value.dtype: {value.dtype} instead."
        )
    if query.size(1) != key.size(1) and not enable_gqa:
        raise ValueError(
            "Expect query and key/value to have the same number of heads but got "
            f"Hq={query.size(1)} and Hkv={key.size(1)}. Try setting enable_gqa=True for GQA."
        )
    if query.size(-1) != key.size(-1):
        raise ValueError(
            "Expect query and key/value to have the same embedding dimension but got "
            f"E={query.size(-1)} and E={key.size(-1)}."
        )


__getattr__ = module_getattr(__name__)
