"""Graphs run node by node, and rewritten on the way."""

import operator

import pytest

import flambeau as torch
from flambeau import fx, nn


def test_an_interpreter_computes_what_the_module_computes():
    seen = []

    class Watching(fx.Interpreter):
        def run_node(self, n):
            seen.append(n.name)
            return super().run_node(n)

    module = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
    x = torch.randn(3, 2)
    assert torch.equal(Watching(module).run(x), module(x))
    assert seen == [each.name for each in module.graph.nodes]
    with pytest.raises(RuntimeError, match="Expected positional argument for parameter"):
        Watching(module).run()


def test_a_transformer_makes_another_module():
    class Doubled(fx.Transformer):
        def call_function(self, target, args, kwargs):
            made = super().call_function(target, args, kwargs)
            return made * 2 if target is operator.add else made

    module = Doubled(fx.symbolic_trace(lambda x: x + 1)).transform()
    assert module(torch.ones(1)).tolist() == [4.0]
