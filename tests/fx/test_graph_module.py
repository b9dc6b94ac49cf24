"""Graphs as modules: changed, copied, pickled."""

import copy
import pickle

import pytest

import flambeau as torch
from flambeau import fx, nn
from flambeau.nn import functional


def traced():
    net = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    return fx.symbolic_trace(net)


def test_steps_are_replaced():
    module, x = traced(), torch.randn(4, 2)
    (tanh,) = (n for n in module.graph.nodes if n.target == "1")
    with module.graph.inserting_after(tanh):
        new = module.graph.call_function(functional.relu, tanh.args)
    assert [each.name for each in tanh.replace_all_uses_with(new)] == ["_2"]
    with pytest.raises(RuntimeError, match="Tried to erase Node _0 but it still had 2 users"):
        module.graph.erase_node(module.graph.find_nodes(op="call_module", target="0")[0])
    assert module.graph.eliminate_dead_code() is True
    assert tanh not in list(module.graph.nodes)
    module.recompile()
    module.delete_all_unused_submodules()
    assert [name for name, _ in module.named_modules()] == ["", "0", "2"]
    want = module.get_submodule("2")(torch.relu(module.get_submodule("0")(x)))
    assert torch.equal(module(x), want)


def test_copies_have_graphs_of_their_own():
    module, x = traced(), torch.randn(1, 2)
    other = copy.deepcopy(module)
    assert type(other).__name__ == "Sequential"
    assert torch.equal(other(x), module(x))
    other.graph.output_node().args = (next(iter(other.graph.nodes)),)
    other.recompile()
    assert torch.equal(other(x), x)
    assert module(x).shape == (1, 1)
    again = pickle.loads(pickle.dumps(module))
    assert torch.equal(again(x), module(x))


def test_a_graph_is_built_by_hand():
    graph = fx.Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y", default_value=2.0)
    graph.output((graph.call_function(torch.mul, (x, y)), graph.get_attr("weight")))
    module = fx.GraphModule({"weight": nn.Parameter(torch.ones(1))}, graph)
    first, second = module(torch.tensor([3.0]))
    assert (first.tolist(), second is module.weight) == ([6.0], True)
    assert str(graph).splitlines()[1] == "    %x : [num_users=1] = placeholder[target=x]"
    with pytest.raises(RuntimeError, match="Node referenced target weight but that target"):
        fx.GraphModule({}, graph)


def test_a_node_before_what_it_uses_is_found():
    graph = fx.Graph()
    x = graph.placeholder("x")
    y = graph.call_method("neg", (x,))
    graph.output(y)
    y.append(x)
    with pytest.raises(RuntimeError, match="was used before it has been defined"):
        graph.lint()
    y.prepend(x)
    graph.lint()
    assert (x.next, y.prev) == (y, x)
