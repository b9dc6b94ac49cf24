"""Draws whose parameters are tensors: counts, gamma and Dirichlet variables, categories.

Keeps     parameters are read in logical order; draws have the gradients torch gives them.
Touches   fills_sampled, tensor (creation, functions, conversion).
Not here  draws with numbers as parameters (tensors.py)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from flambeau.base import dtypes, promotion
from flambeau.base.devices import META
from flambeau.base.errors import helped
from flambeau.base.layout import contiguous
from flambeau.base.shapes import broadcast_shapes
from flambeau.gradients.recording.drawn import attach_drawn
from flambeau.ops.define import type_name
from flambeau.random import fills_sampled
from flambeau.random.generator import Generator
from flambeau.random.in_place import chosen, exponential_
from flambeau.tensor import Tensor, conversion, creation, functions, index_bounds
from flambeau.tensor.inplace import stored


def _from_values(
    name: str, inputs: tuple[Tensor, ...], generator: Generator | None, fill: Callable[..., None]
) -> Tensor:
    """Draws whose parameters are the inputs' elements, in logical order."""
    flat = [each.detach().contiguous() for each in inputs]
    given = flat[0]._layout
    made = creation.empty_layout(contiguous(given.shape, given.dtype))
    if given.n_elements:
        sources = [conversion.address_of(each, name) for each in flat]
        address = made._storage.block.address
        fill(chosen(generator), address, given.n_elements, given.dtype, *sources)
    return made


def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Poisson counts with the rates in `input`."""
    if input.numel() and not bool((input >= 0).all()):
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
    made = _from_values("poisson()", (input,), generator, fills_sampled.fill_poisson)
    return attach_drawn(made, "PoissonBackward0", input)


def binomial(count: Tensor, prob: Tensor, generator: Generator | None = None) -> Tensor:
    """Successes among `count` trials of chance `prob`, element by element."""
    if count.dtype is not prob.dtype:
        given, wanted = (promotion.SCALAR_TYPE_NAMES[each.dtype.name] for each in (prob, count))
        raise RuntimeError(
            helped(
                f"Found dtype {given} but expected {wanted}",
                given=f"counts of {count.dtype}, chances of {prob.dtype}",
                fix=f"prob.to({count.dtype})",
            )
        )
    shape = broadcast_shapes(tuple(count.shape), tuple(prob.shape))
    inputs = functions.expand(count, shape), functions.expand(prob, shape)
    made = _from_values("binomial()", inputs, generator, fills_sampled.fill_binomial)
    attach_drawn(made, "NotImplemented", count, prob, refused="binomial")
    return made


def _standard_gamma(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Gamma variables with the shapes in `input` and rate 1."""
    drawn = _from_values("_standard_gamma()", (input,), generator, fills_sampled.fill_gamma)
    if not input.requires_grad:
        return drawn
    return functions.standard_gamma(input, drawn)


def _sample_dirichlet(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Shares that sum to 1 along the last dim, Dirichlet variables of the concentrations."""
    length = input.shape[-1] if input.ndim else 1

    def fill(generator: Generator, address: int, count: int, *rest: Any) -> None:
        fills_sampled.fill_dirichlet(generator, address, count // length, length, *rest)

    drawn = _from_values("_sample_dirichlet()", (input,), generator, fill)
    if not input.requires_grad:
        return drawn
    return functions.sample_dirichlet(input, drawn)


_WIDE: Final = (dtypes.float32, dtypes.float64)
_NO_PROBABILITY: Final = "probability tensor contains either `inf`, `nan` or element < 0"
_NO_WEIGHTS: Final = "invalid multinomial distribution (sum of probabilities <= 0)"


def multinomial(
    input: Tensor, num_samples: int, replacement: bool = False, *,
    generator: Generator | None = None, out: Any = None,
) -> Tensor:  # fmt: skip
    """Indices drawn with the (unnormalised) probabilities in the last dim."""
    if input.ndim not in (1, 2):
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if not input.is_floating_point():
        raise RuntimeError("multinomial only supports floating-point dtypes for input, got: "
                           f"{promotion.SCALAR_TYPE_NAMES[input.dtype.name]}")  # fmt: skip
    if out is not None and out.dtype is not dtypes.int64:
        raise RuntimeError(f"multinomial expects Long tensor out, got: {type_name(out.dtype)}")
    if num_samples <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and num_samples > input.shape[-1]:
        raise RuntimeError(
            "cannot sample n_sample > prob_dist.size(-1) samples without replacement"
        )
    weights = input.detach()
    given = weights._layout
    is_plain = given.is_contiguous and not given.is_conj and given.n_elements
    if num_samples == 1 and is_plain and given.dtype in _WIDE and given.device is not META:
        return stored(_once(weights, generator), out)
    if bool((~(weights >= 0) | (weights == float("inf"))).any()):
        raise RuntimeError(
            _NO_PROBABILITY
            if num_samples == 1 or not replacement
            else "invalid multinomial distribution (encountering probability entry < 0)"
        )
    if bool((weights.sum(-1) == 0).any()):
        raise RuntimeError(_NO_WEIGHTS)
    if replacement and num_samples > 1:
        made = _with_replacement(weights, num_samples, generator)
    else:
        q = exponential_(functions.clone(weights), generator=generator)
        shares = weights / q
        if num_samples == 1:
            made = functions.argmax(shares, -1, True)
        else:
            made = functions.topk(shares, num_samples)[1]
    return stored(made, out)


def _once(weights: Tensor, generator: Generator | None) -> Tensor:
    """One category for each row of contiguous weights."""
    shape, element = weights._layout.shape, weights._layout.dtype
    source = conversion.address_of(weights, "multinomial()")
    made = creation.empty_layout(contiguous((*shape[:-1], 1), dtypes.int64))
    address = made._storage.block.address
    fills_sampled.fill_multinomial_once(
        chosen(generator), address, made._layout.n_elements, shape[-1], element, source
    )
    first = conversion.read_one(address, dtypes.int64)
    if first < 0:
        raise RuntimeError(_NO_PROBABILITY if first == -1 else _NO_WEIGHTS)
    index_bounds.know(made, 0, shape[-1] - 1)
    return made


def _with_replacement(weights: Tensor, draws: int, generator: Generator | None) -> Tensor:
    wide = dtypes.float64 if weights.dtype is dtypes.float64 else dtypes.float32
    flat = weights.to(wide).contiguous()
    rows = flat.shape[0] if flat.ndim == 2 else 1
    categories = flat.shape[-1]
    source = conversion.address_of(flat, "multinomial()")
    shape = (rows, draws) if flat.ndim == 2 else (draws,)
    made = creation.empty_layout(contiguous(shape, dtypes.int64))
    fills_sampled.fill_multinomial(
        chosen(generator), made._storage.block.address, rows, categories, draws,
        wide, source,
    )  # fmt: skip
    return made
