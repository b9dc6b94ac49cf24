"""Random tensors: rand, randn, randint, randperm, bernoulli, multinomial ... and name_() fills.

Keeps     a draw happens when the call is made, whatever is pending, so streams are torch's; a
          target that nothing pending touches is filled where it lies, others through fresh memory.
Touches   fills, fills_sampled, tensor (creation, functions), gradients' in-place rules.
Not here  the streams themselves (fills.py), dropout as an operator (nn.functional), draws whose
          parameters are tensors (sampled_tensors.py)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from flambeau.base import dtypes, promotion
from flambeau.base.dtypes import dtype
from flambeau.base.errors import helped
from flambeau.base.layout import Layout, contiguous
from flambeau.engine import callsite, stream
from flambeau.gradients import members
from flambeau.gradients.modes import is_grad_enabled, no_grad
from flambeau.gradients.recording import record as gradient_record
from flambeau.gradients.recording.drawn import attach_drawn, rename
from flambeau.random import fills, fills_sampled
from flambeau.random.generator import Generator, default_generator
from flambeau.tensor import Tensor, creation, functions, index_bounds
from flambeau.tensor.arguments import refuses
from flambeau.tensor.inplace import check_writable, stored
from flambeau.tensor.public.fills import like

Fill = Callable[[Generator, int, int, Layout], None]


def _drawn(given: Layout, generator: Generator | None, fill: Fill) -> Tensor:
    """Fresh dense tensor of a layout, filled in memory order."""
    made = creation.empty_layout(given)
    if made._storage.block is not None and given.n_elements:
        fill(generator or default_generator, made._storage.block.address, given.n_elements, given)
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
    chosen = element or (out.dtype if out is not None else default) or promotion.default_dtype()
    given = contiguous(shape, chosen, creation.chosen_device(where))
    made = _drawn(given, generator, fill)
    if out is not None:
        if out._layout.shape != shape:
            creation.resize(out, contiguous(shape, out._layout.dtype, out._layout.device))
        return stored(made, out, None)
    if requires_grad:
        members.set_requires_grad(made, True, members.OF_NEW_TENSORS)
    return made


_UNHEEDED: Final = {"layout", "pin_memory", "names", "memory_format"}


def _refuse_others(name: str, named: dict[str, Any]) -> None:
    for other in named.keys() - _UNHEEDED if named else ():
        raise TypeError(f"{name}() got an unexpected keyword argument '{other}'")


def _uniform(low: float, high: float) -> Fill:
    def fill(generator: Generator, address: int, count: int, given: Layout) -> None:
        element = given.dtype
        if element.is_complex:
            element, count = element.to_real(), 2 * count
        fills.fill_uniform(generator, address, count, element, low, high)

    return fill


def _normal(mean: float, std: float) -> Fill:
    def fill(generator: Generator, address: int, count: int, given: Layout) -> None:
        element, spread = given.dtype, std
        if element.is_complex:
            element, count, spread = element.to_real(), 2 * count, std / 2**0.5
        fills.fill_normal(generator, address, count, element, mean, spread, given.is_contiguous)

    return fill


@refuses("rand")
def rand(*size: Any, **named: Any) -> Tensor:
    """Uniform draws from [0, 1).

    >>> import flambeau as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.rand(2)
    tensor([0.4963, 0.7682])
    """
    size = (named.pop("size"),) if "size" in named else size
    return _fresh(size, "rand", named, _uniform(0.0, 1.0))


@refuses("randn")
def randn(*size: Any, **named: Any) -> Tensor:
    """Draws from the standard normal distribution."""
    size = (named.pop("size"),) if "size" in named else size
    return _fresh(size, "randn", named, _normal(0.0, 1.0))


def _filled_like(name: str, input: Tensor, named: dict[str, Any], fill: Fill) -> Tensor:
    asked = [named.pop(each, None) for each in ("dtype", "device", "memory_format")]
    given = like(input, name, *asked)
    generator = named.pop("generator", None)
    requires_grad = named.pop("requires_grad", False)
    _refuse_others(name, named)
    made = _drawn(given, generator, fill)
    if requires_grad:
        members.set_requires_grad(made, True)
    return made


@refuses("rand_like")
def rand_like(input: Tensor, **named: Any) -> Tensor:
    """Uniform draws, shaped as the input."""
    return _filled_like("rand_like", input, named, _uniform(0.0, 1.0))


@refuses("randn_like")
def randn_like(input: Tensor, **named: Any) -> Tensor:
    """Normal draws, shaped as the input."""
    return _filled_like("randn_like", input, named, _normal(0.0, 1.0))


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
        creation.resize(out, contiguous((n,), out.dtype, out.device))
        out.copy_(made)
        return out
    if element is not dtypes.int64 or requires_grad:
        made = made.to(element)
        if requires_grad:
            members.set_requires_grad(made, True, members.OF_NEW_TENSORS)
        return made
    index_bounds.know(made, 0, max(n - 1, 0))
    return made


@refuses("normal")
def normal(mean: Any = 0.0, std: Any = 1.0, size: Any = None, **named: Any) -> Tensor:
    """Normals of given means and standard deviations, numbers or tensors."""
    if size is not None or not (isinstance(mean, Tensor) or isinstance(std, Tensor)):
        return _fresh((tuple(size or ()),), "normal", named, _normal(float(mean), float(std)))
    generator = named.pop("generator", None)
    out = named.pop("out", None)
    tensors = [each for each in (mean, std) if isinstance(each, Tensor)]
    if isinstance(std, Tensor) and std.numel() and bool((std < 0).any()):
        raise RuntimeError("normal expects all elements of std >= 0.0")
    if len(tensors) == 2:
        from flambeau.base.shapes import broadcast_shapes

        shape = broadcast_shapes(tuple(mean.shape), tuple(std.shape))
    else:
        shape = tuple(tensors[0].shape)
    spread = 1.0 if isinstance(std, Tensor) else float(std)
    made = _drawn(contiguous(shape, tensors[0].dtype), generator, _normal(0.0, spread))
    with no_grad():
        if isinstance(std, Tensor):
            made = made * std
        made = made + mean
    number = isinstance(mean, Tensor) + 2 * isinstance(std, Tensor)
    attach_drawn(made, f"NormalBackward{number}", *tensors)
    if out is not None:
        out.copy_(made)
        return out
    return made


def _bytes_drawn(
    shape: tuple[int, ...], generator: Generator | None, fill: Callable[[Generator, int, int], None]
) -> Tensor:
    """Fresh bool tensor of draws in logical order."""
    made = creation.empty_layout(contiguous(shape, dtypes.bool_))
    if made._layout.n_elements:
        address = made._storage.block.address
        fill(generator or default_generator, address, made._layout.n_elements)
    return made


def keep_mask(shape: tuple[int, ...], chance: float, generator: Generator | None = None) -> Tensor:
    """Bool tensor, True with probability `chance`: dropout's draws (two words an element)."""
    return _bytes_drawn(
        shape, generator, lambda g, address, n: fills.fill_bernoulli(g, address, n, chance)
    )


def _each(chances: Tensor, generator: Generator | None) -> Tensor:
    from flambeau.tensor import conversion

    if chances.numel() and not bool(((chances >= 0) & (chances <= 1)).all()):
        raise RuntimeError("Expected p_in >= 0 && p_in <= 1 to be true, but got false.")
    wide = dtypes.float64 if chances.dtype is dtypes.float64 else dtypes.float32
    flat = chances.detach().to(wide).contiguous()
    source = conversion.address_of(flat, "bernoulli()") if flat.numel() else 0
    return _bytes_drawn(
        tuple(flat.shape),
        generator,
        lambda g, address, n: fills.fill_bernoulli_each(g, address, n, source, wide),
    )


def bernoulli(
    input: Tensor, p: float | None = None, *, generator: Generator | None = None, out: Any = None
) -> Tensor:
    """0 or 1 with the chances in `input` (or with chance p everywhere), in input's dtype."""
    if p is None and not input.is_floating_point():
        raise NotImplementedError(
            '"bernoulli_tensor_cpu_self_" not implemented for '
            f"'{promotion.SCALAR_TYPE_NAMES[input.dtype.name]}'"
        )
    mask = _each(input, generator) if p is None else keep_mask(tuple(input.shape), p, generator)
    made = mask.to(input.dtype)
    if p is None:
        attach_drawn(made, "BernoulliBackward0", input)
    else:
        attach_drawn(made, "NotImplemented", input, refused="bernoulli")
    if out is not None:
        out.copy_(made)
        return out
    return made


# In place ------------------------------------------------------------------------


def _fill_in_place(target: Tensor, generator: Generator | None, fill: Fill, kind: str) -> Tensor:
    """Fill a tensor with draws in memory order; where it lies if nothing pending touches it. Its
    node, where gradients are recorded, is called `kind`."""
    given = target._layout
    check_writable(given)
    storage = target._storage
    current = stream.LOCAL.stream
    has_history = target._autograd is not None or target._base is not None
    if (
        storage.segment is None
        and storage.block is not None
        and given.is_dense
        and given.low == 0
        and not (has_history and current.grad_enabled)
    ):
        if given.n_elements:
            address = storage.block.address + target._offset * given.itemsize
            fill(generator or default_generator, address, given.n_elements, given)
        gradient_record.bump(target, current.site or callsite.site())
        return target
    order = sorted(range(given.ndim), key=lambda d: -abs(given.strides[d]))
    shape = tuple(given.shape[d] for d in order)
    # The fill sees whether the target is contiguous, which decides between streams.
    made = creation.empty_layout(contiguous(shape, given.dtype, given.device))
    if made._storage.block is not None and given.n_elements:
        fill(generator or default_generator, made._storage.block.address, given.n_elements, given)
    back = [order.index(d) for d in range(given.ndim)]
    target.copy_(functions.permute(made, tuple(back)) if given.ndim > 1 else made)
    return _renamed(target, kind)


def uniform_(
    self: Tensor, from_: float = 0.0, to: float = 1.0, *, generator: Generator | None = None,
    **named: Any,
) -> Tensor:  # fmt: skip
    """Fill with uniform draws from [from, to)."""
    low = float(named.pop("from", from_))
    return _fill_in_place(self, generator, _uniform(low, float(to)), "UniformBackward0")


def normal_(
    self: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Fill with normal draws."""
    return _fill_in_place(self, generator, _normal(float(mean), float(std)), "NormalBackward0")


def random_(self: Tensor, *bounds: Any, generator: Generator | None = None, **named: Any) -> Tensor:
    """Fill with integers: random_(), random_(to), random_(from, to)."""
    low: int | None = None
    high: int | None = None
    if len(bounds) == 1 and not named:
        low, high = 0, bounds[0]
    elif bounds or named:
        low = named.get("from", bounds[0] if bounds else 0)
        high = named.get("to", bounds[1] if len(bounds) > 1 else None)

    def fill(generator: Generator, address: int, count: int, given: Layout) -> None:
        draw = fills.random_bounds(given.dtype, low, high)
        fills.fill_integers(generator, address, count, given.dtype, draw)

    number = 2 if high is None else 1 if len(bounds) == 1 else 0
    return _fill_in_place(self, generator, fill, f"RandomBackward{number}")


def bernoulli_(self: Tensor, p: Any = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Fill with 0 and 1: with chance p, or with the chances in a tensor."""
    if isinstance(p, Tensor):
        made = _each(functions.expand(p, tuple(self.shape)), generator)
        return _renamed(self.copy_(made), "BernoulliBackward1")
    order = sorted(range(self.ndim), key=lambda d: -abs(self._layout.strides[d]))
    mask = keep_mask(tuple(self.shape[d] for d in order), float(p), generator)
    back = tuple(order.index(d) for d in range(self.ndim))
    made = functions.permute(mask, back) if self.ndim > 1 else mask
    return _renamed(self.copy_(made), "BernoulliBackward2")


def _renamed(written: Tensor, kind: str) -> Tensor:
    """A tensor just written, whose node, where gradients are recorded, is called `kind`."""
    return rename(written, kind) if is_grad_enabled() else written


def _sampled(function: Callable[..., None], *values: float) -> Fill:
    def fill(generator: Generator, address: int, count: int, given: Layout) -> None:
        function(generator, address, count, given.dtype, *values)

    return fill


def exponential_(self: Tensor, lambd: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with waiting times of rate lambd."""
    fill = _sampled(fills_sampled.fill_exponential, float(lambd))
    return _fill_in_place(self, generator, fill, "ExponentialBackward0")


def geometric_(self: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
    """Fill with numbers of trials up to the first success."""
    fill = _sampled(fills_sampled.fill_geometric, float(p))
    return _fill_in_place(self, generator, fill, "GeometricBackward0")


def cauchy_(
    self: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Fill with Cauchy draws."""
    fill = _sampled(fills_sampled.fill_cauchy, float(median), float(sigma))
    return _fill_in_place(self, generator, fill, "CauchyBackward0")


def log_normal_(
    self: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Generator | None = None
) -> Tensor:
    """Fill with exponentials of normal draws."""
    fill = _sampled(fills_sampled.fill_log_normal, float(mean), float(std))
    return _fill_in_place(self, generator, fill, "LogNormalBackward0")
