"""torch's names of nodes: MulBackward0, AddmmBackward0, PowBackward1.

Keeps     a name is worked out when somebody looks, never while recording.
Touches   nothing.
Not here  the nodes (graph.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

# Operators whose torch node has another stem.
_STEMS: Final = {
    "linear": "Addmm", "true_divide": "Div", "divide": "Div", "multiply": "Mul",
    "subtract": "Sub", "absolute": "Abs", "negative": "Neg", "contiguous": "Clone",
    "getitem": "Index", "index_get": "Index", "setitem": "IndexPut", "cross_entropy": "NllLoss",
    "layer_norm_rows": "NativeLayerNorm", "batch_norm": "NativeBatchNorm", "to": "ToCopy",
    "group_norm_rows": "NativeGroupNorm", "dropout": "Mul",
    "conv1d": "Convolution", "conv2d": "Convolution", "conv3d": "Convolution",
    "reshape": "View", "flatten": "View", "broadcast_to": "Expand", "convert": "ToCopy",
    "max_pool2d_with_indices": "MaxPool2DWithIndices", "avg_pool2d": "AvgPool2D",
    "max_pool3d_with_indices": "MaxPool3DWithIndices", "avg_pool3d": "AvgPool3D",
    "adaptive_max_pool2d": "AdaptiveMaxPool2D", "adaptive_max_pool3d": "AdaptiveMaxPool3D",
    "adaptive_avg_pool2d": "AdaptiveAvgPool2D", "adaptive_avg_pool3d": "AdaptiveAvgPool3D",
    "concat": "Cat", "concatenate": "Cat", "clip": "Clamp",
    "movedim": "Permute", "swapaxes": "Transpose",
    "norm": "LinalgVectorNorm", "vector_norm": "LinalgVectorNorm", "outer": "Mul",
    "real": "Select", "imag": "Select",
    "chunk": "Split", "narrow": "Slice", "tensor_split": "Slice", "square": "Pow",
    "dropout_mask": "Mul",
    "attention": "ScaledDotProductFlashAttentionForCpu", "batch_norm_train": "NativeBatchNorm",
    "logsigmoid": "LogSigmoid", "unflatten": "View", "tile": "Repeat", "selu": "Elu",
    "relu6": "Hardtanh", "log1p": "Log1P",
    "gru_steps": "Stack", "lstm_steps": "MkldnnRnnLayer",
    "contiguous_copy": "Clone", "max_dim": "Max", "min_dim": "Min",
    "batch_norm_eval": "NativeBatchNorm", "softsign": "Div", "tanhshrink": "Sub", "rms_norm": "Mul",
    "deg2rad": "Deg2Rad", "rad2deg": "Rad2Deg", "hstack": "Cat", "vstack": "Cat",
    "dstack": "Cat", "column_stack": "Cat", "special_i0e": "SpecialI0E",
    "ravel": "View", "special_i1e": "SpecialI1E", "special_xlog1py": "SpecialXlog1Py",
}  # fmt: skip
# Operators without a derivative.
_UNDERIVABLE: Final = {"floor_divide", "heaviside"}
# Activations whose in-place form is torch's number 1.
_IN_PLACE: Final = {
    "celu", "elu", "hardtanh", "leaky_relu", "relu6", "selu", "threshold"
}  # fmt: skip
# Operators whose torch overload for given dims is number 1.
_BY_DIM: Final = {"sum", "mean", "any", "all", "prod"}
_FIRST: Final = {"max", "min", "median"}  # over everything; max_dim and its like are number 0
# Operators whose overload for a number has no edge for it.
_SCALARS: Final = {
    "pow", "rsub", "remainder", "fmod", "masked_fill", "clamp", "clamp_min", "clamp_max", "lerp",
    "fill", "scatter", "index_fill", "xlogy", "special_xlog1py",
}  # fmt: skip
# Operators of which only these operands are differentiated: not those that say where.
_DIFFERENTIATED: Final = {
    "where": (1, 2), "index": (0,), "index_get": (0,), "embedding": (0,), "gather": (0,),
    "index_select": (0,), "take": (0,), "nll_loss": (0,), "cross_entropy": (0,),
    "masked_fill": (0, 2), "scatter": (0, 2), "scatter_add": (0, 2), "index_add": (0, 2),
    "index_fill": (0, 2),
    "binary_cross_entropy": (0, 1), "binary_cross_entropy_with_logits": (0, 1),
    "attention": (0, 1, 2),
}  # fmt: skip
# torch's overload of an operator whose operand at a place is a number, and a tensor.
_OVERLOADS: Final = {
    "clamp": (1, (1, 0)), "remainder": (1, (0, 1)), "fmod": (1, (0, 1)), "scatter": (2, (1, 0)),
    "masked_fill": (2, (0, 1)), "lerp": (2, (0, 1)), "fill": (1, (0, 1)), "rsub": (1, (1, 0)),
    "clamp_min": (1, (0, 1)), "clamp_max": (1, (0, 1)), "index_fill": (2, (0, 1)),
}  # fmt: skip


def node_name(
    operator: str, layouts: Sequence[Any], attributes: dict[str, Any], in_place: bool = False
) -> str:
    """The class name torch gives the node of this call.

    >>> node_name("leaky_relu", (), {}), node_name("mul", (), {}), node_name("sum", (), {"dim": 0})
    ('LeakyReluBackward0', 'MulBackward0', 'SumBackward1')
    """
    if operator == "matmul" or (operator == "linear" and len(layouts) > 2 and layouts[2] is None):
        return _product_name(layouts)
    if operator in ("copy", "copy_"):
        return "CopyBackwards"
    if operator in _UNDERIVABLE:
        return "NotImplemented"
    if operator == "einsum":
        return _einsum_name(attributes["equation"])
    if operator == "linear" and len(layouts) > 2 and len(layouts[0].shape) != 2:
        return "ViewBackward0"
    if operator in ("cross_entropy", "nll_loss", "kl_div", "l1_loss"):
        return _loss_name(operator, layouts, attributes)
    if operator == "split" and isinstance(attributes.get("split_size_or_sections"), tuple):
        return "SplitWithSizesBackward0"
    stem = _STEMS.get(operator) or "".join(part.capitalize() for part in operator.split("_"))
    number = _overload(operator, layouts, attributes)
    if in_place:
        number += 2 if operator == "fill" else int(operator in _IN_PLACE)
    return f"{stem}Backward{number}"


def _overload(operator: str, layouts: Sequence[Any], attributes: dict[str, Any]) -> int:
    if operator in _BY_DIM:
        return int(attributes.get("dim").__class__ in (int, tuple))  # not EveryDim
    if operator in _FIRST:
        return 1
    if operator == "squeeze":
        dim = attributes.get("dim")
        return 0 if dim is None else 2 if isinstance(dim, tuple) else 1
    if operator == "pow" and len(layouts) > 1:
        return 2 if layouts[0] is None else int(layouts[1] is not None)
    if operator in ("xlogy", "special_xlog1py"):
        return 1 if layouts[0] is None else 2 * (layouts[1] is None)
    if operator == "sort":
        return int(attributes.get("stable") is not None)
    if operator == "round":
        return int(bool(attributes.get("decimals")))
    if operator == "div" and attributes.get("rounding_mode") is not None:
        return 2 + (layouts[1] is None)
    if operator in _OVERLOADS:
        place, (of_number, of_tensor) = _OVERLOADS[operator]
        rest = layouts[place:] if operator == "clamp" else layouts[place : place + 1]
        return of_tensor if any(each is not None for each in rest) else of_number
    return 0


def shown_edges(operator: str, layouts: Sequence[Any]) -> Sequence[int]:
    """Which edges torch's node has, in its order: for some operators none for a number, and of
    `linear` those of addmm(bias, input, weight) or mm(input, weight).

    >>> list(shown_edges("mul", (1, 2))), list(shown_edges("linear", (1, 2, None)))
    ([0, 1], [0, 1])
    """
    if operator == "index_put":
        return (0, len(layouts) - 1)
    if operator in _DIFFERENTIATED or operator in _SCALARS:
        chosen = _DIFFERENTIATED.get(operator, range(len(layouts)))
        drops_numbers = operator in _SCALARS
        return [
            place
            for place in chosen
            if place < len(layouts) and not (drops_numbers and layouts[place] is None)
        ]
    if operator == "linear" and len(layouts) > 2:
        return (0, 1) if layouts[2] is None else (2, 0, 1)
    return range(len(layouts))


def _loss_name(operator: str, layouts: Sequence[Any], attributes: dict[str, Any]) -> str:
    """The last node of losses that torch makes of several: those of targets that are
    probabilities, of smoothed labels, and Kullback and Leibler's."""
    reduction = attributes.get("reduction", "mean")
    if operator == "l1_loss":
        return {"mean": "Mean", "sum": "Sum"}.get(reduction, "Abs") + "Backward0"
    if operator == "kl_div":
        places = "Mul" if attributes.get("log_target") else "Sub"
        return {"mean": "Mean", "sum": "Sum"}.get(reduction, places) + "Backward0"
    if operator == "cross_entropy" and layouts[1].dtype.is_floating_point:
        return "DivBackward1" if reduction == "mean" else "NegBackward0"
    if attributes.get("label_smoothing"):
        return "AddBackward0"
    rank = len(layouts[0].shape)
    if rank != 4 and rank > 2 and reduction == "none":
        return "ViewBackward0"
    return "NllLoss2DBackward0" if rank > 2 else "NllLossBackward0"


def _einsum_name(equation: str) -> str:
    """The last step of what torch writes an equation out in: a batched product, a sum, a product
    of elements or a permutation."""
    left, _, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    summed = "->" not in equation or bool(set(left) - set(right) - {",", "."})
    if len(terms) == 1:
        return "SumBackward1" if summed else "PermuteBackward0"
    return "ViewBackward0" if summed else "MulBackward0"


def _product_name(layouts: Sequence[Any]) -> str:
    ranks = [len(each.shape) if each is not None else 2 for each in layouts[:2]]
    if ranks == [1, 1]:
        return "DotBackward0"
    if ranks == [2, 2]:
        return "MmBackward0"
    if ranks == [2, 1]:
        return "MvBackward0"
    if ranks == [1, 2]:
        return "SqueezeBackward4"
    return "UnsafeViewBackward0"
