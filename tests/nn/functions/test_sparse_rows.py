"""Tables with sparse gradients."""

import pytest

import flambeau as torch


def table(**named):
    made = torch.nn.Embedding(5, 2, sparse=True, **named)
    with torch.no_grad():
        made.weight.copy_(torch.arange(10.0).reshape(5, 2))
    return made


def test_the_gradient_stores_a_row_for_each_that_was_read():
    made = table()
    made(torch.tensor([[1, 3], [1, 2]])).sum().backward()
    gradient = made.weight.grad
    assert gradient.is_sparse
    assert not gradient.is_coalesced()
    assert gradient._indices().tolist() == [[1, 3, 1, 2]]
    assert gradient.coalesce().values().tolist() == [[2.0, 2.0], [1.0, 1.0], [1.0, 1.0]]


def test_gradients_add_up_whatever_their_kind():
    made = table()
    made(torch.tensor([1])).sum().backward()
    made(torch.tensor([2])).sum().backward()
    assert made.weight.grad._indices().tolist() == [[1, 2]]
    made.weight.sum().backward()
    assert made.weight.grad.tolist() == [[1, 1], [2, 2], [2, 2], [1, 1], [1, 1]]
    made(torch.tensor([0])).sum().backward()
    assert made.weight.grad[0].tolist() == [2.0, 2.0]
    made.zero_grad()
    total = made(torch.tensor([2])).sum() + made.weight.sum() + made(torch.tensor([1])).sum()
    total.backward()
    assert made.weight.grad.tolist() == [[1, 1], [2, 2], [2, 2], [1, 1], [1, 1]]


def test_the_padding_row_gets_none():
    made = table(padding_idx=1)
    made(torch.tensor([1, 3, 1])).sum().backward()
    assert made.weight.grad._indices().tolist() == [[3]]
    made.zero_grad(set_to_none=False)
    assert made.weight.grad._nnz() == 0


@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_bags(mode):
    grads = []
    for sparse in (True, False):
        torch.manual_seed(0)
        bag = torch.nn.EmbeddingBag(6, 2, mode=mode, sparse=sparse)
        bag(torch.tensor([1, 2, 3, 1]), torch.tensor([0, 3])).pow(2).sum().backward()
        grads.append(bag.weight.grad.to_dense())
    assert torch.allclose(*grads)


def test_second_order_hooks_and_refusals():
    made = table()
    seen = []
    made.weight.register_hook(lambda gradient: seen.append(gradient.is_sparse))
    (gradient,) = torch.autograd.grad(made(torch.tensor([1])).pow(2).sum(), made.weight)
    assert gradient.to_dense()[1].tolist() == [4.0, 6.0]
    assert seen == [True]
    with pytest.raises(RuntimeError, match="scale_grad_by_freq not supported with sparse"):
        table(scale_grad_by_freq=True)(torch.tensor([1])).sum().backward()
    made(torch.tensor([1])).sum().backward()
    with pytest.raises(NotImplementedError, match="Could not run 'aten::"):
        torch.nn.utils.clip_grad_value_(made.parameters(), 1.0)
