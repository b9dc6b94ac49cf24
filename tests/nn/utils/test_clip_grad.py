"""Gradients clipped as torch clips them, without reading anything."""

import math

import pytest

import flambeau as torch
from flambeau.nn import utils


def weight(*gradient):
    made = torch.ones(len(gradient), requires_grad=True)
    made.grad = torch.tensor(list(gradient))
    return made


def test_the_norm_is_of_all_gradients_together():
    one, other, none = weight(3.0), weight(0.0, 4.0), torch.ones(1, requires_grad=True)
    total = utils.clip_grad_norm_([one, other, none], 1.0)
    assert total.item() == 5.0
    factor = 1.0 / (5.0 + 1e-6)
    assert one.grad.item() == pytest.approx(3 * factor, rel=1e-6)
    assert other.grad.tolist() == pytest.approx([0.0, 4 * factor], rel=1e-6)
    assert utils.clip_grad_norm_(iter([one]), 10.0, norm_type=math.inf).item() < 1
    assert utils.clip_grad_norm_([], 1.0).item() == 0.0


def test_clipping_waits_for_nothing():
    given = weight(3.0, 4.0)
    utils.clip_grad_norm_([given], 1.0)
    given.grad.sum().item()
    with torch.debug.counts() as seen:
        utils.clip_grad_norm_([given], 1.0)
        utils.clip_grad_value_([given], 0.5)
    assert seen.segments_flushed <= 1  # leaving the block runs what is pending


def test_what_is_not_finite_can_be_an_error():
    with pytest.raises(
        RuntimeError, match=r"The total norm of order 2\.0 for gradients from `param"
    ):
        utils.clip_grad_norm_([weight(math.inf)], 1.0, error_if_nonfinite=True)


def test_values_are_cut_off():
    given = weight(3.0, -4.0, 0.5)
    utils.clip_grad_value_(given, 1.0)
    assert given.grad.tolist() == [1.0, -1.0, 0.5]


def test_vectors_and_back():
    shapes = [torch.ones(2), torch.zeros(1, 2)]
    vector = utils.parameters_to_vector(shapes)
    assert vector.tolist() == [1, 1, 0, 0]
    utils.vector_to_parameters(torch.arange(4.0), shapes)
    assert shapes[1].tolist() == [[2.0, 3.0]]


def test_a_generator_that_is_spent_is_worth_a_warning():
    layer = torch.nn.Linear(1, 1)
    parameters = layer.parameters()
    list(parameters)
    with pytest.warns(UserWarning, match="`parameters` is an empty generator"):
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
