"""Marks of functions that would write ONNX nodes."""

import pytest

from flambeau import onnx


def test_marked_functions_are_themselves():
    assert onnx.symbolic_helper.parse_args("v", "f")(len) is len
    assert onnx.register_custom_op_symbolic("own::f", len, 11) is None
    with pytest.raises(AttributeError, match=r"module 'torch.onnx.symbolic_opset11' has no"):
        onnx.symbolic_opset11.unsqueeze  # noqa: B018
