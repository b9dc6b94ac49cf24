"""Forms of torch's functions that have several, or names and positions of their own in messages.

Keeps     a form is what torch's parser tries, in its order: kinds, names, defaults.
Touches   nothing: text alone.
Not here  trying them (refusals.py), the parameters of operators (parameters.py).

    "Tensor input, ints1? dim, bool keepdim=False, *, Tensor out=None"

ints1 takes one int, too; "?" None; what follows "*" comes by name. A method has no `input` and no
`out`; forms whose first tensor has another name are no methods."""

from __future__ import annotations

from typing import Final

_ONE: Final = ("Tensor input, *, Tensor out=None",)
_PAIR: Final = ("Tensor input, Tensor other, *, Tensor out=None",)
_SCALED_PAIR: Final = ("Tensor input, Tensor other, *, Number alpha=1, Tensor out=None",)
_COMPARED: Final = (*_PAIR, "Tensor input, Number other, *, Tensor out=None")
_EXTREME: Final = (
    *_ONE, *_PAIR, "Tensor input, int dim, bool keepdim=False, *, Tensors out=None"
)  # fmt: skip
_MOMENT: Final = (
    "Tensor input, ints1? dim, bool unbiased=True, bool keepdim=False, *, Tensor out=None",
    (
        "Tensor input, ints1? dim=None, *, Number? correction=None, bool keepdim=False, "
        "Tensor out=None"
    ),
    "Tensor input, bool unbiased=True",
)
_ALONG: Final = (
    "Tensor input, ints1? dim, bool keepdim=False, *, dtype? dtype=None, Tensor out=None"
)
_JOINED: Final = ("Tensors tensors, int dim=0, *, Tensor out=None",)
_PRODUCT: Final = (
    "Tensor input, Tensor mat2, *, Tensor out=None",
    "Tensor self, Tensor mat2, dtype out_dtype, *, Tensor out=None",
)

# What functions that make tensors take by name.
_KIND: Final = (
    "dtype? dtype=None, layout? layout=None, device? device=None, bool pin_memory=False, "
    "bool requires_grad=False"
)
_MADE: Final = f"Tensor out=None, {_KIND}"
_DRAWN: Final = (
    f"ints size, *, Generator? generator, names? names, {_KIND}",
    f"ints size, *, Generator? generator, {_MADE}",
    f"ints size, *, {_MADE}",
    f"ints size, *, names? names, {_KIND}",
)
_LIKE: Final = f"{_KIND}, memory_format? memory_format=None"
_DRAWN_BY: Final = "Generator? generator=None, Tensor out=None"

FORMS: Final[dict[str, tuple[str, ...]]] = {
    "kron": _PAIR,
    "inner": _PAIR,
    "cross": ("Tensor input, Tensor other, int? dim=None, *, Tensor out=None",),
    "expand_as": ("Tensor input, Tensor other",),
    "view_as": ("Tensor input, Tensor other",),
    "type_as": ("Tensor input, Tensor other",),
    "put": ("Tensor input, Tensor index, Tensor source, bool accumulate=False",),
    **dict.fromkeys(
        ("abs", "ceil", "cos", "cosh", "erf", "exp", "expm1", "floor", "log", "log10", "log1p",
         "log2", "neg", "reciprocal", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt",
         "tan", "tanh", "trunc"), _ONE),
    **dict.fromkeys(("add", "sub"), _SCALED_PAIR),
    **dict.fromkeys(("gcd", "lcm", "mul", "matmul", "maximum", "minimum"), _PAIR),
    "div": (*_PAIR, "Tensor input, Tensor other, *, str? rounding_mode, Tensor out=None"),
    **dict.fromkeys(("eq", "ge", "gt", "le", "lt", "ne"), _COMPARED),
    "pow": (
        "Tensor input, Tensor exponent, *, Tensor out=None",
        "Number self, Tensor exponent, *, Tensor out=None",
        "Tensor input, Number exponent, *, Tensor out=None",
    ),
    **dict.fromkeys(("mm", "bmm"), _PRODUCT),
    "sum": ("Tensor input, *, dtype? dtype=None", _ALONG),
    "mean": ("Tensor input, *, dtype? dtype=None, Tensor out=None", _ALONG),
    "logsumexp": ("Tensor input, ints1 dim, bool keepdim=False, *, Tensor out=None",),
    **dict.fromkeys(("max", "min"), _EXTREME),
    **dict.fromkeys(("std", "var"), _MOMENT),
    "clamp": (
        "Tensor input, Tensor? min=None, Tensor? max=None, *, Tensor out=None",
        "Tensor input, Number? min=None, Number? max=None, *, Tensor out=None",
    ),
    **dict.fromkeys(("cat", "stack"), _JOINED),
    "copy_": ("Tensor input, Tensor other, bool non_blocking=False",),
    "fill_": ("Tensor input, Tensor value", "Tensor input, Number value"),
    "linalg_vector_norm": (
        (
            "Tensor input, Number ord=2, ints1? dim=None, bool keepdim=False, *, "
            "dtype? dtype=None, Tensor out=None"
        ),
    ),
    "index_select": ("Tensor input, int dim, Tensor index, *, Tensor out=None",),
    "masked_select": ("Tensor input, Tensor mask, *, Tensor out=None",),
    "permute": ("Tensor input, ints dims",),
    "reshape": ("Tensor input, ints shape",),
    "squeeze": ("Tensor input", "Tensor input, int dim", "Tensor input, ints dim"),
    **dict.fromkeys(("ones", "zeros"), (f"ints size, *, names? names=None, {_MADE}",)),
    "empty": (
        f"ints size, *, memory_format? memory_format=None, names? names=None, {_MADE}",
    ),
    "eye": (f"int n, *, {_MADE}", f"int n, int m, *, {_MADE}"),
    **dict.fromkeys(("rand", "randn"), _DRAWN),
    "randint": tuple(
        f"{bounds}, ints size, *, {kind}"
        for kind in (f"Generator? generator, {_MADE}", _MADE)
        for bounds in ("int high", "int low, int high")
    ),
    "linspace": tuple(
        f"{start} start, {end} end, int steps, *, {_MADE}"
        for start in ("Tensor", "Number")
        for end in ("Tensor", "Number")
    ),
    "normal": (
        f"Tensor mean, Tensor std, *, {_DRAWN_BY}",
        f"Tensor mean, Number std=1, *, {_DRAWN_BY}",
        f"Number mean, Tensor std, *, {_DRAWN_BY}",
        f"Number mean, Number std, ints size, *, {_DRAWN_BY}, {_KIND}",
    ),
    **dict.fromkeys(
        ("empty_like", "ones_like", "zeros_like"), (f"Tensor input, *, {_LIKE}",)),
    **dict.fromkeys(
        ("rand_like", "randn_like"),
        (f"Tensor input, *, Generator? generator, {_LIKE}", f"Tensor input, *, {_LIKE}")),
    "to": tuple(
        f"Tensor input, {what}, bool non_blocking=False, bool copy=False, *, "
        "memory_format? memory_format=None"
        for what in ("device? device=None, dtype? dtype=None", "dtype dtype", "Tensor tensor")
    ),
    "tensor_split": (
        "Tensor input, Tensor tensor_indices_or_sections, int dim=0",
        "Tensor input, int sections, int dim=0", "Tensor input, ints indices, int dim=0",
    ),
    "transpose": ("Tensor input, int dim0, int dim1",),
    "unsqueeze": ("Tensor input, int dim",),
    "view": ("Tensor input, dtype dtype", "Tensor input, ints size"),
    **dict.fromkeys(("t", "zero_"), ("Tensor input",)),
}  # fmt: skip
