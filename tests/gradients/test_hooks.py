"""Hooks: order, replacement, errors, removal."""

import pytest

import flambeau as torch


def leaf(*values):
    return torch.tensor(list(values), requires_grad=True)


def test_order():
    x = leaf(1.0, 2.0)
    order = []
    x.register_hook(lambda grad: order.append("x"))
    x.register_post_accumulate_grad_hook(lambda tensor: order.append(("after", tensor is x)))
    y = x * 2.0
    y.register_hook(lambda grad: order.append("y"))
    y.retain_grad()
    y.grad_fn.register_prehook(lambda grads: order.append("before node"))
    y.grad_fn.register_hook(
        lambda inputs, outputs: order.append(
            (inputs[0].tolist(), inputs[1], [each.tolist() for each in outputs])
        )
    )
    y.sum().backward()
    assert order == [
        "y", "before node", ([2.0, 2.0], None, [[1.0, 1.0]]), "x", ("after", True)
    ]  # fmt: skip
    assert y.grad.tolist() == [1.0, 1.0]


def test_replacing_a_gradient():
    x = leaf(1.0, 2.0)
    y = x * 2.0
    handle = y.register_hook(lambda grad: grad * 10.0)
    y.sum().backward(retain_graph=True)
    assert x.grad.tolist() == [20.0, 20.0]
    handle.remove()
    handle.remove()
    x.grad = None
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_leaf_hooks_run_once_on_the_sum():
    x = leaf(1.0)
    seen = []
    x.register_hook(lambda grad: seen.append(grad.tolist()))
    (x * 2.0 + x * 3.0).sum().backward()
    assert seen == [[5.0]]


def test_retained_after_hooks():
    y = leaf(1.0) * 2.0
    y.retain_grad()
    y.register_hook(lambda grad: grad * 3.0)
    y.sum().backward()
    assert y.grad.tolist() == [3.0]


def test_node_hooks_replace():
    x = leaf(1.0)
    y = x * 2.0
    y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] * 5.0, None))
    y.sum().backward(retain_graph=True)
    assert x.grad.tolist() == [10.0]
    x.grad = None
    y.grad_fn.register_prehook(lambda grads: (grads[0] * 7.0,))
    y.sum().backward()
    assert x.grad.tolist() == [70.0]


def test_captured_gradients_go_through_hooks():
    x = leaf(1.0)
    y = x * 2.0
    y.register_hook(lambda grad: grad * 3.0)
    x.register_hook(lambda grad: grad * 5.0)
    found = torch.autograd.grad(y.sum(), [x, y])
    # As in torch: y's hook shows in what reaches x; y itself is captured before it.
    assert [each.tolist() for each in found] == [[30.0], [1.0]]
    (found,) = torch.autograd.grad((x * 2.0).sum(), x)
    assert found.tolist() == [10.0]


def test_hooks_beside_the_way_to_the_inputs_do_not_run():
    x, w, beside = leaf(1.0), leaf(2.0), leaf(3.0)
    seen = []
    on_the_way, off = x * 2.0, w * 3.0
    on_the_way.register_hook(lambda grad: seen.append("on"))
    off.register_hook(lambda grad: seen.append("off"))
    kept = beside * 1.0
    kept.retain_grad()
    total = on_the_way * off * kept
    torch.autograd.grad(total, x, retain_graph=True)
    assert seen == ["on"]
    assert kept.grad is None
    torch.autograd.grad(total, (on_the_way, x), retain_graph=True)
    assert seen == ["on", "on"]
    total.backward(inputs=[beside])
    assert seen == ["on", "on"]
    assert kept.grad.item() == 12.0


def test_errors():
    with pytest.raises(RuntimeError, match="cannot register a hook on a tensor that doesn't"):
        torch.tensor([1.0]).register_hook(print)
    with pytest.raises(RuntimeError, match="can't retain_grad on Tensor that has requires_grad"):
        torch.tensor([1.0]).retain_grad()
    with pytest.raises(RuntimeError, match="post accumulate grad hooks cannot be registered on"):
        (leaf(1.0) * 2.0).register_post_accumulate_grad_hook(print)


def test_hooks_are_held_to_shape_and_type():
    x = leaf(1.0, 2.0)
    handle = x.register_hook(lambda grad: torch.tensor([1.0]))
    with pytest.raises(RuntimeError, match="hook '<lambda>' has changed the size of value"):
        (x * 2.0).sum().backward()
    handle.remove()
    x.register_hook(lambda grad: 3)
    with pytest.raises(TypeError, match="expected Variable, but hook returned 'int'"):
        (x * 2.0).sum().backward()


def test_optimizer_in_a_hook():
    x = leaf(1.0, 2.0)

    def step(tensor):
        with torch.no_grad():
            tensor.sub_(tensor.grad * 0.5)
        tensor.grad = None

    x.register_post_accumulate_grad_hook(step)
    (x * x).sum().backward()
    assert x.tolist() == [0.0, 0.0]
    assert x.grad is None


def test_multi_grad_hook():
    x, w, other = leaf(1.0), leaf(2.0), leaf(3.0)
    seen = []
    handle = torch.autograd.graph.register_multi_grad_hook(
        [x, w, other], lambda grads: seen.append([g if g is None else g.tolist() for g in grads])
    )
    (x * w).sum().backward()
    assert seen == [[[2.0], [1.0], None]]
    (x * w * other).sum().backward()
    assert seen[1] == [[6.0], [3.0], [2.0]]
    handle.remove()
    (x * w).sum().backward()
    assert len(seen) == 2


def test_backward_inside_a_hook():
    x, w = leaf(2.0), leaf(3.0)

    def hook(grad):
        with torch.enable_grad():
            (w * w).sum().backward()

    y = x * 2.0
    y.register_hook(hook)
    y.sum().backward()
    assert x.grad.tolist() == [2.0]
    assert w.grad.tolist() == [6.0]


@pytest.mark.parametrize("returned", [lambda g: g[0], lambda g: [*g], lambda g: 5])
def test_hooks_of_nodes_return_tuples(returned):
    for register in ("register_hook", "register_prehook"):
        x, y = leaf(1.0), leaf(2.0)
        made = x * y
        getattr(made.grad_fn, register)(lambda *given: returned(given[0]))
        with pytest.raises(TypeError, match="expected tuple, but hook returned"):
            made.backward()


def test_hooks_of_nodes_can_take_gradients_away():
    x, y = leaf(1.0), leaf(2.0)
    made = x * y
    made.grad_fn.register_hook(lambda found, given: (None, found[1]))
    made.backward()
    assert x.grad is None
    assert y.grad.item() == 1.0


def test_handles_are_of_one_class():
    x = leaf(1.0)
    kind = torch.utils.hooks.RemovableHandle
    assert isinstance(x.register_hook(lambda grad: None), kind)
    assert isinstance((x * 1).grad_fn.register_hook(lambda *given: None), kind)
