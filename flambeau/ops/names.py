"""Where each operator is defined and which names it gets: none is imported to know.

Made by tests/recorded/record_names.py from the operators themselves; tests/ops/test_names.py
fails where the two differ.

Keeps     one line of names a fact; what the table does not say is the default.
Touches   nothing.
Not here  what operators mean (the files named here)."""

from __future__ import annotations

from typing import Final


def _table(given: dict[str, str]) -> dict[str, str]:
    """name -> key of all the names in the values."""
    return {name: key for key, names in given.items() for name in names.split()}


# Operator -> the file under flambeau/ops that defines it.
FILES: Final = _table({
    "contraction.added_products": "addmm baddbmm addbmm addmv addr",
    "contraction.einsum": "einsum",
    "contraction.matmul": "mm bmm matmul mv dot outer linear",
    "convolution.convolution": "convolution convolution_weight",
    "creation.constants": "zeros ones full eye",
    "creation.ranges": "arange linspace logspace",
    "draws.dirichlet": "sample_dirichlet _dirichlet_grad",
    "draws.gamma": "standard_gamma _standard_gamma_grad",
    "elementwise.activation": (
        "relu threshold threshold_backward relu6 hardtanh hardtanh_backward leaky_relu "
        "leaky_relu_backward prelu_kernel hardsigmoid hardsigmoid_backward hardswish "
        "hardswish_backward hardshrink hardshrink_backward softshrink tanhshrink softsign"
    ),
    "elementwise.arithmetic": (
        "add sub rsub mul div true_divide floor_divide remainder fmod addcmul addcdiv lerp"
    ),
    "elementwise.comparison": (
        "eq ne lt le gt ge isnan isinf isposinf isneginf isfinite isclose maximum minimum "
        "fmax fmin clamp clamp_min clamp_max heaviside"
    ),
    "elementwise.complex_parts": "conj_physical angle complex polar",
    "elementwise.copying": "convert clone contiguous_copy copy fill zero",
    "elementwise.logical": (
        "logical_and logical_or logical_xor logical_not bitwise_and bitwise_or bitwise_xor "
        "bitwise_not bitwise_left_shift bitwise_right_shift where masked_fill"
    ),
    "elementwise.neighbours": "nextafter",
    "elementwise.powers": (
        "square sqrt rsqrt reciprocal pow float_power exp exp2 expm1 log log2 log10 log1p "
        "logaddexp logaddexp2 xlogy hypot ldexp"
    ),
    "elementwise.rounding": "floor ceil trunc round frac nan_to_num",
    "elementwise.signs": "neg abs sign sgn signbit",
    "elementwise.smooth_activation": (
        "gelu gelu_backward silu mish softplus softplus_backward logsigmoid elu selu celu "
        "elu_backward glu"
    ),
    "elementwise.trigonometric": (
        "sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh sigmoid logit erf "
        "erfc erfinv lgamma digamma trigamma sinc deg2rad rad2deg copysign"
    ),
    "indexing.folds": "scatter_fold",
    "indexing.gathers": (
        "index_select gather take index embedding embedding_backward one_hot nonzero_static"
    ),
    "indexing.joins": "cat stack hstack vstack repeat tile flip roll constant_pad_nd",
    "indexing.scans": "cumsum cumprod sort topk tril triu",
    "indexing.scatters": "scatter scatter_add index_add index_copy index_fill index_put",
    "pooling.average": (
        "avg_pool2d avg_pool3d adaptive_avg_pool2d adaptive_avg_pool3d "
        "mean_of_windows_backward mean_of_windows"
    ),
    "pooling.largest": (
        "max_pool2d_with_indices max_pool3d_with_indices adaptive_max_pool2d "
        "adaptive_max_pool3d largest_of_windows_backward"
    ),
    "recurrent.gru": "gru_steps gru_steps_backward",
    "recurrent.lstm": "lstm_steps lstm_steps_backward",
    "reduction.extremes": (
        "amax amin max min max_dim min_dim value_selecting_backward argmax argmin aminmax"
    ),
    "reduction.moments": "var std var_mean std_mean logsumexp",
    "reduction.norms": "vector_norm norm",
    "reduction.sums": "sum nansum prod prod_dims mean count_nonzero any all",
    "rows.attention": "attention attention_backward",
    "rows.batch_normalization": "batch_norm_train batch_norm_backward batch_norm_eval",
    "rows.cross_entropy": "nll_loss nll_loss_backward cross_entropy cross_entropy_backward",
    "rows.group_normalization": "group_norm_rows group_norm_backward",
    "rows.losses": (
        "mse_loss l1_loss smooth_l1_loss huber_loss kl_div binary_cross_entropy "
        "binary_cross_entropy_with_logits dropout_mask"
    ),
    "rows.normalization": (
        "layer_norm_rows layer_norm_alone layer_norm_backward rms_norm rms_norm_backward"
    ),
    "rows.softmax": "softmax log_softmax softmax_backward log_softmax_backward",
    "special.bessel": "i0 special_i0e special_i1 special_i1e",
    "special.cylinder": (
        "special_bessel_j0 special_bessel_y0 special_modified_bessel_i0 "
        "special_modified_bessel_k0 special_scaled_modified_bessel_k0 special_bessel_j1 "
        "special_bessel_y1 special_modified_bessel_i1 special_modified_bessel_k1 "
        "special_scaled_modified_bessel_k1 special_airy_ai special_spherical_bessel_j0"
    ),
    "special.incomplete_gamma": "igamma igammac",
    "special.normal": (
        "special_erfcx special_entr special_ndtr special_log_ndtr special_ndtri "
        "special_xlog1py"
    ),
    "special.zeta": "special_zeta",
    "update.optimizers": "sgd_update adam_update rmsprop_update adagrad_update",
    "views.backward": (
        "slice_backward select_backward diagonal_backward as_strided_backward unfold_backward"
    ),
    "views.complex_views": "conj real imag view_as_real view_as_complex",
    "views.movement": (
        "view _unsafe_view reshape flatten ravel unflatten transpose swapaxes swapdims t "
        "permute movedim squeeze unsqueeze expand broadcast_to detach alias"
    ),
    "views.parts": "slice narrow select diagonal unfold as_strided",
    "views.splitting": "split chunk tensor_split unbind",
})  # fmt: skip
# Further public name -> operator.
ALIASES: Final = _table({
    "matmul": "linalg.matmul",
    "outer": "ger",
    "linear": "nn.functional.linear",
    "relu": "nn.functional.relu",
    "threshold": "nn.functional.threshold",
    "relu6": "nn.functional.relu6",
    "hardtanh": "nn.functional.hardtanh",
    "leaky_relu": "nn.functional.leaky_relu",
    "hardsigmoid": "nn.functional.hardsigmoid",
    "hardswish": "nn.functional.hardswish",
    "hardshrink": "nn.functional.hardshrink",
    "tanhshrink": "nn.functional.tanhshrink",
    "softsign": "nn.functional.softsign",
    "sub": "subtract",
    "mul": "multiply",
    "div": "divide",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "clamp": "clip",
    "exp2": "special.exp2",
    "expm1": "special.expm1",
    "log1p": "special.log1p",
    "xlogy": "special.xlogy",
    "trunc": "fix",
    "round": "special.round",
    "neg": "negative",
    "abs": "absolute",
    "gelu": "nn.functional.gelu",
    "silu": "nn.functional.silu",
    "mish": "nn.functional.mish",
    "softplus": "nn.functional.softplus",
    "logsigmoid": "nn.functional.logsigmoid",
    "elu": "nn.functional.elu",
    "selu": "nn.functional.selu",
    "celu": "nn.functional.celu",
    "glu": "nn.functional.glu",
    "asin": "arcsin",
    "acos": "arccos",
    "atan": "arctan",
    "atan2": "arctan2",
    "tanh": "nn.functional.tanh",
    "asinh": "arcsinh",
    "acosh": "arccosh",
    "atanh": "arctanh",
    "sigmoid": "special.expit nn.functional.sigmoid",
    "logit": "special.logit",
    "erf": "special.erf",
    "erfc": "special.erfc",
    "erfinv": "special.erfinv",
    "lgamma": "special.gammaln",
    "digamma": "special.digamma special.psi",
    "sinc": "special.sinc",
    "cat": "concat concatenate",
    "vstack": "row_stack",
    "avg_pool2d": "nn.functional.avg_pool2d",
    "avg_pool3d": "nn.functional.avg_pool3d",
    "logsumexp": "special.logsumexp",
    "vector_norm": "linalg.vector_norm",
    "mse_loss": "nn.functional.mse_loss",
    "l1_loss": "nn.functional.l1_loss",
    "smooth_l1_loss": "nn.functional.smooth_l1_loss",
    "rms_norm": "nn.functional.rms_norm",
    "softmax": "special.softmax",
    "log_softmax": "special.log_softmax",
    "i0": "special.i0",
    "special_i0e": "special.i0e",
    "special_i1": "special.i1",
    "special_i1e": "special.i1e",
    "special_bessel_j0": "special.bessel_j0",
    "special_bessel_y0": "special.bessel_y0",
    "special_modified_bessel_i0": "special.modified_bessel_i0",
    "special_modified_bessel_k0": "special.modified_bessel_k0",
    "special_scaled_modified_bessel_k0": "special.scaled_modified_bessel_k0",
    "special_bessel_j1": "special.bessel_j1",
    "special_bessel_y1": "special.bessel_y1",
    "special_modified_bessel_i1": "special.modified_bessel_i1",
    "special_modified_bessel_k1": "special.modified_bessel_k1",
    "special_scaled_modified_bessel_k1": "special.scaled_modified_bessel_k1",
    "special_airy_ai": "special.airy_ai",
    "special_spherical_bessel_j0": "special.spherical_bessel_j0",
    "igamma": "special.gammainc",
    "igammac": "special.gammaincc",
    "special_erfcx": "special.erfcx",
    "special_entr": "special.entr",
    "special_ndtr": "special.ndtr",
    "special_log_ndtr": "special.log_ndtr",
    "special_ndtri": "special.ndtri",
    "special_xlog1py": "special.xlog1py",
    "special_zeta": "special.zeta",
    "movedim": "moveaxis",
})  # fmt: skip
# Operators without a function of their own.
INTERNAL: Final = frozenset((
    "einsum linear convolution_weight zeros ones full eye arange linspace logspace "
    "sample_dirichlet standard_gamma threshold_backward relu6 hardtanh hardtanh_backward "
    "leaky_relu leaky_relu_backward prelu_kernel hardsigmoid hardsigmoid_backward "
    "hardswish hardswish_backward hardshrink_backward softshrink tanhshrink softsign "
    "convert contiguous_copy copy zero gelu gelu_backward silu mish softplus "
    "softplus_backward logsigmoid elu elu_backward glu trigamma scatter_fold index "
    "embedding_backward one_hot repeat avg_pool2d avg_pool3d adaptive_avg_pool2d "
    "adaptive_avg_pool3d mean_of_windows_backward mean_of_windows max_pool2d_with_indices "
    "max_pool3d_with_indices adaptive_max_pool2d adaptive_max_pool3d "
    "largest_of_windows_backward gru_steps gru_steps_backward lstm_steps "
    "lstm_steps_backward max_dim min_dim value_selecting_backward vector_norm prod_dims "
    "attention attention_backward batch_norm_train batch_norm_backward batch_norm_eval "
    "nll_loss nll_loss_backward cross_entropy cross_entropy_backward group_norm_rows "
    "group_norm_backward mse_loss l1_loss smooth_l1_loss huber_loss kl_div "
    "binary_cross_entropy dropout_mask layer_norm_rows layer_norm_alone "
    "layer_norm_backward rms_norm_backward softmax_backward log_softmax_backward "
    "special_i0e special_i1 special_i1e special_bessel_j0 special_bessel_y0 "
    "special_modified_bessel_i0 special_modified_bessel_k0 "
    "special_scaled_modified_bessel_k0 special_bessel_j1 special_bessel_y1 "
    "special_modified_bessel_i1 special_modified_bessel_k1 "
    "special_scaled_modified_bessel_k1 special_airy_ai special_spherical_bessel_j0 "
    "special_erfcx special_entr special_ndtr special_log_ndtr special_ndtri "
    "special_xlog1py special_zeta sgd_update adam_update rmsprop_update adagrad_update "
    "slice_backward select_backward diagonal_backward as_strided_backward unfold_backward "
    "conj real view expand alias slice unfold"
).split())  # fmt: skip
# Operators with a form that writes their first operand: name_.
INPLACE: Final = frozenset((
    "addmm baddbmm addbmm addmv addr relu threshold relu6 hardtanh leaky_relu hardsigmoid "
    "hardswish add sub mul div true_divide floor_divide remainder fmod addcmul addcdiv "
    "lerp eq ne lt le gt ge clamp clamp_min clamp_max heaviside conj_physical logical_and "
    "logical_or logical_xor logical_not bitwise_and bitwise_or bitwise_xor bitwise_not "
    "bitwise_left_shift bitwise_right_shift masked_fill nextafter square sqrt rsqrt "
    "reciprocal pow exp exp2 expm1 log log2 log10 log1p xlogy hypot ldexp floor ceil "
    "trunc round frac nan_to_num neg abs sign sgn silu mish elu selu celu sin cos tan "
    "asin acos atan atan2 sinh cosh tanh asinh acosh atanh sigmoid logit erf erfc erfinv "
    "lgamma digamma sinc deg2rad rad2deg copysign scatter_fold cumsum cumprod tril triu "
    "scatter scatter_add index_add index_copy index_fill index_put i0 igamma igammac"
).split())  # fmt: skip
# Operator -> Tensor's methods, where they are not its own name (none: internal).
METHODS: Final[dict[str, tuple[str, ...]]] = {
    "outer": ("outer", "ger"),
    "convolution": (),
    "_dirichlet_grad": (),
    "_standard_gamma_grad": (),
    "threshold": (),
    "sub": ("sub", "subtract"),
    "mul": ("mul", "multiply"),
    "div": ("div", "divide"),
    "ne": ("ne", "not_equal"),
    "lt": ("lt", "less"),
    "le": ("le", "less_equal"),
    "gt": ("gt", "greater"),
    "ge": ("ge", "greater_equal"),
    "clamp": ("clamp", "clip"),
    "copy": ("copy_",),
    "fill": ("fill_",),
    "zero": ("zero_",),
    "where": (),
    "trunc": ("trunc", "fix"),
    "neg": ("neg", "negative"),
    "abs": ("abs", "absolute"),
    "selu": (),
    "celu": (),
    "asin": ("asin", "arcsin"),
    "acos": ("acos", "arccos"),
    "atan": ("atan", "arctan"),
    "atan2": ("atan2", "arctan2"),
    "asinh": ("asinh", "arcsinh"),
    "acosh": ("acosh", "arccosh"),
    "atanh": ("atanh", "arctanh"),
    "embedding": (),
    "cat": (),
    "stack": (),
    "hstack": (),
    "vstack": (),
    "repeat": ("repeat",),
    "constant_pad_nd": (),
    "max": (),
    "min": (),
    "var_mean": (),
    "std_mean": (),
    "binary_cross_entropy_with_logits": (),
    "rms_norm": (),
    "imag": (),
    "view_as_real": (),
    "view_as_complex": (),
    "view": ("view",),
    "_unsafe_view": (),
    "transpose": ("transpose", "swapaxes", "swapdims"),
    "swapaxes": (),
    "swapdims": (),
    "movedim": ("movedim", "moveaxis"),
    "expand": ("expand",),
    "unfold": ("unfold",),
}


def methods_of(name: str) -> tuple[str, ...]:
    """Tensor's methods made from an operator of the table."""
    found = METHODS.get(name)
    if found is None:
        found = () if name in INTERNAL else (name,)
    return found
