"""Nodes: names, edges, freeing, no cycles, no recursion."""

import gc
import weakref

import pytest

import flambeau as torch
from flambeau.nn import functional as F


def leaf(*values):
    return torch.tensor(list(values), requires_grad=True)


def test_names_and_edges():
    x = leaf(1.0, 2.0)
    y = (x * 2.0).sum()
    node = y.grad_fn
    assert type(node).__name__ == node.name() == "SumBackward0"
    ((product, index),) = node.next_functions
    assert (type(product).__name__, index) == ("MulBackward0", 0)
    (first, second) = product.next_functions
    assert type(first[0]).__name__ == "AccumulateGrad"
    assert first[0].name() == "torch::autograd::AccumulateGrad"
    assert first[0].variable is x
    assert second == (None, 0)
    assert x.grad_fn is None
    assert repr(node).startswith("<SumBackward0 object at 0x")
    assert isinstance(node, torch.autograd.graph.Node)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda x: x + 1.0, "AddBackward0"),
        (lambda x: x - 1.0, "SubBackward0"),
        (lambda x: x / 2.0, "DivBackward0"),
        (lambda x: x**2, "PowBackward0"),
        (lambda x: x**x, "PowBackward1"),
        (lambda x: -x, "NegBackward0"),
        (lambda x: x.exp(), "ExpBackward0"),
        (lambda x: x.sigmoid(), "SigmoidBackward0"),
        (lambda x: x.relu(), "ReluBackward0"),
        (lambda x: x.sum(0), "SumBackward1"),
        (lambda x: x.mean(), "MeanBackward0"),
        (lambda x: torch.nn.GRU(2, 3)(x[None])[0], "StackBackward0"),
        (lambda x: torch.nn.LSTM(2, 3)(x[None])[0], "MkldnnRnnLayerBackward0"),
        (lambda x: x.clone(), "CloneBackward0"),
        (lambda x: x.select(0, 1), "SelectBackward0"),
        (lambda x: 2.0**x, "PowBackward2"),
        (lambda x: x.square(), "PowBackward0"),
        (lambda x: x.clamp(0, 1), "ClampBackward1"),
        (lambda x: x.clamp(x, x), "ClampBackward0"),
        (lambda x: x.chunk(2)[0], "SplitBackward0"),
        (lambda x: x.narrow(0, 0, 1), "SliceBackward0"),
        (lambda x: (x * 1).copy_(x), "CopyBackwards"),
        (lambda x: (x * 1).fill_(2.0), "FillBackward2"),
        (lambda x: x.lerp(x, x), "LerpBackward1"),
        (lambda x: x.masked_fill(x > 0, x.sum()), "MaskedFillBackward1"),
        (lambda x: torch.nn.functional.dropout(x), "MulBackward0"),
        (lambda x: F.dropout(x, 0.5), "MulBackward0"),
        (lambda x: F.relu6(x), "HardtanhBackward0"),
        (lambda x: F.linear(x.unsqueeze(0), x, x[0]), "ViewBackward0"),
        (
            lambda x: F.batch_norm(x.view(-1, 1), None, None, training=True),
            "NativeBatchNormBackward0",
        ),
        (lambda x: F.group_norm(x.view(1, -1), 1), "NativeGroupNormBackward0"),
        (lambda x: F.nll_loss(x, torch.tensor([0, 1])), "NllLossBackward0"),
        (lambda x: F.nll_loss(x.view(1, -1, 1), torch.tensor([[0]])), "NllLoss2DBackward0"),
        (lambda x: F.cross_entropy(x, torch.tensor([0, 1]), label_smoothing=0.1), "AddBackward0"),
        (lambda x: F.cross_entropy(x, x.detach()), "DivBackward1"),
        (lambda x: F.kl_div(x, x.detach(), reduction="none"), "SubBackward0"),
    ],
)
def test_names_are_torchs(make, name):
    assert make(torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)).grad_fn.name() == name


def test_edges_are_of_what_is_differentiated():
    """Numbers and operands that say where have no edge, as in torch."""
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    index = torch.tensor([0])
    for made in (
        x.clamp(0, 1), x[index], x[x > 0], x.index_select(0, index), x.masked_fill(x > 0, 1.0),
        x.gather(0, torch.tensor([[0, 1]])), torch.nn.functional.embedding(index, x),
    ):  # fmt: skip
        assert [edge.name() for edge, _ in made.grad_fn.next_functions] == [
            "torch::autograd::AccumulateGrad"
        ]
    assert len(torch.where(x > 1, x, x * 2).grad_fn.next_functions) == 2


def test_leaf_and_requires_grad():
    x = leaf(1.0)
    y = x * 2.0
    plain = torch.tensor([1.0])
    assert [each.is_leaf for each in (x, y, plain, y.detach())] == [True, False, True, True]
    assert [each.requires_grad for each in (x, y, plain, y.detach())] == [True, True, False, False]
    assert not (x > 0.0).requires_grad


def test_requires_grad_rules():
    y = leaf(1.0) * 2.0
    y.requires_grad_()
    with pytest.raises(RuntimeError, match="you can only change requires_grad flags of leaf"):
        y.requires_grad = False
    whole = torch.tensor([1])
    with pytest.raises(RuntimeError, match="only Tensors of floating point and complex dtype can"):
        whole.requires_grad = True
    with pytest.raises(RuntimeError, match="only Tensors of floating point dtype can require"):
        whole.requires_grad_()


def test_detach_in_place():
    y = leaf(1.0) * 2.0
    assert y.detach_() is y
    assert y.is_leaf
    assert not y.requires_grad
    with pytest.raises(RuntimeError, match=r"Can't detach views in-place\. Use detach"):
        (leaf(1.0, 2.0) * 2.0).select(0, 1).detach_()


def test_freezing_keeps_hooks():
    x = leaf(1.0)
    seen = []
    x.register_hook(lambda grad: seen.append(grad.tolist()))
    x.requires_grad_(False)
    x.requires_grad_(True)
    (x * 2.0).sum().backward()
    assert seen == [[2.0]]


def collected(build):
    gc.collect()
    gc.disable()
    try:
        references = build()
        return [reference() is None for reference in references]
    finally:
        gc.enable()


def test_no_cycle_after_backward():
    def build():
        x = leaf(1.0, 2.0)
        y = (x * x).exp().sum()
        y.backward()
        return [weakref.ref(x), weakref.ref(y.grad_fn), weakref.ref(y)]

    assert collected(build) == [True] * 3


def test_no_cycle_under_create_graph():
    def build():
        x = leaf(1.0, 2.0)
        middle = x * x
        middle.retain_grad()
        y = (middle.exp() * middle).sum()
        y.backward(create_graph=True)
        return [weakref.ref(x), weakref.ref(y.grad_fn), weakref.ref(x.grad.grad_fn)]

    assert collected(build) == [True] * 3


def test_no_cycle_when_an_output_is_saved():
    def build():
        x = leaf(1.0, 2.0)
        y = x.exp()
        z = y.sigmoid() * y
        return [weakref.ref(x), weakref.ref(y.grad_fn), weakref.ref(z.grad_fn)]

    assert collected(build) == [True] * 3


def test_saved_values_go_with_backward():
    x = leaf(1.0, 2.0)
    other = torch.tensor([3.0, 4.0])
    storage = weakref.ref(other._storage)
    y = (x * other).sum()
    del other
    assert storage() is not None
    y.backward()
    x.grad.tolist()
    assert storage() is None


def test_a_long_chain_neither_overflows_nor_slows():
    x = torch.tensor(1.0, requires_grad=True)
    y = x
    for _ in range(20_000):
        y = y + 0.0
    y.backward()
    assert x.grad.tolist() == 1.0
    del y


def test_freeing_long_chains_needs_no_stack():
    from flambeau.gradients.graph import OperatorNode, next_sequence

    node = torch.tensor(1.0, requires_grad=True)._autograd
    for _ in range(100_000):
        above = OperatorNode()
        above.edges = (node, None)
        above.saved = (("storage", None, 0, node, None, 0), None)
        above.extras = None
        above.sequence = next_sequence()
        node = above
    del node, above


def test_leaf_outlives_its_tensor_in_the_graph():
    y = (leaf(1.0, 2.0) * 2.0).sum()
    accumulate = y.grad_fn.next_functions[0][0].next_functions[0][0]
    y.backward()
    assert accumulate.variable.tolist() == [1.0, 2.0]
    assert accumulate.variable.requires_grad


def test_order_is_deterministic_and_youngest_first():
    x = leaf(1.0)
    order = []
    first, second, third = x * 2.0, x * 3.0, x * 4.0
    for name, each in (("first", first), ("second", second), ("third", third)):
        each.register_hook(lambda grad, name=name: order.append(name))
    (third + first + second).sum().backward()
    assert order == ["third", "second", "first"]
    assert x.grad.tolist() == [9.0]


def test_linear_shows_the_edges_of_addmm():
    """As the tutorials walk them: the bias first, then the input."""
    layer = torch.nn.Linear(2, 2)
    node = layer(torch.ones(1, 2, requires_grad=True).exp()).grad_fn
    assert node.name() == "AddmmBackward0"
    assert [each.name() for each, _ in node.next_functions][:2] == [
        "torch::autograd::AccumulateGrad", "ExpBackward0",
    ]  # fmt: skip
    assert node.next_functions[0][0].variable is layer.bias
    bare = torch.nn.functional.linear(torch.ones(1, 2), layer.weight).grad_fn
    assert bare.name() == "MmBackward0"
    assert bare.next_functions[0] == (None, 0)
    assert len(bare.next_functions) == 2


def chain(node):
    """Names along a graph, in torch's spelling: Addmm(A, None, T(A)) for a linear layer."""
    if node is None:
        return "None"
    name = node.name().removeprefix("torch::autograd::").removesuffix("Backward0")
    below = ", ".join(chain(each) for each, _ in node.next_functions)
    return "A" if name == "AccumulateGrad" else f"{name}({below})" if below else name


def test_steps_between_are_torchs():
    """Where torch's graph has several nodes and ours one, walking it shows torch's."""
    w, b = torch.ones(3, 4, requires_grad=True), torch.ones(3, requires_grad=True)
    matrix = torch.ones(2, 4, requires_grad=True)
    batch = torch.ones(2, 5, 4, requires_grad=True)
    for made, expected in (
        (F.linear(matrix.detach(), w, b), "Addmm(A, None, T(A))"),
        (F.linear(matrix, w), "Mm(A, T(A))"),
        (F.linear(batch, w, b), "View(Addmm(A, View(A), T(A)))"),
        (F.linear(batch, w), "UnsafeView(Mm(View(A), T(A)))"),
        (F.linear(b, w.t()), "SqueezeBackward4(Mm(Unsqueeze(A), T(T(A))))"),
        (F.cross_entropy(matrix, torch.tensor([0, 1])), "NllLoss(LogSoftmax(A))"),
        (F.l1_loss(matrix, w[:2].detach()), "Mean(Abs(Sub(A, None)))"),
        (batch @ batch.mT, "UnsafeView(Bmm(View(Expand(A)), View(Expand(Transpose(A)))))"),
        (matrix @ w.t(), "Mm(A, T(A))"),
    ):
        assert chain(made.grad_fn) == expected
    once, again = (made.grad_fn.next_functions[0][0] for _ in range(2))
    assert once is again
    assert isinstance(once, torch.autograd.graph.Node)
