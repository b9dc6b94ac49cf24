"""Which operators take floats of 8 bits: those that move, compare or convert them, and products.

Keeps     the others are refused with torch's error, which names its kernel.
Touches   base.dtypes, base.errors.
Not here  what the formats are (codegen/float8.py)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from flambeau.base import dtypes
from flambeau.base.dtypes import dtype
from flambeau.base.promotion import Scalar, result_type
from flambeau.ops.define import not_implemented

TAKE_EIGHT_BITS: Final = frozenset(
    ("abs", "addmm", "all", "any", "as_strided_backward", "bmm", "cat", "clone", "constant_pad_nd",
     "contiguous_copy", "convert", "copy", "diagonal_backward", "embedding", "eq", "expand_copy",
     "eye", "fill", "full", "hstack", "index", "index_put", "index_select", "isnan", "linear",
     "matmul", "mm", "mul", "ne", "ones", "outer", "repeat", "roll", "select_backward",
     "slice_backward", "stack", "tile", "vstack", "where", "zero", "zeros")
)  # fmt: skip
# torch's names of kernels, where they are not the operator's with "_cpu".
_KERNELS: Final = {
    **dict.fromkeys(("add", "rsub", "sub"), "add_stub"),
    **{
        name: f"{name}_vml_cpu"
        for name in ("ceil", "cos", "exp", "expm1", "floor", "log", "log10", "log1p", "log2",
                     "round", "rsqrt", "sin", "sqrt", "tan", "tanh", "trunc")
    },
    **dict.fromkeys(("mean", "sum"), "sum_cpu"),
    "count_nonzero": "nonzero_count_cpu", "isclose": "mul_cpu_reduced_float",
    "lerp": "lerp_kernel_scalar", "mul": "mul_cpu_reduced_float",
    "amax": "max_values_cpu", "amin": "min_values_cpu", "clamp": "clamp_scalar_cpu",
    "cumprod": "cumprod_out_cpu", "cumsum": "cumsum_out_cpu", "dot": "dot",
    "gather": "gather_expanded_index", "index_add": "index_add_", "isfinite": "isfinite",
    "isinf": "isinf", "masked_fill": "masked_fill", "max": "max_all", "min": "min_all",
    "nan_to_num": "nan_to_num", "pow": "pow", "relu": "clamp_min_scalar_cpu",
    "softmax": "softmax_lastdim_kernel_impl", "sort": "sorting_kernel_method_name", "tril": "tril",
    "triu": "triu",
    **dict.fromkeys(("scatter", "scatter_add"), "scatter_gather_tensor_cpu"),
}  # fmt: skip


def refuse(name: str, operands: Iterable[Any]) -> None:
    """Raise torch's error where an operator that computes is given a float of 8 bits."""
    operands = list(operands)
    if name in TAKE_EIGHT_BITS and not (
        name == "mul" and any(isinstance(each, Scalar) for each in operands)
    ):
        return
    layouts = [each for each in operands if hasattr(each, "dtype")]
    eights: list[dtype] = [each.dtype for each in layouts if each.dtype in dtypes.EIGHT_BITS]
    if eights:
        # Where dtypes do not go together, that is said first.
        result_type([each for each in layouts if each.dtype.is_floating_point])
        raise not_implemented(_KERNELS.get(name, f"{name}_cpu"), eights[0])
