"""Accumulation into .grad: identity, aliasing, layout, threads."""

import threading

import pytest

import flambeau as torch


def leaf(*values):
    return torch.tensor(list(values), requires_grad=True)


def test_second_gradient_is_added_in_place():
    x = leaf(1.0)
    (x * 2.0).sum().backward()
    first = x.grad
    (x * 3.0).sum().backward()
    assert x.grad is first
    assert first.tolist() == [5.0]


def test_under_create_graph_it_is_added_out_of_place():
    x = leaf(2.0)
    (x * x).sum().backward()
    first = x.grad
    (x * x * x).sum().backward(create_graph=True)
    assert x.grad is not first
    assert first.tolist() == [4.0]
    assert x.grad.tolist() == [16.0]
    assert x.grad.requires_grad


def test_two_leaves_do_not_share_a_gradient():
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    (x + w).sum().backward()
    x.grad.mul_(5.0)
    assert x.grad.tolist() == [5.0, 5.0]
    assert w.grad.tolist() == [1.0, 1.0]


def test_a_gradient_that_nobody_else_holds_is_not_copied(monkeypatch):
    from flambeau.gradients import accumulate

    copies = []
    copy = accumulate._copy
    monkeypatch.setattr(accumulate, "_copy", lambda *given: copies.append(given) or copy(*given))
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    (x * w).sum().backward()
    assert x.grad.tolist() == [3.0, 4.0]
    matrix = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    (matrix.reshape((4,)) * 2.0).sum().backward()
    assert matrix.grad.tolist() == [[2.0, 2.0], [2.0, 2.0]]
    assert copies == []
    first, second = leaf(1.0), leaf(2.0)
    (first + second).sum().backward()  # both get the same cotangent, expanded
    assert len(copies) == 2


def test_the_given_gradient_is_not_taken():
    x = leaf(1.0, 2.0)
    given = torch.tensor([1.0, 2.0])
    (x + 0.0).backward(given)
    x.backward(given)
    assert given.tolist() == [1.0, 2.0]
    assert x.grad.tolist() == [2.0, 4.0]


def test_a_gradient_that_a_hook_kept_is_not_taken():
    x = leaf(1.0, 2.0)
    kept = []
    x.register_hook(kept.append)
    (x * 2.0).sum().backward()
    (x * 3.0).sum().backward()
    assert kept[0].tolist() == [2.0, 2.0]
    assert x.grad.tolist() == [5.0, 5.0]


def test_gradient_has_the_strides_of_a_dense_leaf():
    x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]).t().detach().requires_grad_()
    (x * torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])).sum().backward()
    assert x.stride() == (1, 3)
    assert x.grad.stride() == (1, 3)
    assert x.grad.tolist() == [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]


def test_gradient_of_an_expanded_leaf_is_contiguous():
    x = torch.tensor([1.0]).expand(3).detach().requires_grad_()
    (x * 2.0).sum().backward()
    assert x.grad.stride() == (1,)
    assert x.grad.tolist() == [2.0, 2.0, 2.0]


def test_grad_setter():
    x = leaf(1.0, 2.0)
    given = torch.tensor([5.0, 6.0])
    x.grad = given
    assert x.grad is given
    x.grad = None
    assert x.grad is None
    with pytest.raises(TypeError, match="assigned grad expected to be a Tensor or None but got"):
        x.grad = 3
    with pytest.raises(RuntimeError, match="can't assign Variable as its own grad"):
        x.grad = x
    with pytest.raises(RuntimeError, match=r"attempting to assign a gradient of size '\[1\]'"):
        x.grad = torch.tensor([1.0])
    with pytest.raises(RuntimeError, match="attempting to assign a gradient with dtype 'double'"):
        x.grad = torch.tensor([1.0, 2.0], dtype=torch.float64)


def test_a_frozen_leaf_gets_nothing():
    x, w = leaf(1.0), leaf(2.0)
    y = (x * w).sum()
    x.requires_grad_(False)
    y.backward()
    assert x.grad is None
    assert w.grad.tolist() == [1.0]


def test_grad_of_a_non_leaf_warns():
    y = leaf(1.0) * 2.0
    with pytest.warns(UserWarning, match="is not a leaf Tensor is being accessed"):
        assert y.grad is None


def test_threads_share_leaves():
    x = leaf(1.0, 2.0)
    x.grad = torch.tensor([0.0, 0.0])
    errors = []

    def work():
        try:
            for _ in range(20):
                (x * 2.0).sum().backward()
        except BaseException as error:
            errors.append(error)
            raise

    threads = [threading.Thread(target=work) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not errors
    assert x.grad.tolist() == [160.0, 160.0]
