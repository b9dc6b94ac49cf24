"""Pruning: names, counts, pruning again, removal."""

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.nn.utils import prune


def test_names_counts_and_removal():
    torch.manual_seed(0)
    layer = nn.Linear(4, 3)
    prune.random_unstructured(layer, "weight", amount=0.25)
    assert [name for name, _ in layer.named_parameters()] == ["bias", "weight_orig"]
    assert [name for name, _ in layer.named_buffers()] == ["weight_mask"]
    assert int(layer.weight_mask.sum()) == 9
    layer(torch.ones(1, 4)).sum().backward()
    assert torch.equal(layer.weight_orig.grad, layer.weight_mask)
    weight = layer.weight.detach().clone()
    assert prune.is_pruned(layer)
    prune.remove(layer, "weight")
    assert not prune.is_pruned(layer)
    assert torch.equal(layer.weight, weight)
    assert [name for name, _ in layer.named_parameters()] == ["bias", "weight"]
    with pytest.raises(ValueError, match="has to be pruned before"):
        prune.remove(layer, "weight")


def test_the_least_go_and_pruning_again_prunes_what_is_left():
    layer = nn.Linear(6, 1, bias=False)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[1.0, -2.0, 3.0, -4.0, 5.0, -6.0]]))
    prune.l1_unstructured(layer, "weight", amount=2)
    assert layer.weight.tolist() == [[0.0, 0.0, 3.0, -4.0, 5.0, -6.0]]
    prune.l1_unstructured(layer, "weight", amount=0.5)
    assert layer.weight.tolist() == [[0.0, 0.0, 0.0, 0.0, 5.0, -6.0]]
    hook = next(iter(layer._forward_pre_hooks.values()))
    assert len(hook) == 2


def test_whole_slices():
    layer = nn.Linear(2, 3, bias=False)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[3.0, 3.0], [1.0, 1.0], [2.0, 2.0]]))
    prune.ln_structured(layer, "weight", amount=1, n=2, dim=0)
    assert layer.weight.tolist() == [[3.0, 3.0], [0.0, 0.0], [2.0, 2.0]]
    prune.ln_structured(layer, "weight", amount=0.5, n=1, dim=0)
    assert layer.weight.tolist() == [[3.0, 3.0], [0.0, 0.0], [0.0, 0.0]]
    other = nn.Conv2d(2, 4, 3)
    prune.random_structured(other, "weight", amount=2, dim=0)
    assert int(other.weight_mask.sum((1, 2, 3)).ne(0).sum()) == 2


def test_several_parameters_as_one():
    one, two = nn.Linear(2, 1, bias=False), nn.Linear(2, 1, bias=False)
    with torch.no_grad():
        one.weight.copy_(torch.tensor([[1.0, 4.0]]))
        two.weight.copy_(torch.tensor([[2.0, 3.0]]))
    pairs = [(one, "weight"), (two, "weight")]
    prune.global_unstructured(pairs, pruning_method=prune.L1Unstructured, amount=2)
    assert (one.weight.tolist(), two.weight.tolist()) == ([[0.0, 4.0]], [[0.0, 3.0]])
    prune.global_unstructured(pairs, pruning_method=prune.L1Unstructured, amount=1)
    assert (one.weight.tolist(), two.weight.tolist()) == ([[0.0, 4.0]], [[0.0, 0.0]])


def test_given_masks_and_mistakes():
    layer = prune.custom_from_mask(nn.Linear(2, 1), "bias", torch.tensor([0]))
    assert layer.bias.tolist() == [0.0]
    with pytest.raises(ValueError, match="should be smaller than the number of parameters"):
        prune.l1_unstructured(nn.Linear(2, 1), "weight", amount=5)
    with pytest.raises(ValueError, match=r"float in the range \[0, 1\]"):
        prune.random_unstructured(nn.Linear(2, 1), "weight", amount=1.5)
