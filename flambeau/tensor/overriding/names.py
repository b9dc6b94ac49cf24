"""Which of torch's functions may be taken over, and which of these torch writes in Python.

Keeps     names alone, as torch.overrides resolves them.
Touches   nothing.
Not here  who is asked (arguments/taken_over.py)."""

from __future__ import annotations

from typing import Final


def _under(room: str, names: str) -> frozenset[str]:
    return frozenset(f"{room}.{name}" for name in names.split())


# In torch.functional; torch itself has them, too.
FUNCTIONAL: Final = frozenset((
    "atleast_1d atleast_2d atleast_3d block_diag broadcast_tensors cartesian_prod cdist "
    "chain_matmul einsum lu meshgrid norm pca_lowrank split stft svd_lowrank tensordot unique "
    "unique_consecutive unravel_index"
).split())  # fmt: skip
_METHODS: Final = (
    "__array__ __array_wrap__ __contains__ __deepcopy__ __dlpack__ __dlpack_device__ __floordiv__ "
    "__format__ __ipow__ __len__ __pow__ __reduce_ex__ __repr__ __reversed__ __rfloordiv__ "
    "__rlshift__ __rmatmul__ __rmod__ __rpow__ __rrshift__ __rsub__ __rtruediv__ __setstate__ "
    "backward dim_order is_shared istft lu module_load norm register_hook "
    "register_post_accumulate_grad_hook share_memory_ split stft storage unique "
    "unique_consecutive tolist untyped_storage"
)
# torch.nn.functional is Python but for these.
_NATIVE_FUNCTIONAL: Final = _under("torch.nn.functional", (
    "adaptive_avg_pool1d avg_pool1d avg_pool2d avg_pool3d bilinear channel_shuffle conv1d conv2d "
    "conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d cosine_similarity gelu "
    "hardshrink linear logsigmoid native_channel_shuffle one_hot pairwise_distance pdist "
    "pixel_shuffle pixel_unshuffle prelu scaled_dot_product_attention softplus softshrink"
))  # fmt: skip
_PYTHON: Final = (
    _under("torch", " ".join(FUNCTIONAL))
    | _under("torch.Tensor", _METHODS)
    | _under("torch.autograd", "grad backward")
)
# Functions of torch itself that neither arguments nor modes take over.
SILENT: Final = frozenset((
    "are_deterministic_algorithms_enabled autocast_decrement_nesting autocast_increment_nesting "
    "broadcast_shapes clear_autocast_cache compile finfo from_dlpack from_numpy frombuffer "
    "get_autocast_cpu_dtype get_autocast_dtype get_autocast_gpu_dtype get_default_device "
    "get_default_dtype get_deterministic_debug_mode get_float32_matmul_precision "
    "get_num_interop_threads get_num_threads get_printoptions get_rng_state iinfo initial_seed "
    "is_anomaly_check_nan_enabled is_anomaly_enabled is_autocast_available "
    "is_autocast_cache_enabled is_autocast_cpu_enabled is_autocast_enabled "
    "is_deterministic_algorithms_warn_only_enabled is_grad_enabled is_inference_mode_enabled "
    "is_storage is_tensor is_warn_always_enabled load manual_seed printoptions save seed "
    "set_autocast_cache_enabled set_autocast_dtype set_autocast_enabled set_default_device "
    "set_default_dtype set_default_tensor_type set_deterministic_debug_mode "
    "set_float32_matmul_precision set_flush_denormal set_num_interop_threads set_num_threads "
    "set_printoptions set_rng_state set_warn_always typename use_deterministic_algorithms vmap "
    "as_torch _assert autocast"
).split())  # fmt: skip
# These make tensors: modes take them over, their arguments do not.
FACTORIES: Final = frozenset((
    "arange as_tensor asarray bartlett_window blackman_window can_cast empty empty_strided eye "
    "full hamming_window hann_window kaiser_window linspace logspace ones promote_types rand "
    "randint randn randperm range scalar_tensor sparse_coo_tensor tensor tril_indices "
    "triu_indices zeros"
).split())  # fmt: skip


def is_python(name: str) -> bool:
    """Whether torch's function of this name is written in Python; getters are counted with them."""
    if name.startswith("torch.nn.functional."):
        return name not in _NATIVE_FUNCTIONAL
    return name in _PYTHON or name.startswith("torch.nn.init.")


def said(name: str) -> str:
    """What torch's messages call a function that is written in Python."""
    room, _, own = name.rpartition(".")
    if room == "torch.Tensor":
        return f"torch._tensor.{own}"
    return f"torch.functional.{own}" if room == "torch" and own in FUNCTIONAL else name
