"""Saved values: versions, hooks."""

import pytest

import flambeau as torch

CHANGED = "one of the variables needed for gradient computation has been modified by an inplace"


def leaf(*values):
    return torch.tensor(list(values), requires_grad=True)


def test_message_is_torchs_and_names_both_lines():
    x = leaf(1.0, 2.0, 3.0)
    y = x * 1.0
    loss = (y * y).sum()
    y.add_(1.0)
    with pytest.raises(RuntimeError) as caught:
        loss.backward()
    first, *rest = str(caught.value).splitlines()
    assert first.startswith(
        "one of the variables needed for gradient computation has been modified by an inplace "
        "operation: [torch.FloatTensor [3]], which is output 0 of Mul, is at version 1; expected "
        "version 0 instead. Hint: enable anomaly detection to find the operation that failed to "
        "compute its gradient, with torch.autograd.set_detect_anomaly(True, check_nan=False)."
    )
    assert "saved at" in rest[0]
    assert "last written at" in rest[0]
    assert rest[0].count("test_saved.py:") == 2


def test_saved_output():
    x = leaf(0.0, 1.0)
    y = x.sigmoid()
    y.mul_(2.0)
    with pytest.raises(RuntimeError, match="which is output 0 of Sigmoid, is at version 1"):
        y.sum().backward()


def test_leaf_written_under_no_grad():
    x = leaf(1.0)
    loss = (x * x).sum()
    with torch.no_grad():
        x.add_(1.0)
    with pytest.raises(RuntimeError, match=CHANGED) as caught:
        loss.backward()
    assert "[1]] is at version 1; expected version 0" in str(caught.value)


def test_pack_hooks_must_not_write():
    x = leaf(1.0)
    hooks = torch.autograd.graph.saved_tensors_hooks(lambda each: each.mul_(2), lambda each: each)
    with hooks, pytest.raises(RuntimeError, match="pack hook is modifying its input in place"):
        x * x


def test_write_through_detach_is_noticed():
    x = leaf(1.0, 2.0)
    y = x.sigmoid()
    y.detach().zero_()
    assert y.tolist() == [0.0, 0.0]
    with pytest.raises(RuntimeError, match=CHANGED):
        y.sum().backward()


def test_write_through_data_is_not():
    w = leaf(1.0, -2.0)
    y = (w * w).exp()
    w.data.clamp_(-0.1, 0.1)
    y.sum().backward()
    assert w.grad is not None


def test_write_through_a_view_is_noticed():
    x = leaf(1.0, 2.0)
    y = x * 1.0
    linear, square = (y * 2.0).sum(), (y * y).sum()
    with torch.no_grad():
        y.select(0, 0).add_(1.0)
    (found,) = torch.autograd.grad(linear, x, retain_graph=True)
    assert found.tolist() == [2.0, 2.0]
    with pytest.raises(RuntimeError, match=CHANGED):
        torch.autograd.grad(square, x)


def test_only_what_is_needed_is_saved():
    x = leaf(1.0, 2.0)
    w = torch.tensor([3.0, 4.0])
    y = x * 1.0
    loss = (y * w).sum()  # saves w, not y: only y needs a gradient
    y.add_(1.0)
    loss.backward()
    assert x.grad.tolist() == [3.0, 4.0]


def test_version_counts():
    x = torch.tensor([1.0, 2.0])
    assert x._version == 0
    x.add_(1.0)
    assert x._version == 1
    x.select(0, 0).zero_()
    assert x._version == x.detach()._version == 2
    assert x.data._version == 0


def test_saved_tensors_hooks():
    seen = []

    def pack(tensor):
        seen.append("pack")
        return tensor.tolist()

    def unpack(values):
        seen.append("unpack")
        return torch.tensor(values)

    x = leaf(2.0, 3.0)
    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        y = x * x
    y.sum().backward()
    assert x.grad.tolist() == [4.0, 6.0]
    assert seen == ["pack", "pack", "unpack", "unpack"]


def test_hooks_keep_higher_orders():
    x = leaf(2.0)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        y = x * x * x
        (first,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        (second,) = torch.autograd.grad(first.sum(), x)
    assert second.tolist() == [12.0]


def test_disable_saved_tensors_hooks():
    with (
        torch.autograd.graph.disable_saved_tensors_hooks("not here"),
        pytest.raises(RuntimeError, match="not here"),
        torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t),
    ):
        pass


def test_saved_attributes_of_nodes():
    x = leaf(2.0)
    y = x * x
    assert y.grad_fn._saved_self.tolist() == [2.0]
    assert x.exp().grad_fn._saved_result.tolist() == pytest.approx([7.389056], rel=1e-6)
    y.sum().backward()
    with pytest.raises(RuntimeError, match="after they have already been freed"):
        _ = y.grad_fn._saved_self


def test_pack_hooks_see_results_with_their_history():
    x = torch.ones(2, requires_grad=True)
    seen = []
    with torch.autograd.graph.saved_tensors_hooks(
        lambda t: (seen.append((t.is_leaf, t.requires_grad)), t)[1], lambda t: t
    ):
        (x.exp() * 2).sum().backward()
    assert seen == [(False, True)]
    assert torch.allclose(x.grad, 2 * x.detach().exp())


def test_mutation_of_saved_tensors_is_allowed_where_asked():
    x = torch.ones(2, requires_grad=True)
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        y = x * 2
        z = (y * y).sum()
        y.zero_()
        z.backward()
        late = (x * x).sum()
    assert x.grad.tolist() == [8.0, 8.0]
    with pytest.raises(AssertionError, match=r"^Trying to backward outside of the 'allow_mut"):
        late.backward()
