"""repr of tensors, character for character as torch prints them.

Keeps     reading for print makes no kernel and no history; what is summarised away is not read.
Touches   conversion (memory), gradients.members.
Not here  the options of NumPy or Python, which do not matter.
Source    the rules of torch/_tensor_str.py."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from typing import Any

from flambeau.base import dtypes, promotion
from flambeau.gradients import members
from flambeau.tensor import conversion
from flambeau.tensor.tensor import Tensor

_NAMES = ("precision", "threshold", "edgeitems", "linewidth", "sci_mode")


class Options:
    """What set_printoptions sets."""

    def __init__(self) -> None:
        self.precision = 4
        self.threshold: float = 1000
        self.edgeitems = 3
        self.linewidth = 80
        self.sci_mode: bool | None = None


OPTIONS = Options()
_PROFILES: dict[str, tuple[int, float, int, int]] = {
    "default": (4, 1000, 3, 80),
    "short": (2, 1000, 2, 80),
    "full": (4, math.inf, 3, 80),
}


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Digits, summarising and line width of printed tensors.

    profile   "default", "short" or "full"      sci_mode   None: as the values suggest
    """
    if profile is not None and profile in _PROFILES:
        (
            OPTIONS.precision, OPTIONS.threshold, OPTIONS.edgeitems, OPTIONS.linewidth
        ) = _PROFILES[profile]  # fmt: skip
    if precision is not None:
        OPTIONS.precision = precision
    if threshold is not None:
        OPTIONS.threshold = threshold
    if edgeitems is not None:
        OPTIONS.edgeitems = edgeitems
    if linewidth is not None:
        OPTIONS.linewidth = linewidth
    OPTIONS.sci_mode = sci_mode


def get_printoptions() -> dict[str, Any]:
    """The options as set_printoptions takes them."""
    return {name: getattr(OPTIONS, name) for name in _NAMES}


@contextlib.contextmanager
def printoptions(**options: Any) -> Iterator[None]:
    """Other options inside a with block."""
    before = get_printoptions()
    set_printoptions(**options)
    try:
        yield
    finally:
        set_printoptions(**before)


# Values --------------------------------------------------------------------------------


class _Omitted:
    """Stands where places are summarised away."""


OMITTED = _Omitted()


def shown_places(size: int, summarize: bool) -> list[Any]:
    """Places of a dim that are printed, with OMITTED among them."""
    edge = OPTIONS.edgeitems
    if summarize and size > 2 * edge:
        return [*range(edge), OMITTED, *range(size - edge, size)]
    return list(range(size))


def nested_values(tensor: Tensor, summarize: bool) -> Any:
    """The printed elements as nested lists, OMITTED where others lie; a number without dims."""
    layout = tensor._layout
    if layout.is_contiguous and not summarize:
        return conversion.tolist(tensor)
    if layout.is_conj:
        return nested_values(tensor.detach().clone(), summarize)
    address = conversion.address_of(tensor, "print")
    element = layout.dtype
    places = [shown_places(size, summarize) for size in layout.shape]

    def read(dim: int, at: int) -> Any:
        if dim == layout.ndim:
            return conversion.read_one(at, element)
        step = layout.strides[dim] * element.itemsize
        return [
            OMITTED if place is OMITTED else read(dim + 1, at + place * step)
            for place in places[dim]
        ]

    return read(0, address)


def flat(values: Any) -> Iterator[Any]:
    """All numbers of nested lists."""
    if isinstance(values, list):
        for each in values:
            yield from flat(each)
    elif values is not OMITTED:
        yield values


# One element ---------------------------------------------------------------------------


class Formatter:
    """How the elements of one tensor are written, all to the same width."""

    def __init__(self, values: list[Any], is_floating: bool) -> None:
        self.is_floating = is_floating
        self.is_integral = True
        self.is_scientific = False
        self.width = 1
        if not is_floating:
            self.width = max([len(f"{value}") for value in values], default=1)
            return
        finite = [value for value in values if value != 0 and math.isfinite(value)]
        if not finite:
            return
        smallest, largest = min(map(abs, finite)), max(map(abs, finite))
        self.is_integral = all(value == math.ceil(value) for value in finite)
        if OPTIONS.sci_mode is None:
            ratio = largest / smallest
            self.is_scientific = ratio > 1000.0 or largest > 1.0e8 or smallest < 1.0e-4
        else:
            self.is_scientific = OPTIONS.sci_mode
        self.width = max(len(self.bare(value)) for value in finite)

    def bare(self, value: Any) -> str:
        """One number, not padded."""
        if not self.is_floating:
            return f"{value}"
        if self.is_scientific:
            return f"{value:.{OPTIONS.precision}e}"
        if self.is_integral:
            text = f"{value:.0f}"
            return text + "." if math.isfinite(value) else text
        return f"{value:.{OPTIONS.precision}f}"

    def format(self, value: Any) -> str:
        """One number, padded."""
        return self.bare(value).rjust(self.width)


class ComplexFormatter:
    """Two formatters, for the real and the imaginary parts."""

    def __init__(self, values: list[complex]) -> None:
        self.real = Formatter([value.real for value in values], True)
        self.imaginary = Formatter([value.imag for value in values], True)
        self.width = self.real.width + self.imaginary.width + 1

    def format(self, value: complex) -> str:
        """One number, its real part padded."""
        real = self.real.format(value.real)
        imaginary = (self.imaginary.format(value.imag) + "j").lstrip()
        return real + (imaginary if imaginary[0] in "+-" else "+" + imaginary)


# Layout on the page ----------------------------------------------------------------------


def vector_text(values: list[Any], indent: int, formatter: Any, summarize: bool) -> str:
    """Numbers of the last dim, in lines of the width that is set."""
    per_line = max(1, math.floor((OPTIONS.linewidth - indent) / (formatter.width + 2)))
    if summarize and not OPTIONS.edgeitems:
        texts = ["..."]
    else:
        texts = [" ..." if each is OMITTED else formatter.format(each) for each in values]
    lines = [", ".join(texts[n : n + per_line]) for n in range(0, len(texts), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def block_text(values: Any, ndim: int, indent: int, write: Callable[[list[Any], int], str]) -> str:
    """Nested lists, inner dims set off by line breaks."""
    if ndim == 1:
        return write(values, indent)
    parts = [
        "..." if each is OMITTED else block_text(each, ndim - 1, indent + 1, write)
        for each in values
    ]
    return "[" + ("," + "\n" * (ndim - 1) + " " * (indent + 1)).join(parts) + "]"


def contents(tensor: Tensor, indent: int) -> str:
    """The elements, without the name and the rest."""
    layout = tensor._layout
    summarize = layout.n_elements > OPTIONS.threshold
    values = nested_values(tensor, summarize)
    numbers = list(flat(values))
    formatter: Any = (
        ComplexFormatter(numbers)
        if layout.dtype.is_complex
        else Formatter(numbers, layout.dtype.is_floating_point)
    )
    if not layout.shape:
        return str(formatter.format(values))
    return block_text(
        values, layout.ndim, indent,
        lambda row, place: vector_text(row, place, formatter, summarize),
    )  # fmt: skip


def with_suffixes(text: str, suffixes: list[str], indent: int, force_newline: bool = False) -> str:
    """dtype=, grad_fn= and so on behind the contents, on a line of their own where they must."""
    parts = [text]
    length = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if force_newline or length + len(suffix) + 2 > OPTIONS.linewidth:
            parts.append(",\n" + " " * indent + suffix)
            length = indent + len(suffix)
            force_newline = False
        else:
            parts.append(", " + suffix)
            length += len(suffix) + 2
    return "".join(parts) + ")"


def repr_of(tensor: Tensor, *, tensor_contents: str | None = None) -> str:
    """repr(tensor)."""
    layout = tensor._layout
    name = type(tensor).__name__
    prefix = "tensor(" if name in ("Tensor", "Parameter") else f"{name}("
    element, default = layout.dtype, promotion.default_dtype()
    suffixes: list[str] = []
    text = tensor_contents
    shape = f"size={tuple(layout.shape)}"
    if layout.device.type == "meta":
        suffixes += ["device='meta'", shape]
        if element is not default:
            suffixes.append(f"dtype={element}")
        text = "..." if text is None else text
    elif not layout.n_elements:
        if layout.ndim != 1:
            suffixes.append(shape)
        if element is not default:
            suffixes.append(f"dtype={element}")
        text = "[]" if text is None else text
    else:
        if not OPTIONS.edgeitems:
            suffixes.append(shape)
        usual = (default, default.to_complex(), dtypes.int64, dtypes.bool_)
        if element not in usual:
            suffixes.append(f"dtype={element}")
        text = contents(tensor, len(prefix)) if text is None else text
    made_by = members.grad_fn(tensor)
    if made_by is not None:
        suffixes.append(f"grad_fn=<{type(made_by).__name__}>")
    elif members.requires_grad(tensor):
        suffixes.append("requires_grad=True")
    text = with_suffixes(prefix + text, suffixes, len(prefix))
    is_parameter = "_is_param" in (getattr(type(tensor), "_flag", ""), *tensor.__dict__)
    return f"Parameter({text})" if is_parameter and name != "Parameter" else text


def format_of(tensor: Tensor, specification: str) -> str:
    """format(tensor, specification): of its number where it has no dims."""
    if not tensor._layout.shape and type(tensor) is Tensor:
        return format(conversion.item(tensor), specification)
    if specification:
        raise TypeError(f"unsupported format string passed to {type(tensor).__name__}.__format__")
    return repr(tensor)
