"""Draws whose parameters are tensors: poisson, binomial, gamma and Dirichlet variables.

Keeps     parameters are read in logical order; draws have the gradients torch gives them.
Touches   fills_sampled, tensor (creation, functions, conversion).
Not here  draws with numbers as parameters (tensors.py)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.base.layout import contiguous
from flambeau.base.shapes import broadcast_shapes
from flambeau.gradients.recording.drawn import attach_drawn
from flambeau.random import fills_sampled
from flambeau.random.generator import Generator, default_generator
from flambeau.tensor import Tensor, conversion, creation, functions


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
        fill(generator or default_generator, address, given.n_elements, given.dtype, *sources)
    return made


def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Poisson counts with the rates in `input`."""
    if input.numel() and not bool((input >= 0).all()):
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
    made = _from_values("poisson()", (input,), generator, fills_sampled.fill_poisson)
    return attach_drawn(made, "PoissonBackward0", input)  # type: ignore[no-any-return]


def binomial(count: Tensor, prob: Tensor, generator: Generator | None = None) -> Tensor:
    """Successes among `count` trials of chance `prob`, element by element."""
    if count.dtype is not prob.dtype:
        raise ValueError(
            f"Binomial distribution requires count and prob to be the same dtype, got "
            f"{count.dtype} and {prob.dtype}"
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
    return functions.standard_gamma(input, drawn)  # type: ignore[no-any-return]


def _sample_dirichlet(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Shares that sum to 1 along the last dim, Dirichlet variables of the concentrations."""
    length = input.shape[-1] if input.ndim else 1

    def fill(generator: Generator, address: int, count: int, *rest: Any) -> None:
        fills_sampled.fill_dirichlet(generator, address, count // length, length, *rest)

    drawn = _from_values("_sample_dirichlet()", (input,), generator, fill)
    if not input.requires_grad:
        return drawn
    return functions.sample_dirichlet(input, drawn)  # type: ignore[no-any-return]
