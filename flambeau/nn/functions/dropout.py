"""Dropout: the mask is drawn when it is called for, torch's words in torch's order.

Keeps     p = 0 and p = 1 draw nothing; the graph saves the mask as bool, never the scaled noise.
Touches   random.fills, tensor (memory of masks).
Not here  applying the mask (ops.rows.losses: dropout_mask)."""

from __future__ import annotations

import warnings
from typing import Any

from flambeau.base import dtypes, promotion
from flambeau.base.devices import CPU, META
from flambeau.base.layout import contiguous
from flambeau.base.layout import layout as layout_of
from flambeau.ops.define import not_implemented
from flambeau.random import fills, fills_sampled
from flambeau.random.generator import default_generator
from flambeau.tensor import creation
from flambeau.tensor import functions as t


def keep_mask(shape: tuple[int, ...], keep: float, device: Any = CPU) -> Any:
    """A bool tensor, each element True with probability `keep`; without memory none is drawn."""
    made = creation.empty_layout(contiguous(shape, dtypes.bool_, device))
    count = made._layout.n_elements
    if count and device is not META:
        fills.fill_bernoulli(default_generator, made._storage.block.address, count, keep)
    return made


def keep_mask_like(input: Any, keep: float) -> Any:
    """A bool tensor in the shape and memory order of another; drawn in memory order."""
    layout = input._layout
    if layout.is_contiguous or not layout.is_dense:
        return keep_mask(layout.shape, keep, layout.device)
    made = creation.empty_layout(
        layout_of(layout.shape, layout.strides, dtypes.bool_, layout.device)
    )
    if layout.device is not META:
        address = made._storage.block.address
        fills.fill_bernoulli(default_generator, address, layout.n_elements, keep)
    return made


def _check(p: float) -> None:
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def _check_drawn(input: Any) -> None:
    """Refuse dtypes that no mask is drawn for."""
    element = input._layout.dtype
    if element.is_complex:
        raise not_implemented("bernoulli_scalar_cpu_", element)
    if element.category < 2:
        raise RuntimeError(
            "result type Float can't be cast to the desired output type "
            f"{promotion.SCALAR_TYPE_NAMES[element.name]}"
        )


def _dropped(input: Any, mask_shape: tuple[int, ...], p: float, inplace: bool) -> Any:
    if p == 1.0:
        return input.mul_(0.0) if inplace else t.mul(input, 0.0)
    _check_drawn(input)
    if mask_shape == tuple(input._layout.shape):
        mask = keep_mask_like(input, 1.0 - p)
    else:
        mask = keep_mask(mask_shape, 1.0 - p, input.device).expand(input.shape)
    result = t.dropout_mask(input, mask, 1.0 - p)
    return input.copy_(result) if inplace else result


def dropout(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Zero elements with probability p, scale the others by 1 / (1 - p).

    >>> import flambeau as torch
    >>> torch.nn.functional.dropout(torch.ones(3), 0.5, training=False)
    tensor([1., 1., 1.])
    """
    _check(p)
    if not training or p == 0.0 or input._layout.n_elements == 0:
        return input
    return _dropped(input, input._layout.shape, p, inplace)


def _of_channels(input: Any, p: float, training: bool, inplace: bool) -> Any:
    if not training or p == 0.0 or input._layout.n_elements == 0:
        return input
    if input.dim() < 2 and p != 1.0:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    shape = tuple(input.shape[:2]) + (1,) * (input.dim() - 2)
    return _dropped(input, shape, p, inplace)


def _warn_of_dims(name: str, n_dims: int, n_spatial: int) -> None:
    warnings.warn(
        f"{name}: Received a {n_dims}-D input to {name}, which is deprecated and will result in an "
        "error in a future release. To retain the behavior and silence this warning, please use "
        f"dropout instead. Note that {name} exists to provide channel-wise dropout on inputs with "
        f"{n_spatial} spatial dimensions, a channel dimension, and an optional batch dimension "
        f"(i.e. {n_spatial + 1}D or {n_spatial + 2}D inputs).",
        stacklevel=3,
    )


def dropout1d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Dropout of whole channels of (N, C, L) or (C, L)."""
    _check(p)
    if input.dim() not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {input.dim()}D input. Note that "
            "dropout1d exists to provide channel-wise dropout on inputs with 1 spatial dimension, "
            "a channel dimension, and an optional batch dimension (i.e. 2D or 3D inputs)."
        )
    if input.dim() == 3:
        return _of_channels(input, p, training, inplace)
    result = _of_channels(input.unsqueeze(0), p, training, inplace).squeeze(0)
    return input if inplace else result


def dropout2d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Dropout of whole channels of (N, C, H, W)."""
    _check(p)
    if input.dim() == 3:
        warnings.warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout "
            "behavior is desired - input is interpreted as shape (N, C, L), where C is the channel "
            "dim. This behavior will change in a future release to interpret the input as one "
            "without a batch dimension, i.e. shape (C, H, W). To maintain the 1D channel-wise "
            "dropout behavior, please switch to using dropout1d instead.",
            stacklevel=2,
        )
    elif input.dim() != 4:
        _warn_of_dims("dropout2d", input.dim(), 2)
    return _of_channels(input, p, training, inplace)


def dropout3d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Dropout of whole channels of (N, C, D, H, W) or (C, D, H, W)."""
    _check(p)
    if input.dim() not in (4, 5):
        _warn_of_dims("dropout3d", input.dim(), 3)
    if input.dim() != 5:
        result = _of_channels(input.unsqueeze(0), p, training, inplace).squeeze(0)
        return input if inplace else result
    return _of_channels(input, p, training, inplace)


def _alpha_dropped(
    input: Any, shape: tuple[int, ...], p: float, training: bool, inplace: bool
) -> Any:
    _check(p)
    if not training or p == 0.0 or input._layout.n_elements == 0:
        return input
    if p == 1.0:
        return input.mul_(0.0) if inplace else t.mul(input, 0.0)
    _check_drawn(input)
    alpha = 1.7580993408473766
    mask = keep_mask(shape, 1.0 - p, input.device)
    a = 1.0 / ((alpha * alpha * p + 1.0) * (1.0 - p)) ** 0.5
    noise = mask.to(input.dtype)
    # as torch: b = (noise - 1) * alpha * a + alpha * a * p; noise * a
    b = (noise - 1) * (alpha * a) + alpha * a * p
    result = input * (noise * a) + b
    return input.copy_(result) if inplace else result


def alpha_dropout(input: Any, p: float = 0.5, training: bool = False, inplace: bool = False) -> Any:
    """Dropout to SELU's lower bound, mean and variance kept."""
    return _alpha_dropped(input, tuple(input.shape), p, training, inplace)


def feature_alpha_dropout(
    input: Any, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Any:
    """alpha_dropout of whole channels."""
    shape = tuple(input.shape[:2]) + (1,) * (input.dim() - 2)
    return _alpha_dropped(input, shape, p, training, inplace)


def rrelu_slopes(input: Any, lower: float, upper: float) -> Any:
    """1 above zero, else drawn from U(lower, upper)."""
    from flambeau.tensor import conversion

    given = input.detach().contiguous()
    made = creation.empty_layout(contiguous(given._layout.shape, given._layout.dtype))
    count = made._layout.n_elements
    if count:
        fills_sampled.fill_rrelu_noise(
            default_generator, made._storage.block.address, count, given._layout.dtype,
            conversion.address_of(given, "rrelu"), lower, upper,
        )  # fmt: skip
    return made
