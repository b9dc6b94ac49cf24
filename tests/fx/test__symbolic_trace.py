"""Programs traced: their steps, and what cannot be traced."""

import math
import operator

import pytest

import flambeau as torch
from flambeau import fx, nn
from flambeau.nn import functional


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.convolution = nn.Conv2d(3, 4, 3)
        self.rows = nn.Sequential(nn.Linear(4, 5), nn.ReLU())
        self.scale = nn.Parameter(torch.ones(5))
        self.register_buffer("shift", torch.zeros(5))

    def forward(self, x, negated=False):
        x = functional.relu(self.convolution(x))
        x = x.mean((2, 3)).view(x.size(0), -1)
        x = self.rows(torch.cat([x[:, :2], x[:, 2:]], dim=1)) * self.scale + self.shift
        first, second = x.chunk(2, 1) if not negated else (-x).chunk(2, 1)
        return {"first": first, "rest": [second + math.sqrt(4.0) - torch.ones(1)]}


def test_a_traced_module_computes_what_the_module_computes():
    net, x = Net(), torch.randn(2, 3, 6, 6)
    traced = fx.symbolic_trace(net, concrete_args={"negated": False})
    traced.graph.lint()
    want, got = net(x), traced(x)
    assert torch.equal(want["first"], got["first"])
    assert torch.equal(want["rest"][0], got["rest"][0])
    assert {name for name, _ in traced.named_parameters()} == {
        name for name, _ in net.named_parameters()
    }
    got["first"].sum().backward()
    assert net.scale.grad is not None


def test_steps_are_torchs():
    traced = fx.symbolic_trace(Net(), concrete_args={"negated": False})
    steps = [(each.op, each.name) for each in traced.graph.nodes]
    assert steps == [
        ("placeholder", "x"), ("call_module", "convolution"), ("call_function", "relu"),
        ("call_method", "mean"), ("call_method", "size"),
        ("call_method", "view"), ("call_function", "getitem"), ("call_function", "getitem_1"),
        ("call_function", "cat"), ("call_module", "rows_0"), ("call_module", "rows_1"),
        ("get_attr", "scale"), ("call_function", "mul"), ("get_attr", "shift"),
        ("call_function", "add"), ("call_method", "chunk"), ("call_function", "getitem_2"),
        ("call_function", "getitem_3"), ("call_function", "add_1"),
        ("get_attr", "_tensor_constant0"), ("call_function", "sub"), ("output", "output"),
    ]  # fmt: skip
    (multiplied,) = traced.graph.find_nodes(op="call_function", target=operator.mul)
    assert "mul = rows_1 * scale;  rows_1 = scale = None" in traced.code
    assert [each.name for each in multiplied.all_input_nodes] == ["rows_1", "scale"]


def test_what_values_decide_cannot_be_traced():
    def branch(x):
        return x if x.sum() > 0 else -x

    with pytest.raises(ValueError, match="cannot be used as inputs to control flow"):
        fx.symbolic_trace(branch)
    with pytest.raises(ValueError, match="Proxy object cannot be iterated"):
        fx.symbolic_trace(lambda x: [each for each in x])  # noqa: C416
    with pytest.raises(RuntimeError, match="'len' is not supported in symbolic tracing"):
        fx.symbolic_trace(lambda x: len(x))
    assert nn.Linear(1, 1)(torch.ones(1)).shape == (1,)


@fx.wrap
def looks_at_values(x):
    return x if x.sum() > 0 else -x


def test_marked_functions_are_one_step():
    traced = fx.symbolic_trace(lambda x: looks_at_values(x + 1))
    assert [each.name for each in traced.graph.nodes][2] == "looks_at_values"
    assert traced(torch.tensor([-3.0])).tolist() == [2.0]
    assert looks_at_values(torch.tensor([-3.0])).tolist() == [3.0]
    assert fx.wrap("looks_at_values") == "looks_at_values"
    with pytest.raises(RuntimeError, match="Must be either a callable or string name"):
        fx.wrap(3)


def test_a_tracer_may_step_into_leaves():
    class Deep(fx.Tracer):
        def is_leaf_module(self, m, module_qualified_name):
            return isinstance(m, nn.ReLU)

    graph = Deep().trace(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
    assert [each.op for each in graph.nodes] == [
        "placeholder", "get_attr", "get_attr", "call_function", "call_module", "output",
    ]  # fmt: skip
