"""Sizes of pools: windows that fit, and torch's errors about them.

Keeps     plain ints.
Touches   base.
Not here  the operators (largest.py, average.py)."""

from __future__ import annotations

from typing import Any, NamedTuple

from flambeau.base.errors import helped
from flambeau.base.layout import Layout
from flambeau.base.shapes import whole_numbers

Ints = tuple[int, ...]
_COUNTS = {1: "one int", 2: "two ints", 3: "three ints"}


def numbers(name: str, what: str, given: Any, count: int, default: Ints = ()) -> Ints:
    """A number for each spatial dim; `default` where none are given."""
    if type(given) is int:
        return (given,) * count
    if given is None and default:
        return default
    made = ints_of(name, what, given)
    if len(made) == 1:
        return made * count
    if not made and default:
        return default
    if len(made) != count:
        omitted = "either be omitted, " if default else "either "
        raise RuntimeError(
            f"{name}: {what} must {omitted}be a single int, or a tuple of {_COUNTS[count]}"
        )
    return made


_POSITIONS = {"kernel_size": 2, "stride": 3, "padding": 4, "dilation": 5}


def ints_of(name: str, what: str, given: Any) -> Ints:
    """The ints given, alone or in a sequence; raises torch's error for anything else."""
    is_one = not isinstance(given, (tuple, list, bool)) and hasattr(given, "__index__")
    return tuple(whole_numbers(name, what, _POSITIONS[what], (given,) if is_one else given))


class Windows(NamedTuple):
    """A checked pool: window of each dim and number of outputs."""

    kernel: Ints
    stride: Ints
    padding: Ints
    dilation: Ints
    sizes: Ints

    def in_three(self) -> tuple[Ints, Ints, Ints, Ints]:
        """Kernel, stride, padding, dilation in three dims."""
        lead = (1,) * (3 - len(self.kernel))
        none = (0,) * len(lead)
        return (
            lead + self.kernel, lead + self.stride, none + self.padding, lead + self.dilation
        )  # fmt: skip


def _named(values: Ints) -> str:
    names = ("dT", "dH", "dW")[3 - len(values) :]
    return " ".join(f"{name}: {value}" for name, value in zip(names, values, strict=True))


def pooled(
    name: str, input: Layout, count: int, kernel_size: Any, stride: Any, padding: Any,
    dilation: Any, ceil_mode: bool,
) -> Windows:  # fmt: skip
    """Windows over the last `count` dims of a layout."""
    kernel = numbers(name, "kernel_size", kernel_size, count)
    stride = numbers(name, "stride", stride, count, kernel)
    padding = numbers(name, "padding", padding, count)
    dilation = numbers(name, "dilation", dilation, count)
    check_dims(name, input, count)
    if any(each == 0 for each in stride):
        raise RuntimeError("stride should not be zero")
    if any(each <= 0 for each in kernel):
        raise RuntimeError(
            f"kernel size should be greater than zero, but got {_named(kernel).replace('d', 'k')}"
        )
    if any(each < 0 for each in stride):
        raise RuntimeError(f"stride should be greater than zero, but got {_named(stride)}")
    if any(each <= 0 for each in dilation):
        text = " ".join(
            f"dilation{axis}: {each}"
            for axis, each in zip("THW"[3 - count :], dilation, strict=True)
        )
        raise RuntimeError(f"dilation should be greater than zero, but got {text}")
    spatial = input.shape[-count:]
    sizes = tuple(
        _outputs(*each, ceil_mode)
        for each in zip(spatial, kernel, stride, padding, dilation, strict=True)
    )
    if any(size < 1 for size in sizes):
        channels = input.shape[-count - 1]
        given = "x".join(map(str, (channels, *spatial)))
        made = "x".join(map(str, (channels, *sizes)))
        raise RuntimeError(
            helped(
                f"Given input size: ({given}). Calculated output size: ({made}). Output size is "
                "too small",
                fix="a smaller kernel, or padding",
            )
        )
    return Windows(kernel, stride, padding, dilation, sizes)


def _outputs(
    size: int, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool
) -> int:
    """Windows of one dim; the last one begins in the dim or the padding before it."""
    if padding < 0:
        raise RuntimeError(f"pad must be non-negative, but got pad: {padding}")
    if padding > (dilation * (kernel - 1) + 1) // 2:
        raise RuntimeError(
            "pad should be at most half of effective kernel size, but got "
            f"pad={padding}, kernel_size={kernel} and dilation={dilation}"
        )
    room = size + 2 * padding - dilation * (kernel - 1) - 1
    outputs = (room + (stride - 1 if ceil_mode else 0)) // stride + 1
    if ceil_mode and (outputs - 1) * stride >= size + padding:
        outputs -= 1
    return outputs


def check_dims(name: str, input: Layout, count: int) -> None:
    """Refuse what has no channels or no places."""
    if input.ndim not in (count + 1, count + 2):
        raise RuntimeError(
            f"non-empty {count + 1}D or {count + 2}D (batch mode) tensor expected for input"
        )
    if 0 in input.shape[input.ndim - count - 1 :]:
        raise RuntimeError(
            f"Expected {count + 1}D or {count + 2}D (batch mode) tensor with optional 0 dim batch "
            f"size for input, but got:{list(input.shape)}"
        )


def wrong_count(name: str, count: int) -> str:
    """torch's sentence for other than `count` outputs."""
    if name.endswith("()"):
        return f"{name}: internal error: output_size.size() must be {count}"
    return f"{name}: output_size must be {count}"


def wrong_dims(name: str, input_shape: Any, count: int) -> str:
    """torch's sentence for other than channels, or a batch of them, before `count` dims."""
    but = "but got:" if name.endswith("()") else "but got"
    function = name.removesuffix("()")
    return f"{function}(): Expected {count + 1}D or {count + 2}D tensor, {but} {list(input_shape)}"


def adaptive_sizes(name: str, input: Layout, count: int, output_size: Any) -> Ints:
    """Outputs asked for; None: as many as there are places."""
    given = (output_size,) * count if isinstance(output_size, int) else tuple(output_size)
    given = given * count if len(given) == 1 else given
    if len(given) != count:
        raise RuntimeError(wrong_count(name, count))
    spatial = input.shape[-count:]
    sizes = tuple(
        size if each is None else int(each) for each, size in zip(given, spatial, strict=True)
    )
    if any(each < 0 for each in sizes):
        raise RuntimeError(
            f"{name}: elements of output_size must be greater than or equal to 0 but received "
            f"{{{', '.join(map(str, sizes))}}}"
        )
    if input.ndim not in (count + 1, count + 2):
        raise RuntimeError(wrong_dims(name, input.shape, count))
    of_places = name == "adaptive_avg_pool2d"  # which alone takes an image without channels
    for dim in range(input.ndim - count if of_places else 1, input.ndim):
        if input.shape[dim] == 0:
            raise RuntimeError(
                f"{name.removesuffix('()')}(): Expected input to have non-zero size for non-batch "
                f"dimensions, but input has sizes {list(input.shape)} with dimension {dim} being "
                "empty"
            )
    return sizes
