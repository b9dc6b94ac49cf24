"""torch.nn.functional: where each function lives.

Keeps     functions whose signature is an operator's are that operator's; those torch writes
          otherwise are in nn.functions.
Touches   nn.functions and the operators, lazily.
Not here  any logic."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from flambeau.base.missing import full_when_listed, missing_name
from flambeau.tensor.overriding.serving import served

FILES: dict[str, tuple[str, ...]] = {
    "activations": (
        "celu", "celu_", "elu", "elu_", "gumbel_softmax", "hardsigmoid", "hardswish", "hardtanh",
        "hardtanh_", "leaky_relu", "leaky_relu_", "log_softmax", "mish", "prelu", "relu", "relu6",
        "relu_", "rrelu", "rrelu_", "selu", "selu_", "silu", "softmax", "softmin",
        "softshrink", "threshold", "threshold_",
    ),
    "losses": (
        "binary_cross_entropy", "binary_cross_entropy_with_logits", "cross_entropy", "ctc_loss",
        "gaussian_nll_loss", "huber_loss", "kl_div", "l1_loss", "mse_loss", "nll_loss",
        "poisson_nll_loss", "smooth_l1_loss",
    ),
    "distances": (
        "bilinear", "cosine_embedding_loss", "cosine_similarity", "hinge_embedding_loss",
        "margin_ranking_loss", "multi_margin_loss", "multilabel_margin_loss",
        "multilabel_soft_margin_loss", "normalize", "pairwise_distance", "pdist",
        "soft_margin_loss", "triplet_margin_loss", "triplet_margin_with_distance_loss",
    ),
    "normalization": (
        "batch_norm", "group_norm", "instance_norm", "layer_norm", "local_response_norm",
    ),
    "lookup": ("embedding", "embedding_bag", "one_hot"),
    "dropout": (
        "alpha_dropout", "dropout", "dropout1d", "dropout2d", "dropout3d",
        "feature_alpha_dropout",
    ),
    "padding": ("pad",),
    "attention": ("multi_head_attention_forward", "scaled_dot_product_attention"),
    "images.sampling": ("affine_grid", "grid_sample"),
    "images.resizing": ("interpolate", "upsample", "upsample_bilinear", "upsample_nearest"),
    "images.shuffling": ("channel_shuffle", "pixel_shuffle", "pixel_unshuffle"),
    "convolution": (
        "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
        "fold", "unfold",
    ),
    "pooling": (
        "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d",
        "adaptive_max_pool2d", "adaptive_max_pool3d", "avg_pool1d", "lp_pool1d", "lp_pool2d",
        "lp_pool3d", "max_pool1d", "max_pool1d_with_indices", "max_pool2d",
        "max_pool2d_with_indices", "max_pool3d", "max_pool3d_with_indices", "max_unpool1d",
        "max_unpool2d", "max_unpool3d",
    ),
    "images.fractional_pooling": (
        "fractional_max_pool2d", "fractional_max_pool2d_with_indices", "fractional_max_pool3d",
        "fractional_max_pool3d_with_indices",
    ),
}  # fmt: skip
_WHERE = {name: file for file, names in FILES.items() for name in names}


def __getattr__(name: str) -> Any:
    found: Any = None
    file = _WHERE.get(name)
    if file is not None:
        module = f"flambeau.nn.functions.{file}"
        try:
            found = served(getattr(import_module(module), name, None), name, "torch.nn.functional")
        except ModuleNotFoundError as error:
            if error.name != module:
                raise
    elif not name.startswith("__"):
        from flambeau.tensor import functions

        found = functions.public(f"nn.functional.{name}")
    if found is None:
        raise missing_name(__name__, name, __dir__())
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    from flambeau.tensor import functions

    prefix = "nn.functional."
    names = functions.public_names()
    operators = [name.removeprefix(prefix) for name in names if name.startswith(prefix)]
    return sorted({*_WHERE, *operators})


full_when_listed(__name__)
