"""Which room serves which of Tensor's methods, where that room is imported at first use only.

Keeps     tables: method -> function of the room, operator -> what it is made from.
Touches   nothing: names alone.
Not here  methods made from operators, properties (methods.py)."""

from __future__ import annotations

from typing import Final

LATE: Final[dict[str, dict[str, str]]] = {
    "gradients.tensor_methods": {name: name for name in ("backward", "detach")},
    "gradients.members": {
        "detach_": "detach_", "requires_grad_": "requires_grad_", "_is_view": "is_view"
    },
    "tensor.public.typed.legacy": {"new": "new"},
    "gradients.modes": {"is_inference": "is_inference"},
    "gradients.hooks": {
        name: name
        for name in ("register_hook", "register_post_accumulate_grad_hook", "retain_grad")
    },
    "random.tensors": {"bernoulli": "bernoulli"},
    "random.in_place": {
        name: name
        for name in (
            "uniform_", "normal_", "random_", "bernoulli_", "exponential_", "geometric_",
            "cauchy_", "log_normal_",
        )
    },
    "random.sampled_tensors": {"multinomial": "multinomial"},
    "tensor.public.fills": {
        name: name
        for name in (
            "new_empty", "new_empty_strided", "new_full", "new_ones", "new_tensor", "new_zeros",
        )
    },
    "tensor.public.printing": {"__repr__": "repr_of", "__format__": "format_of"},
    "tensor.indexing": {"__getitem__": "getitem", "__setitem__": "setitem"},
    "tensor.public.forms": {
        "max": "max", "min": "min", "where": "where_method", "nonzero": "nonzero",
        "argwhere": "argwhere", "masked_select": "masked_select", "std": "std", "var": "var",
        "index_put": "index_put", "index_put_": "index_put_", "tensor_split": "tensor_split",
        "float_power_": "float_power_",
    },
    "tensor.public.composed": {
        name: name
        for name in (
            "argsort", "diag", "diag_embed", "diagflat", "diff", "dsplit", "expand_as", "fliplr",
            "flipud", "hsplit", "inner", "kron", "msort", "reshape_as",
            "rot90", "sum_to_size", "take_along_dim", "trace", "view_as", "vsplit",
        )
    },
    "linalg.top_level": {
        name: name
        for name in (
            "cholesky", "cholesky_inverse", "cholesky_solve", "cross", "det", "inverse", "logdet",
            "lu", "lu_solve", "matrix_exp", "matrix_power", "norm", "pinverse", "qr", "slogdet",
            "svd", "triangular_solve",
        )
    },
    "linalg.reflectors": {name: name for name in ("geqrf", "orgqr", "ormqr")},
    "tensor.public.writing.twins": {"narrow_copy": "narrow_copy"},
    "tensor.public.mantissas": {"frexp": "frexp"},
    "fft.short_time": {"stft": "stft", "istft": "istft"},
    "sparse": {
        "to_sparse": "to_sparse", "to_sparse_coo": "to_sparse_coo",
        "to_sparse_csr": "to_sparse_csr", "sparse_mask": "sparse_mask",
    },
    "tensor.public.writing.scattering": {
        name: name
        for name in (
            "index_reduce", "index_reduce_", "scatter", "scatter_", "scatter_reduce",
            "scatter_reduce_",
        )
    },
    "tensor.public.writing.slices": {
        name: name
        for name in (
            "as_strided_scatter", "diagonal_scatter", "fill_diagonal_",
            "masked_scatter", "masked_scatter_", "put", "put_", "select_scatter", "slice_scatter",
            "split_with_sizes", "unsafe_chunk", "unsafe_split",
        )
    },
    "tensor.public.statistics.divisors": {
        name: name for name in ("gcd", "gcd_", "lcm", "lcm_")
    },
    "tensor.public.statistics.gamma": {
        **{name: name for name in ("mvlgamma", "mvlgamma_", "polygamma_")},
        "polygamma": "polygamma_of",
    },
    "tensor.public.statistics.order": {
        name: name
        for name in (
            "cummax", "cummin", "kthvalue", "logcumsumexp", "median", "mode", "nanmedian",
            "nanquantile", "quantile",
        )
    },
    "tensor.public.statistics.spread": {
        name: name for name in ("corrcoef", "cov", "nanmean", "renorm", "renorm_")
    },
    "tensor.public.counting": {
        name: name for name in ("bincount", "dist", "histc", "histogram")
    },
    "tensor.public.distinct": {
        name: name for name in ("repeat_interleave", "unique", "unique_consecutive")
    },
    "tensor.public.queries": {
        name: name for name in ("allclose", "equal", "is_nonzero", "is_same_size")
    },
    "tensor.public.complex_members": {
        **{
            name: name
            for name in (
                "adjoint", "conj", "conj_physical", "isreal", "positive", "resolve_conj",
                "resolve_neg", "vdot",
            )
        },
    },
    "tensor.public.typed.storages": {"storage": "storage", "untyped_storage": "untyped_storage"},
    "tensor.public.typed.copies": {
        "__copy__": "copy_of", "__deepcopy__": "deepcopy", "__reduce_ex__": "reduce_ex",
    },
    "tensor.public.members": {
        **{
            name: name
            for name in (
                "apply_", "as_strided", "as_strided_", "as_subclass", "dim_order", "is_set_to",
                "map_", "pin_memory", "resize_", "resize_as_", "set_", "share_memory_", "squeeze_",
                "t_", "transpose_", "unsqueeze_", "view",
            )
        },
        "type": "type_of",
        "swapaxes_": "transpose_", "swapdims_": "transpose_",
        "to_dense": "to_dense",
        "__array_wrap__": "array_wrap", "__dlpack__": "dlpack",
        "__dlpack_device__": "dlpack_device",
        "__rtruediv__": "rtruediv", "__rpow__": "rpow",
        "__invert__": "invert", "__contains__": "contains",
        "__rfloordiv__": "rfloordiv", "__rmod__": "rmod", "__rlshift__": "rlshift",
        "__rrshift__": "rrshift", "__rmatmul__": "rmatmul", "__reversed__": "reversed_",
    },
}  # fmt: skip
# Python's operators: the operator of flambeau's, and the member that a __torch_function__ is shown.
OPERATORS: Final[dict[str, tuple[str, str]]] = {
    "__add__": ("add", "add"), "__radd__": ("add", "add"), "__sub__": ("sub", "sub"),
    "__rsub__": ("rsub", "__rsub__"), "__mul__": ("mul", "mul"), "__rmul__": ("mul", "mul"),
    "__truediv__": ("div", "div"), "__floordiv__": ("floor_divide", "__floordiv__"),
    "__mod__": ("remainder", "remainder"), "__pow__": ("pow", "__pow__"),
    "__matmul__": ("matmul", "matmul"), "__and__": ("bitwise_and", "__and__"),
    "__rand__": ("bitwise_and", "bitwise_and"), "__or__": ("bitwise_or", "__or__"),
    "__ror__": ("bitwise_or", "bitwise_or"), "__xor__": ("bitwise_xor", "__xor__"),
    "__rxor__": ("bitwise_xor", "bitwise_xor"), "__eq__": ("eq", "__eq__"), "__ne__": ("ne", "ne"),
    "__lt__": ("lt", "lt"), "__le__": ("le", "le"), "__gt__": ("gt", "gt"), "__ge__": ("ge", "ge"),
    "__lshift__": ("bitwise_left_shift", "__lshift__"),
    "__rshift__": ("bitwise_right_shift", "__rshift__"),
}  # fmt: skip
INPLACE: Final[dict[str, tuple[str, str]]] = {
    "__iadd__": ("add", "add_"), "__isub__": ("sub", "sub_"), "__imul__": ("mul", "mul_"),
    "__itruediv__": ("div", "div_"), "__ifloordiv__": ("floor_divide", "floor_divide_"),
    "__imod__": ("remainder", "remainder_"), "__ipow__": ("pow", "__ipow__"),
    "__iand__": ("bitwise_and", "__iand__"), "__ior__": ("bitwise_or", "__ior__"),
    "__ixor__": ("bitwise_xor", "__ixor__"), "__ilshift__": ("bitwise_left_shift", "__ilshift__"),
    "__irshift__": ("bitwise_right_shift", "__irshift__"),
}  # fmt: skip
# Under another name of theirs.
SAME: Final[dict[str, str]] = {
    "__neg__": "neg", "__abs__": "abs", "__pos__": "positive", "__div__": "__truediv__",
    "__rdiv__": "__rtruediv__", "__idiv__": "__itruediv__",
}  # fmt: skip
