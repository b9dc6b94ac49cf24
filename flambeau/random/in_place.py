"""uniform_(), normal_() and their kin: draws into tensors that exist, and what fills one.

Keeps     draws follow memory order; everything is checked before a word is drawn, so that a refused
          call leaves the generator where it was. A target that nothing pending touches is filled
          where it lies, others through fresh memory.
Touches   fills, fills_sampled, tensor (creation, functions), gradients' in-place rules.
Not here  fresh tensors (tensors.py), the streams themselves (fills.py)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.base import dtypes
from flambeau.base.errors import helped
from flambeau.base.layout import Layout, contiguous
from flambeau.engine import callsite, stream
from flambeau.gradients.modes import is_grad_enabled
from flambeau.gradients.recording import inplace as history_rules
from flambeau.gradients.recording import record as gradient_record
from flambeau.gradients.recording.drawn import rename
from flambeau.ops.define import not_implemented
from flambeau.random import fills, fills_sampled
from flambeau.random.generator import Generator, default_generator
from flambeau.tensor import Tensor, conversion, creation, functions
from flambeau.tensor.inplace import check_writable

Fill = Callable[[Generator, int, int, Layout], None]


def chosen(generator: Any) -> Generator:
    """The generator given, or the default one."""
    if generator is None:
        return default_generator
    if not isinstance(generator, Generator):
        raise TypeError(
            helped(
                f"argument 'generator' must be torch.Generator, not {type(generator).__name__}",
                fix="torch.Generator().manual_seed(0)",
            )
        )
    return generator


def fill_fresh(made: Tensor, generator: Generator | None, fill: Fill) -> None:
    """Fill a dense tensor that nobody else has seen; an empty one draws nothing, but is checked."""
    given = made._layout
    source = chosen(generator)
    if made._storage.block is not None:
        fill(source, made._storage.block.address, given.n_elements, given)
    elif not given.n_elements:
        fill(source, 0, 0, given)


def uniform(low: float, high: float) -> Fill:
    """Uniform draws from [low, high)."""

    def fill(generator: Generator, address: int, count: int, given: Layout) -> None:
        element = given.dtype
        if element.is_complex:
            element, count = element.to_real(), 2 * count
        fills.fill_uniform(generator, address, count, element, low, high)

    return fill


def normals(mean: float, std: float) -> Fill:
    """Normal draws; a complex one shares its variance between its parts."""

    def fill(generator: Generator, address: int, count: int, given: Layout) -> None:
        element, spread = given.dtype, std
        if element.is_complex:
            element, count, spread = element.to_real(), 2 * count, std / 2**0.5
        fills.fill_normal(generator, address, count, element, mean, spread, given.is_contiguous)

    return fill


def memory_order(given: Layout) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(dims from the largest stride to the smallest, the way back)."""
    order = sorted(range(given.ndim), key=lambda dim: -abs(given.strides[dim]))
    return tuple(order), tuple(order.index(dim) for dim in range(given.ndim))


def fill_in_place(target: Tensor, generator: Generator | None, fill: Fill, kind: str) -> Tensor:
    """Fill a tensor with draws in memory order; where it lies if nothing pending touches it. Its
    node, where gradients are recorded, is called `kind`."""
    given = target._layout
    source = chosen(generator)
    check_writable(given)
    storage = target._storage
    current = stream.LOCAL.stream
    has_history = target._autograd is not None or target._base is not None
    if has_history and current.grad_enabled:
        history_rules.check_writable(target)
    elif (
        storage.segment is None and storage.block is not None and given.is_dense and given.low == 0
    ):
        address = storage.block.address + target._offset * given.itemsize
        fill(source, address, given.n_elements, given)
        gradient_record.bump(target, current.site or callsite.site())
        return target
    order, back = memory_order(given)
    shape = tuple(given.shape[dim] for dim in order)
    made = creation.empty_layout(contiguous(shape, given.dtype, given.device))
    # The fill sees whether the target is contiguous, which decides between streams.
    fill_fresh(made, source, lambda g, address, count, _: fill(g, address, count, given))
    return _renamed(target.copy_(functions.permute(made, back) if given.ndim > 1 else made), kind)


def _renamed(written: Tensor, kind: str) -> Tensor:
    """A tensor just written, whose node, where gradients are recorded, is called `kind`."""
    return rename(written, kind) if is_grad_enabled() else written


def fill_bytes(
    shape: tuple[int, ...], generator: Generator | None, fill: Callable[[Generator, int, int], None]
) -> Tensor:
    """Fresh bool tensor of draws in logical order."""
    made = creation.empty_layout(contiguous(shape, dtypes.bool_))
    fill_fresh(made, generator, lambda g, address, count, _: fill(g, address, count))
    return made


def keep_mask(shape: tuple[int, ...], chance: float, generator: Generator | None = None) -> Tensor:
    """Bool tensor, True with probability `chance`: dropout's draws (two words an element)."""
    return fill_bytes(
        shape, generator, lambda g, address, n: fills.fill_bernoulli(g, address, n, chance)
    )


def keep_mask_of(chances: Tensor, generator: Generator | None) -> Tensor:
    """Bool tensor, each element True with the chance at its place, drawn in logical order."""
    if chances.numel() and not bool(((chances >= 0) & (chances <= 1)).all()):
        raise RuntimeError("Expected p_in >= 0 && p_in <= 1 to be true, but got false.")
    wide = dtypes.float64 if chances.dtype is dtypes.float64 else dtypes.float32
    flat = chances.detach().to(wide).contiguous()
    source = conversion.address_of(flat, "bernoulli()") if flat.numel() else 0
    return fill_bytes(
        tuple(flat.shape),
        generator,
        lambda g, address, n: fills.fill_bernoulli_each(g, address, n, source, wide),
    )


def uniform_(
    self: Tensor, from_: float = 0.0, to: float = 1.0, *, generator: Generator | None = None,
    **named: Any,
) -> Tensor:  # fmt: skip
    """Fill with uniform draws from [from, to)."""
    low = float(named.pop("from", from_))
    return fill_in_place(self, generator, uniform(low, float(to)), "UniformBackward0")


def normal_(
    self: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Fill with normal draws."""
    return fill_in_place(self, generator, normals(float(mean), float(std)), "NormalBackward0")


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
    return fill_in_place(self, generator, fill, f"RandomBackward{number}")


def bernoulli_(self: Tensor, p: Any = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Fill with 0 and 1: with chance p, or with the chances in a tensor."""
    given = self._layout
    check_writable(given)
    if stream.LOCAL.stream.grad_enabled:
        history_rules.check_writable(self)
    if given.dtype.is_complex:
        kind = "tensor_cpu_self" if isinstance(p, Tensor) else "scalar_cpu"
        raise not_implemented(f"bernoulli_{kind}_", given.dtype)
    order, back = memory_order(given)
    if isinstance(p, Tensor):
        chances = functions.expand(p, given.shape)
        if given.ndim > 1:
            chances = functions.permute(chances, order)
        mask, number = keep_mask_of(chances, generator), 1
    else:
        shape = tuple(given.shape[dim] for dim in order)
        mask, number = keep_mask(shape, float(p), generator), 2
    written = self.copy_(functions.permute(mask, back) if given.ndim > 1 else mask)
    return _renamed(written, f"BernoulliBackward{number}")


def _sampled(function: Callable[..., None], *values: float) -> Fill:
    def fill(generator: Generator, address: int, count: int, given: Layout) -> None:
        function(generator, address, count, given.dtype, *values)

    return fill


def exponential_(self: Tensor, lambd: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with waiting times of rate lambd."""
    fill = _sampled(fills_sampled.fill_exponential, float(lambd))
    return fill_in_place(self, generator, fill, "ExponentialBackward0")


def geometric_(self: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
    """Fill with numbers of trials up to the first success."""
    fill = _sampled(fills_sampled.fill_geometric, float(p))
    return fill_in_place(self, generator, fill, "GeometricBackward0")


def cauchy_(
    self: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Fill with Cauchy draws."""
    fill = _sampled(fills_sampled.fill_cauchy, float(median), float(sigma))
    return fill_in_place(self, generator, fill, "CauchyBackward0")


def log_normal_(
    self: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Generator | None = None
) -> Tensor:
    """Fill with exponentials of normal draws."""
    fill = _sampled(fills_sampled.fill_log_normal, float(mean), float(std))
    return fill_in_place(self, generator, fill, "LogNormalBackward0")
