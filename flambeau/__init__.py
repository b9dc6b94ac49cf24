"""flambeau: PyTorch's tensor and autograd, written anew. `import flambeau as torch`.

Keeps     importing this imports no NumPy, no LLVM and no room a program may not need: names are
          found when they are used. A name that is not there says so, and what is near it.
Touches   everything below, lazily.
Not here  any logic: the tables below only say where a name lives."""

from __future__ import annotations

from typing import Any

from flambeau.base import bytecode as _bytecode

_bytecode.install(__spec__)

from flambeau import ops as _ops_room
from flambeau.base import dtypes as _dtypes
from flambeau.base.devices import Device as device  # noqa: N813 - torch's name
from flambeau.base.dtypes import (
    bfloat16,
    complex64,
    complex128,
    dtype,
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float8_e5m2fnuz,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from flambeau.base.missing import module_getattr as _module_getattr
from flambeau.tensor import Size, Tensor
from flambeau.tensor.creation import tensor  # the function, as torch has it, hides the room
from flambeau.torch_version import __version__

bool = _dtypes.bool_  # torch's names, over Python's
half, double, short, long = float16, float64, int16, int64
cfloat, cdouble = complex64, complex128
float = float32
int = int32
inf = _dtypes.INFINITY
nan = _dtypes.NAN
pi = _dtypes.PI
e = _dtypes.E
newaxis = None

for _kind, _name in ((Tensor, "Tensor"), (Size, "Size"), (dtype, "dtype"), (device, "device")):
    _kind.__module__, _kind.__name__, _kind.__qualname__ = __name__, _name, _name

# Room -> names it serves; asked in this order after the operators.
_ROOMS: dict[str, tuple[str, ...]] = {
    "flambeau.tensor.creation": (
        "as_tensor", "asarray", "empty", "empty_permuted", "empty_strided",
    ),
    "flambeau.tensor.public.fills": (
        "empty_like", "eye", "full", "full_like", "ones", "ones_like", "scalar_tensor", "zeros",
        "zeros_like",
    ),
    "flambeau.tensor.public.ranges": ("arange", "linspace", "logspace", "range"),
    "flambeau.tensor.sharing": ("from_numpy", "frombuffer"),
    "flambeau.tensor.public.queries": (
        "allclose", "can_cast", "equal", "finfo", "get_default_dtype", "iinfo", "is_complex",
        "is_floating_point", "is_nonzero", "is_tensor", "numel", "is_signed", "promote_types",
        "result_type", "set_default_dtype", "typename", "broadcast_shapes", "broadcast_tensors",
        "is_storage", "is_same_size", "set_default_device", "get_default_device", "is_inference",
    ),
    "flambeau.tensor.public.forms": (
        "argwhere", "chunk", "einsum", "masked_select", "max", "meshgrid", "min", "nonzero",
        "index_put", "index_put_", "reshape", "split", "std", "tensor_split", "var", "where",
    ),
    "flambeau.tensor.public.composed": (
        "argsort", "atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "cartesian_prod",
        "column_stack", "combinations", "diag", "diag_embed", "diagflat", "diff", "dsplit",
        "dstack", "fliplr", "flipud", "hsplit", "inner", "isin", "kron", "msort",
        "layer_norm", "rot90", "take_along_dim", "tensordot", "trace",
        "trapezoid", "tril_indices", "triu_indices", "vsplit",
    ),
    "flambeau.tensor.public.counting": (
        "bincount", "bucketize", "dist", "histc", "histogram", "histogramdd", "searchsorted",
    ),
    "flambeau.tensor.public.writing.scattering": ("index_reduce", "scatter", "scatter_reduce"),
    "flambeau.tensor.public.writing.slices": (
        "as_strided_scatter", "diagonal_scatter", "masked_scatter", "put",
        "select_scatter", "slice_scatter", "split_with_sizes", "unsafe_chunk", "unsafe_split",
    ),
    "flambeau.tensor.public.statistics.divisors": ("gcd", "lcm"),
    "flambeau.tensor.public.statistics.gamma": ("mvlgamma", "polygamma"),
    "flambeau.tensor.public.statistics.order": (
        "cummax", "cummin", "kthvalue", "logcumsumexp", "median", "mode", "nanmedian",
        "nanquantile", "quantile",
    ),
    "flambeau.tensor.public.statistics.spread": (
        "cdist", "corrcoef", "cov", "cumulative_trapezoid", "gradient", "nanmean", "renorm",
        "trapz", "unravel_index", "vander",
    ),
    "flambeau.tensor.public.statistics.windows": (
        "bartlett_window", "blackman_window", "hamming_window", "hann_window", "kaiser_window",
    ),
    "flambeau.tensor.public.writing.twins": (
        "alias_copy", "as_strided_copy", "detach_copy", "diagonal_copy", "expand_copy",
        "narrow_copy", "permute_copy", "select_copy", "slice_copy", "split_copy",
        "split_with_sizes_copy", "squeeze_copy", "t_copy", "transpose_copy", "unbind_copy",
        "unfold_copy", "unsqueeze_copy", "view_copy", "view_as_complex_copy", "view_as_real_copy",
    ),
    "flambeau.tensor.public.distinct": ("repeat_interleave", "unique", "unique_consecutive"),
    "flambeau.tensor.public.mantissas": ("frexp",),
    "flambeau.tensor.public.members": (
        "as_strided", "from_dlpack",
    ),
    "flambeau.tensor.public.complex_members": (
        "adjoint", "conj", "conj_physical", "isreal", "positive", "real", "resolve_conj",
        "resolve_neg", "vdot",
    ),
    "flambeau.tensor.public.printing": ("get_printoptions", "printoptions", "set_printoptions"),
    "flambeau.fft.short_time": ("istft", "stft"),
    "flambeau.random": (
        "Generator", "default_generator", "get_rng_state", "initial_seed", "manual_seed", "seed",
        "set_rng_state",
    ),
    "flambeau.random.tensors": (
        "bernoulli", "normal", "rand", "rand_like", "randint", "randint_like", "randn",
        "randn_like", "randperm",
    ),
    "flambeau.random.sampled_tensors": (
        "_sample_dirichlet", "_standard_gamma", "binomial", "multinomial", "poisson",
    ),
    "flambeau.autograd": (
        "enable_grad", "inference_mode", "is_grad_enabled", "is_inference_mode_enabled", "no_grad",
        "set_grad_enabled",
    ),
    "flambeau.autograd.anomaly_mode": ("is_anomaly_check_nan_enabled", "is_anomaly_enabled"),
    "flambeau.tensor.public.settings": (
        "are_deterministic_algorithms_enabled", "compile", "get_deterministic_debug_mode",
        "get_float32_matmul_precision", "is_deterministic_algorithms_warn_only_enabled",
        "is_warn_always_enabled",
        "get_num_interop_threads", "get_num_threads", "set_deterministic_debug_mode",
        "set_float32_matmul_precision", "set_flush_denormal", "set_num_interop_threads",
        "set_num_threads", "use_deterministic_algorithms", "set_warn_always",
    ),
    "flambeau.tensor.public.typed.legacy": (
        "BFloat16Tensor", "BoolTensor", "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor",
        "HalfTensor", "IntTensor", "LongTensor", "ShortTensor", "set_default_tensor_type",
    ),
    "flambeau.tensor.public.formats": (
        "channels_last", "channels_last_3d", "contiguous_format", "memory_format",
        "preserve_format", "strided", "layout", "sparse_bsc", "sparse_bsr", "sparse_coo",
        "sparse_csc", "sparse_csr",
    ),
    "flambeau.linalg.top_level": (
        "chain_matmul", "cholesky", "cholesky_inverse", "cholesky_solve", "cross", "det",
        "inverse", "logdet", "lu", "lu_solve", "lu_unpack", "matrix_exp", "matrix_power", "norm",
        "pinverse", "qr", "slogdet", "svd", "triangular_solve",
    ),
    "flambeau.linalg.low_rank": ("pca_lowrank", "svd_lowrank"),
    "flambeau.linalg.reflectors": ("geqrf", "orgqr", "ormqr"),
    "flambeau.nn.utils.weight_norm": ("norm_except_dim",),
    "flambeau.nn.functions.convolution": (
        "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
    ),
    "flambeau.nn.functions.pooling": (
        "adaptive_avg_pool1d", "adaptive_max_pool1d", "avg_pool1d", "max_pool1d",
        "max_pool1d_with_indices", "max_pool2d", "max_pool3d",
    ),
    "flambeau.amp.autocast_mode": ("autocast",),
    "flambeau.gradients.autocast": (
        "autocast_decrement_nesting", "autocast_increment_nesting", "clear_autocast_cache",
        "get_autocast_cpu_dtype", "get_autocast_dtype", "get_autocast_gpu_dtype",
        "is_autocast_available", "is_autocast_cache_enabled", "is_autocast_cpu_enabled",
        "is_autocast_enabled", "set_autocast_cache_enabled", "set_autocast_dtype",
        "set_autocast_enabled",
    ),
    "flambeau.base.errors": ("OutOfMemoryError", "_assert"),
    "flambeau.nn.functional": (
        "adaptive_avg_pool1d", "adaptive_max_pool1d", "alpha_dropout", "avg_pool1d", "bilinear",
        "channel_shuffle", "cosine_similarity", "dropout", "feature_alpha_dropout", "group_norm",
        "max_pool1d", "max_pool2d", "max_pool3d", "pairwise_distance", "pdist", "pixel_shuffle",
        "pixel_unshuffle", "prelu", "rrelu",
    ),
    "flambeau.sparse": ("sparse_coo_tensor", "sparse_csr_tensor", "spmm"),
    "flambeau.tensor.public.typed.storages": ("TypedStorage", "UntypedStorage"),
    "flambeau.io": ("load", "save"),
    "flambeau.io.records": ("PyTorchFileReader",),
    "flambeau.fx.symbols": ("SymBool", "SymFloat", "SymInt"),
    "flambeau.amp.grad_scaler": ("GradScaler",),
    "flambeau.func": ("vmap",),
    "flambeau.jit.futures": ("Future",),
    "flambeau.cli.stand_in": ("as_torch",),
}  # fmt: skip
# Methods that are functions too.
_METHODS = (
    "gcd_", "lcm_",
    "arccos_", "arccosh_", "arcsin_", "arcsinh_", "arctan_", "arctanh_", "as_strided_", "clip_",
    "detach_", "fill_", "fix_", "get_device", "is_conj", "is_neg", "negative_",
    "resize_as_", "zero_",
)  # fmt: skip
_WHERE = {name: room for room, names in _ROOMS.items() for name in names}
_MODULES = (
    "_C", "__config__", "__future__", "_custom_ops", "_dynamo", "_higher_order_ops", "_ops",
    "_subclasses", "_tensor_str", "_utils", "_vmap_internals", "accelerator", "amp", "ao",
    "autograd", "backends", "cli", "compiler", "cpu", "cuda", "debug", "distributed",
    "distributions", "fft", "func", "functional", "futures", "fx", "hub", "io", "jit", "library",
    "linalg", "mps", "multiprocessing", "nn", "onnx", "optim", "overrides", "profiler", "random",
    "return_types", "serialization", "signal", "sparse", "special", "storage", "testing", "types",
    "utils", "version", "xpu",
)  # fmt: skip
_missing = _module_getattr(__name__)


def _namespace(name: str) -> Any:
    """torch.ops.NAME: the operators of one library."""
    from flambeau._ops import namespace

    return namespace(name)


_ops_room.namespace = _namespace


def __getattr__(name: str) -> Any:
    from importlib import import_module

    found: Any
    room = _WHERE.get(name)
    if room is not None:
        try:
            found = _served(getattr(import_module(room), name), name)
        except ModuleNotFoundError as error:
            if error.name != room:
                raise
            return _missing(name)
    elif name.startswith("_foreach_"):
        found = import_module("flambeau.optim.foreach").named(name)
        if found is None:
            return _missing(name)
    elif name == "torch":  # torch.torch, which programs write by mistake
        found = import_module("flambeau")
    elif name in _MODULES:
        try:
            found = import_module(f"flambeau.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"flambeau.{name}":
                raise
            return _missing(name)
    else:
        found = _operator(name)
        if found is None:
            return _missing(name)
    globals()[name] = found
    return found


def _operator(name: str) -> Any:
    """A public function made from an operator, in-place forms included."""
    from flambeau.tensor import functions

    found = functions.public(name)
    if found is None and name in _METHODS:
        found = getattr(Tensor, name)
    return found


def _served(found: Any, name: str) -> Any:
    """A room's function as programs know it: calls of it may be taken over."""
    from flambeau.tensor.overriding import serving

    return serving.served(found, name)


def __dir__() -> list[str]:
    from flambeau.tensor import functions

    names = {n for n in globals() if not n.startswith("_")} | set(_WHERE) | set(_MODULES)
    functional = {name for name in functions.public_names() if "." not in name}
    return sorted(names | set(_METHODS) | functional)


__all__ = [
    "Size",
    "Tensor",
    "__version__",
    "bfloat16",
    "bool",
    "cdouble",
    "cfloat",
    "complex64",
    "complex128",
    "device",
    "double",
    "dtype",
    "e",
    "float",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float16",
    "float32",
    "float64",
    "half",
    "inf",
    "int",
    "int8",
    "int16",
    "int32",
    "int64",
    "long",
    "nan",
    "newaxis",
    "pi",
    "short",
    "tensor",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]  # fmt: skip
