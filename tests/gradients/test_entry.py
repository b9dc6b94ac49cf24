"""backward() and grad(): arguments, errors, results."""

import math

import pytest

import flambeau as torch


def leaf(*values):
    return torch.tensor(list(values), requires_grad=True)


def test_backward_of_a_scalar():
    x = leaf(2.0, 3.0)
    (x * x * x).sum().backward()
    assert x.grad.tolist() == [12.0, 27.0]


def test_backward_twice_needs_retain_graph():
    x = leaf(1.0, 2.0)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [4.0, 8.0]
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward()
    assert x.grad.tolist() == [4.0, 8.0]


def test_a_graph_that_saved_nothing_runs_again():
    x = leaf(1.0)
    y = (x + 1.0).sum()
    y.backward()
    y.backward()
    assert x.grad.tolist() == [2.0]


def test_a_number_that_mul_saved_counts_as_saved():
    x = leaf(1.0)
    y = (x * 3.0).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_nothing_requires_grad():
    with pytest.raises(
        RuntimeError, match="element 0 of tensors does not require grad and does not have a grad_fn"
    ):
        torch.tensor([1.0]).sum().backward()


def test_implicit_gradient_only_for_scalars():
    with pytest.raises(
        RuntimeError, match="grad can be implicitly created only for scalar outputs"
    ):
        (leaf(1.0, 2.0) * 2.0).backward()


def test_one_element_of_any_rank_is_a_scalar():
    x = torch.tensor([[4.0]], requires_grad=True)
    (x * x).backward()
    assert x.grad.tolist() == [[8.0]]


def test_gradient_argument():
    x = leaf(1.0, 2.0)
    (x * x).backward(gradient=torch.tensor([1.0, 10.0]))
    assert x.grad.tolist() == [2.0, 40.0]


def test_gradient_of_a_wrong_shape():
    with pytest.raises(
        RuntimeError,
        match=r"Mismatch in shape: grad_output\[0\] has a shape of torch.Size\(\[3\]\) and "
        r"output\[0\] has a shape of torch.Size\(\[2\]\)",
    ):
        (leaf(1.0, 2.0) * 2.0).backward(torch.tensor([1.0, 1.0, 1.0]))


def test_gradient_of_another_dtype_is_converted():
    x = leaf(1.0, 2.0)
    (x * x).backward(torch.tensor([1.0, 2.0], dtype=torch.float64))
    assert x.grad.dtype is torch.float32
    assert x.grad.tolist() == [2.0, 8.0]


def test_several_outputs():
    x = leaf(1.0, 2.0)
    y = x * x
    torch.autograd.backward([y.sum(), (y * 2.0).sum()])
    assert x.grad.tolist() == [6.0, 12.0]


def test_inputs_limits_accumulation():
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    (x * w).sum().backward(inputs=[w])
    assert x.grad is None
    assert w.grad.tolist() == [1.0, 2.0]


def test_inputs_may_be_non_leaves():
    x = leaf(1.0, 2.0)
    y = x * 2.0
    (y * y).sum().backward(inputs=y)
    assert y.grad.tolist() == [4.0, 8.0]
    assert x.grad is None


def test_empty_inputs():
    with pytest.raises(RuntimeError, match=r"`inputs` argument to `backward\(\)` cannot be empty."):
        leaf(1.0).sum().backward(inputs=[])
    with pytest.raises(RuntimeError, match=r"`inputs` argument to `grad\(\)` cannot be empty."):
        torch.autograd.grad(leaf(1.0).sum(), [])


def test_grad_returns_and_does_not_accumulate():
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    found = torch.autograd.grad((x * w).sum(), [x, w])
    assert [each.tolist() for each in found] == [[3.0, 4.0], [1.0, 2.0]]
    assert x.grad is None
    assert w.grad is None


def test_grad_of_an_intermediate():
    x = leaf(1.0, 2.0)
    y = x * 3.0
    (found,) = torch.autograd.grad((y * y).sum(), y)
    assert found.tolist() == [6.0, 12.0]


def test_grad_with_respect_to_the_output_itself():
    y = leaf(1.0).sum()
    (found,) = torch.autograd.grad(y, y)
    assert found.tolist() == 1.0


def test_grad_of_intermediate_and_leaf_together():
    x = leaf(1.0, 2.0)
    y = x * 3.0
    first, second = torch.autograd.grad((y * y).sum(), [y, x])
    assert first.tolist() == [6.0, 12.0]
    assert second.tolist() == [18.0, 36.0]


def test_same_input_twice():
    x = leaf(2.0)
    first, second = torch.autograd.grad((x * x).sum(), [x, x])
    assert first.tolist() == second.tolist() == [4.0]


def test_unused_inputs():
    x, unused = leaf(1.0), leaf(1.0)
    with pytest.raises(
        RuntimeError,
        match="The differentiated Tensor at index 0 appears to not have been used in the graph",
    ):
        torch.autograd.grad(x.sum(), unused)
    assert torch.autograd.grad(x.sum(), [unused], allow_unused=True) == (None,)
    (zeros,) = torch.autograd.grad(x.sum(), unused, materialize_grads=True)
    assert zeros.tolist() == [0.0]
    with pytest.raises(ValueError, match="Expected allow_unused to be True or not passed"):
        torch.autograd.grad(x.sum(), unused, materialize_grads=True, allow_unused=False)


def test_input_without_gradient():
    with pytest.raises(
        RuntimeError, match="One of the differentiated Tensors does not require grad"
    ):
        torch.autograd.grad(leaf(1.0).sum(), torch.tensor([1.0]))


def test_batched_gradients():
    """Rows of the first dim of grad_outputs, one backward pass each."""
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    found = torch.autograd.grad(x * w, [x, w], torch.eye(2), is_grads_batched=True)
    assert [each.tolist() for each in found] == [[[3.0, 0.0], [0.0, 4.0]], [[1.0, 0.0], [0.0, 2.0]]]
    found = torch.autograd.grad(
        (x**3).sum(), x, torch.ones(2), is_grads_batched=True, create_graph=True
    )
    assert torch.autograd.grad(found[0].sum(), x)[0].tolist() == [12.0, 24.0]
    with pytest.raises(RuntimeError, match="If `is_grads_batched=True`, we interpret the first"):
        torch.autograd.grad(x * w, x, torch.ones(2), is_grads_batched=True)
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar"):
        torch.autograd.grad(x.sum(), x, is_grads_batched=True)


def test_higher_orders():
    x = torch.tensor(2.0, requires_grad=True)
    (first,) = torch.autograd.grad(x * x * x * x, x, create_graph=True)
    (second,) = torch.autograd.grad(first, x, create_graph=True)
    (third,) = torch.autograd.grad(second, x)
    assert (first.tolist(), second.tolist(), third.tolist()) == (32.0, 48.0, 48.0)
    assert first.requires_grad
    assert not third.requires_grad
    assert x.grad is None


@pytest.mark.parametrize(
    ("shape", "operand"),
    [((4, 5, 1), (1, 5, 1)), ((4, 5, 1), (4, 1, 1)), ((4, 5, 1), (1,)), ((4, 5, 1), ()),
     ((3, 4, 1, 1), (4, 1, 1)), ((3, 4, 5, 1), (1, 4, 1, 1)), ((2, 1, 1), (1, 1, 1))],
)  # fmt: skip
def test_gradient_of_what_was_broadcast_beside_dims_of_one(shape, operand):
    x = torch.randn(operand, requires_grad=True)
    weight = torch.arange(float(math.prod(shape))).reshape(shape)
    (x * weight).sum().backward()
    assert x.grad.shape == x.shape
    assert torch.equal(x.grad, weight.sum_to_size(operand))


def test_gradient_through_broadcasting():
    x = torch.tensor([[1.0], [2.0]], requires_grad=True)
    row = leaf(1.0, 2.0, 3.0)
    (x * row).sum().backward()
    assert x.grad.tolist() == [[6.0], [6.0]]
    assert row.grad.tolist() == [3.0, 3.0, 3.0]


def test_gradient_through_promotion():
    x = torch.tensor([1.0, 2.0], dtype=torch.float16, requires_grad=True)
    w = torch.tensor([3.0, 4.0], dtype=torch.float32, requires_grad=True)
    (x * w).sum().backward()
    assert x.grad.dtype is torch.float16
    assert w.grad.dtype is torch.float32
    assert x.grad.tolist() == [3.0, 4.0]
    assert w.grad.tolist() == [1.0, 2.0]


def test_a_derivative_of_zero_is_no_missing_one():
    """relu's second: torch's zeros, where an unused tensor has none."""
    x, other = (torch.tensor([1.0, -2.0], requires_grad=True) for _ in range(2))
    (first,) = torch.autograd.grad(torch.relu(x * 3).sum(), x, create_graph=True)
    assert torch.autograd.grad(first.sum(), x, retain_graph=True)[0].tolist() == [0.0, 0.0]
    found = torch.autograd.grad(first.sum(), (x, other), allow_unused=True)
    assert (found[0].tolist(), found[1]) == ([0.0, 0.0], None)


class Nothing(torch.autograd.Function):
    """Twice x, without a derivative."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return None


def test_a_user_function_that_returns_none_means_it():
    x = torch.tensor([1.0, -2.0], requires_grad=True)
    assert torch.autograd.grad(Nothing.apply(x).sum(), x, allow_unused=True) == (None,)
    with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
        torch.autograd.grad(Nothing.apply(x).sum(), x)


def test_backward_leaves_zeros_where_derivatives_vanish():
    """relu's second derivative is zero, not missing; what is not in the graph stays None."""
    x = torch.ones(2, requires_grad=True)
    other = torch.ones(2, requires_grad=True)
    (slope,) = torch.autograd.grad(x.relu().sum() + other.detach().sum(), x, create_graph=True)
    slope.sum().backward()
    assert x.grad.tolist() == [0.0, 0.0]
    assert other.grad is None


def test_nothing_accumulates_where_a_user_function_gives_none():
    x = torch.ones(2, requires_grad=True)
    Nothing.apply(x).sum().backward()
    assert x.grad is None
