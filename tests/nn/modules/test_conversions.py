"""Modules in other dtypes and places."""

import pytest

import flambeau as torch


@pytest.fixture
def future():
    yield torch.__future__
    torch.__future__.set_swap_module_params_on_conversion(False)
    torch.__future__.set_overwrite_module_params_on_conversion(False)


def test_new_parameters_where_they_are_asked_for(future):
    assert not future.get_overwrite_module_params_on_conversion()
    future.set_overwrite_module_params_on_conversion(True)
    layer = torch.nn.Linear(2, 2)
    layer(torch.ones(1, 2)).sum().backward()
    before = layer.weight
    layer.double()
    assert layer.weight is not before
    assert (layer.weight.grad.dtype, before.grad.dtype) == (torch.float64, torch.float32)


def test_parameters_are_swapped_where_that_is_asked_for(future):
    assert not future.get_swap_module_params_on_conversion()
    future.set_swap_module_params_on_conversion(True)
    layer = torch.nn.Linear(2, 2)
    before = layer.weight
    layer.double()
    assert layer.weight is before
    assert before.dtype is torch.float64
    layer.load_state_dict({"weight": torch.ones(2, 2), "bias": torch.zeros(2)})
    assert layer.weight is before
    assert before.tolist() == [[1, 1], [1, 1]]
    layer(torch.ones(1, 2, dtype=torch.float64)).sum().backward()
    assert before.grad.dtype is torch.float64


def test_memory_for_a_layer_without_makes_new_parameters():
    layer = torch.nn.Linear(2, 2, device="meta")
    before = layer.weight
    assert layer.to_empty(device="cpu") is layer
    assert before.is_meta
    assert not layer.weight.is_meta
    assert isinstance(layer.weight, torch.nn.Parameter)


def test_complex_modules_are_new():
    with pytest.warns(UserWarning, match="Complex modules are a new feature"):
        assert torch.nn.Linear(1, 1).to(torch.complex64).weight.is_complex()
