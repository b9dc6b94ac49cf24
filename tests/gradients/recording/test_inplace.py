"""In-place writes and views: refusals, rebased histories."""

import pytest

import flambeau as torch


def leaf(*values):
    return torch.tensor(list(values), requires_grad=True)


LEAF = "a leaf Variable that requires grad is being used in an in-place operation."
VIEW_OF_LEAF = "a view of a leaf Variable that requires grad is being used in an in-place operation"


def test_leaves_are_refused():
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match=LEAF):
        x.add_(1.0)
    with pytest.raises(RuntimeError, match=VIEW_OF_LEAF):
        x.select(0, 0).add_(1.0)
    assert x.tolist() == [1.0, 2.0]
    with torch.no_grad():
        x.add_(1.0)
    assert x.tolist() == [2.0, 3.0]


def test_history_of_the_target():
    x = leaf(1.0, 2.0)
    y = x * 3.0
    assert y.mul_(2.0) is y
    assert y.grad_fn.name() == "MulBackward0"
    y.sum().backward()
    assert x.grad.tolist() == [6.0, 6.0]


def test_target_whose_old_value_the_gradient_reads():
    x, w = leaf(2.0, 3.0), leaf(5.0, 7.0)
    y = x * 1.0
    y.mul_(w)
    y.sum().backward()
    assert x.grad.tolist() == [5.0, 7.0]
    assert w.grad.tolist() == [2.0, 3.0]


def test_target_multiplied_by_itself():
    x = leaf(2.0, 3.0)
    y = x * 1.0
    y.mul_(y)
    y.sum().backward()
    assert x.grad.tolist() == [4.0, 6.0]


def test_output_saved_by_an_inplace_operator():
    x = leaf(0.0, 1.0)
    y = x * 1.0
    y.exp_()
    y.sum().backward()
    assert x.grad.tolist() == pytest.approx([1.0, 2.7182817], rel=1e-6)


def test_a_plain_tensor_becomes_part_of_the_graph():
    w = leaf(2.0, 3.0)
    total = torch.tensor([1.0, 1.0])
    total.mul_(w)
    assert total.requires_grad
    total.sum().backward()
    assert w.grad.tolist() == [1.0, 1.0]


def test_write_through_a_view_rebases_the_base():
    x = leaf(1.0, 2.0, 3.0)
    base = x * 1.0
    base.select(0, 1).mul_(5.0)
    assert type(base.grad_fn).__name__ == "CopySlices"
    (base * base).sum().backward()
    assert x.grad.tolist() == [2.0, 100.0, 6.0]


def test_copy_into_a_view():
    x, w = leaf(1.0, 2.0, 3.0), torch.tensor(7.0, requires_grad=True)
    base = x * 1.0
    base.select(0, 1).copy_(w)
    (base * torch.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert x.grad.tolist() == [1.0, 0.0, 100.0]
    assert w.grad.tolist() == 10.0


def test_base_without_gradient_before():
    x = leaf(1.0, 2.0, 3.0)
    out = torch.tensor([0.0, 0.0, 0.0, 0.0])
    out.select(0, 0).copy_(x.select(0, 0))
    for k in range(1, 4):
        out.select(0, k).copy_(out.select(0, k - 1) * 0.5 + x.select(0, k - 1))
    (out * out).sum().backward()
    assert out.tolist() == [1.0, 1.5, 2.75, 4.375]
    assert x.grad.tolist() == [13.90625, 9.875, 8.75]


def test_zero_and_fill_cut_the_gradient():
    x = leaf(1.0, 2.0)
    y = x * 2.0
    y.zero_()
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 0.0]


def test_views_made_before_follow():
    x = leaf(2.0, 3.0)
    base = torch.tensor([1.0, 1.0])
    view = base.select(0, 0)
    base.mul_(x)
    assert view.requires_grad
    assert view.grad_fn.name() == "AsStridedBackward0"
    (view * 10.0).sum().backward()
    assert x.grad.tolist() == [10.0, 0.0]


def test_sibling_views_follow():
    x = leaf(2.0, 3.0)
    base = x * 1.0
    left, right = base.narrow(0, 0, 1), base.narrow(0, 0, 2)
    left.mul_(4.0)
    right.sum().backward()
    assert x.grad.tolist() == [4.0, 1.0]


def test_overlapping_stale_view():
    x = torch.tensor([2.0], requires_grad=True)
    base = torch.tensor([3.0])
    wide = base.expand(4)
    base.mul_(x)
    wide.sum().backward()
    assert x.grad.tolist() == [12.0]


def test_non_contiguous_base():
    x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True)
    base = x.t().clone()
    base.select(0, 1).mul_(10.0)
    (base * base).sum().backward()
    assert x.grad.tolist() == [[2.0, 400.0, 6.0], [8.0, 1000.0, 12.0]]


def test_second_order_through_copy_slices():
    x = leaf(1.0, 2.0, 3.0)
    base = x * x
    base.select(0, 1).mul_(x.select(0, 2))
    (first,) = torch.autograd.grad((base * base).sum(), x, create_graph=True)
    # sum of x0^4 + x1^4 x2^2 + x2^4
    assert first.tolist() == [4.0, 288.0, 204.0]
    (second,) = torch.autograd.grad(first.sum(), x)
    assert second.tolist() == [12.0, 432.0 + 192.0, 192.0 + 32.0 + 108.0]


def test_views_made_in_no_grad_mode():
    x = leaf(1.0, 2.0)
    base = x * 1.0
    with torch.no_grad():
        view = base.select(0, 0)
    with pytest.raises(RuntimeError, match="A view was created in no_grad mode and is being"):
        view.mul_(2.0)
    with torch.no_grad():
        view.mul_(2.0)
    assert base.tolist() == [2.0, 2.0]


def test_one_of_several_views():
    first, _ = (torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True) * 1.0).unbind()
    with pytest.raises(RuntimeError, match="Output 0 of Unbind is a view and is being modified"):
        first.add_(1.0)


def test_retain_grad_follows_the_value():
    x = leaf(1.0, 2.0)
    y = x * 2.0
    y.retain_grad()
    y.mul_(3.0)
    assert y.retains_grad
    (y * 5.0).sum().backward()
    assert y.grad.tolist() == [5.0, 5.0]


def test_hooks_stay_with_the_value_before():
    x = leaf(1.0, 2.0)
    y = x * 2.0
    seen = []
    y.register_hook(lambda grad: seen.append(grad.tolist()))
    y.mul_(3.0)
    y.sum().backward()
    assert seen == [[3.0, 3.0]]


def test_out_is_refused():
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="arguments don't support automatic differentiation"):
        torch.add(x, x, out=torch.tensor([0.0, 0.0]))
