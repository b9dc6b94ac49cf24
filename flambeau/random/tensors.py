"""Random tensors: rand, randn, randint, randperm, bernoulli, multinomial ... and name_() fills.

Keeps     a draw happens when the call is made, whatever is pending, so streams are torch's; a
          target that nothing pending touches is filled where it lies, others through fresh memory.
Touches   fills, fills_sampled, tensor (creation, functions), gradients' in-place rules.
Not here  the streams themselves (fills.py), dropout as an operator (nn.functional), draws whose
          parameters are tensors (sampled_tensors.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flambeau.base import dtypes, promotion, shapes
from flambeau.base.dtypes import dtype
from flambeau.base.errors import helped
from flambeau.base.layout import Layout, contiguous
from flambeau.gradients import members
from flambeau.gradients.recording import record as gradient_record
from flambeau.gradients.recording.drawn import attach_drawn
from flambeau.ops.define import not_implemented, type_name
from flambeau.random import fills
from flambeau.random.generator import Generator
from flambeau.random.in_place import (
    Fill,
    fill_fresh,
    fill_in_place,
    keep_mask,
    keep_mask_of,
    normals,
    uniform,
)
from flambeau.tensor import Tensor, creation, index_bounds
from flambeau.tensor.arguments import refuses
from flambeau.tensor.inplace import stored
from flambeau.tensor.public.fills import like


def _drawn(given: Layout, generator: Generator | None, fill: Fill) -> Tensor:
    """Fresh dense tensor of a layout, filled in memory order."""
    made = creation.empty_layout(given)
    fill_fresh(made, generator, fill)
    return made


def _fresh(
    size: tuple[Any, ...],
    name: str,
    named: dict[str, Any],
    fill: Fill,
    default: dtype | None = None,
) -> Tensor:
    """A factory function's result: size, dtype, device, generator, out=, requires_grad."""
    generator = named.pop("generator", None)
    out = named.pop("out", None)
    element = named.pop("dtype", None)
    if element is not None:
        element = dtypes.asked_for(element, name)
    where = named.pop("device", None)
    requires_grad = named.pop("requires_grad", False)
    _refuse_others(name, named)
    shape = creation.sizes_of(size, name)
    kind = element or default or promotion.default_dtype()
    if out is not None:
        return _into(out, name, shape, element, generator, fill)
    made = _drawn(contiguous(shape, kind, creation.chosen_device(where)), generator, fill)
    if requires_grad:
        members.set_requires_grad(made, requires_grad, members.OF_NEW_TENSORS)
    return made


def _into(
    out: Any, name: str, shape: tuple[int, ...], element: dtype | None,
    generator: Generator | None, fill: Fill,
) -> Tensor:  # fmt: skip
    """Draws into out=, which keeps its strides where it has the shape."""
    if not isinstance(out, Tensor):
        raise TypeError(f"{name}(): argument 'out' must be Tensor, not {type(out).__name__}")
    if element is not None and element is not out.dtype:
        raise RuntimeError(
            f"dtype {type_name(element)} does not match dtype of out parameter "
            f"({type_name(out.dtype)})"
        )
    gradient_record.check_out(name, (), out)
    if out._layout.shape != shape:
        creation.resize(out, contiguous(shape, out._layout.dtype, out._layout.device))
    return fill_in_place(out, generator, fill, name)


def _refuse_others(name: str, named: dict[str, Any]) -> None:
    for other in named.keys() - {"layout", "pin_memory", "names", "memory_format"}:
        raise TypeError(f"{name}() got an unexpected keyword argument '{other}'")


@refuses("rand")
def rand(*size: Any, **named: Any) -> Tensor:
    """Uniform draws from [0, 1).

    >>> import flambeau as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.rand(2)
    tensor([0.4963, 0.7682])
    """
    size = (named.pop("size"),) if "size" in named else size
    return _fresh(size, "rand", named, uniform(0.0, 1.0))


@refuses("randn")
def randn(*size: Any, **named: Any) -> Tensor:
    """Draws from the standard normal distribution."""
    size = (named.pop("size"),) if "size" in named else size
    return _fresh(size, "randn", named, normals(0.0, 1.0))


def _filled_like(name: str, input: Tensor, named: dict[str, Any], fill: Fill) -> Tensor:
    asked = [named.pop(each, None) for each in ("dtype", "device", "memory_format")]
    given = like(input, name, *asked)
    generator = named.pop("generator", None)
    requires_grad = named.pop("requires_grad", False)
    _refuse_others(name, named)
    made = _drawn(given, generator, fill)
    if requires_grad:
        members.set_requires_grad(made, requires_grad)
    return made


@refuses("rand_like")
def rand_like(input: Tensor, **named: Any) -> Tensor:
    """Uniform draws, shaped as the input."""
    return _filled_like("rand_like", input, named, uniform(0.0, 1.0))


@refuses("randn_like")
def randn_like(input: Tensor, **named: Any) -> Tensor:
    """Normal draws, shaped as the input."""
    return _filled_like("randn_like", input, named, normals(0.0, 1.0))


def _bounds(arguments: Sequence[Any]) -> tuple[int, int, Any]:
    """(low, high, the rest) of randint's two forms."""
    if len(arguments) >= 2 and not isinstance(arguments[1], (tuple, list)):
        return int(arguments[0]), int(arguments[1]), arguments[2:]
    return 0, int(arguments[0]), arguments[1:]


def _integers(low: int, high: int) -> Fill:
    if low >= high:
        raise RuntimeError(
            f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}"
        )

    def fill(generator: Generator, address: int, count: int, given: Layout) -> None:
        draw = fills.random_bounds(given.dtype, low, high)
        fills.fill_integers(generator, address, count, given.dtype, draw)

    return fill


@refuses("randint")
def randint(*arguments: Any, **named: Any) -> Tensor:
    """Integers from [low, high), int64 unless said otherwise: randint(high, size) or
    randint(low, high, size)."""
    values = list(arguments)
    if "high" in named:
        low = named.pop("low", values.pop(0) if values else 0)
        values = [low, named.pop("high"), *values]
    low, high, rest = _bounds(values) if values else (0, 0, ())
    sizes = named.get("size", rest[0] if rest else None)
    if not isinstance(sizes, (tuple, list)):
        kinds = [type(each).__name__ for each in values]
        kinds += [f"{key}={type(value).__name__}" for key, value in named.items()]
        raise TypeError(
            helped(
                f"randint() received an invalid combination of arguments - got "
                f"({', '.join(kinds)}), but expected one of:",
                expected="(int high, tuple of ints size) or (int low, int high, tuple of ints "
                "size)",
                fix="randint(low, high, (1,)) draws one number",
            )
        )
    named.pop("size", None)
    fill = _integers(low, high)
    made = _fresh((tuple(sizes),), "randint", named, fill, dtypes.int64)
    if made.dtype is dtypes.int64:
        index_bounds.know(made, low, high - 1)
    return made


def randint_like(input: Tensor, *arguments: Any, **named: Any) -> Tensor:
    """Integers from [low, high), shaped as the input."""
    values = list(arguments)
    if "high" in named:
        values = [named.pop("low", values[0] if values else 0), named.pop("high")]
    low, high, _ = _bounds(values)
    return _filled_like("randint_like", input, named, _integers(low, high))


def randperm(n: int, **named: Any) -> Tensor:
    """0 to n - 1 in random order."""
    element = dtypes.asked_for(named.get("dtype") or dtypes.int64, "randperm")
    fills.check_permutation(n, element)
    named["dtype"] = dtypes.int64

    def fill(generator: Generator, address: int, count: int, given: Layout) -> None:
        fills.fill_permutation(generator, address, count)

    out = named.pop("out", None)
    requires_grad = named.pop("requires_grad", False)
    made = _fresh((n,), "randperm", named, fill)
    if out is not None:
        if out._layout.shape != (n,):
            creation.resize(out, contiguous((n,), out.dtype, out.device))
        out.copy_(made)
        return out
    if element is not dtypes.int64 or requires_grad:
        made = made.to(element)
        if requires_grad:
            members.set_requires_grad(made, requires_grad, members.OF_NEW_TENSORS)
        return made
    index_bounds.know(made, 0, max(n - 1, 0))
    return made


@refuses("normal")
def normal(mean: Any = 0.0, std: Any = 1.0, size: Any = None, **named: Any) -> Tensor:
    """Normals of given means and standard deviations, numbers or tensors."""
    if size is not None or not (isinstance(mean, Tensor) or isinstance(std, Tensor)):
        return _fresh((tuple(size or ()),), "normal", named, normals(float(mean), float(std)))
    generator = named.pop("generator", None)
    out = named.pop("out", None)
    tensors = [each for each in (mean, std) if isinstance(each, Tensor)]
    if isinstance(std, Tensor) and std.numel() and bool((std < 0).any()):
        raise RuntimeError("normal expects all elements of std >= 0.0")
    shape = shapes.broadcast_shapes(*[tuple(each.shape) for each in tensors])
    fill = normals(0.0, 1.0 if isinstance(std, Tensor) else float(std))
    if out is not None:
        made = _into(out, "normal", shape, None, generator, fill)
    else:
        made = _drawn(contiguous(shape, tensors[0].dtype), generator, fill)
    # Two operators in place, as torch has them: the result has the first tensor's dtype.
    if isinstance(std, Tensor):
        made.mul_(std.detach())
    made.add_(mean.detach() if isinstance(mean, Tensor) else mean)
    number = isinstance(mean, Tensor) + 2 * isinstance(std, Tensor)
    return attach_drawn(made, f"NormalBackward{number}", *tensors)


def bernoulli(
    input: Tensor, p: float | None = None, *, generator: Generator | None = None, out: Any = None
) -> Tensor:
    """0 or 1 with the chances in `input` (or with chance p everywhere), in input's dtype."""
    if p is None and not input.is_floating_point():
        which = "self" if input.dtype.is_complex else "p"
        raise not_implemented(f"bernoulli_tensor_cpu_{which}_", input.dtype)
    if p is not None and input.dtype.is_complex:
        raise not_implemented("bernoulli_scalar_cpu_", input.dtype)
    mask = (
        keep_mask_of(input, generator) if p is None else keep_mask(tuple(input.shape), p, generator)
    )
    made = mask.to(input.dtype)
    if p is None:
        attach_drawn(made, "BernoulliBackward0", input)
    else:
        attach_drawn(made, "NotImplemented", input, refused="bernoulli")
    return stored(made, out, None)
