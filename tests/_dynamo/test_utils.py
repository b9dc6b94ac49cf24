"""What libraries ask of a compiler that has to be asked."""

import flambeau as torch


def test_nothing_is_compiled_that_way():
    assert torch._dynamo.utils.is_compile_supported("cpu") is False
    assert torch._dynamo.eval_frame.is_dynamo_supported() is False
    module = torch.nn.Linear(1, 1)
    assert not isinstance(torch.compile(module), torch._dynamo.OptimizedModule)
