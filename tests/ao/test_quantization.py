"""Marks for a quantizer."""

import flambeau as torch
from flambeau.ao.quantization import DeQuantStub, QuantStub


def test_marks_give_what_they_are_given():
    x = torch.ones(2)
    assert QuantStub()(x) is x
    assert DeQuantStub(qconfig="own")(x) is x
    assert DeQuantStub(qconfig="own").qconfig == "own"
    assert repr(QuantStub()) == "QuantStub()"
