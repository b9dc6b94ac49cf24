"""Indexing by tensors in mask functions."""

import flambeau as torch
from flambeau._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex


def test_tensors_are_indices_as_they_stand():
    with TransformGetItemToIndex():
        assert torch.arange(3)[torch.tensor(1)].item() == 1
    assert torch._dynamo.assume_constant_result(len) is len
    assert torch._dynamo.mark_dynamic(torch.ones(2), 0) is None
