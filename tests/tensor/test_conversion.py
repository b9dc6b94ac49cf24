"""What tensors without data say when their values are asked for."""

import pytest

import flambeau as torch


@pytest.mark.parametrize(
    ("ask", "kind", "text"),
    [
        (lambda x: x.item(), RuntimeError, r"Tensor\.item\(\) cannot be called on meta tensors"),
        (bool, RuntimeError, r"Tensor\.item\(\) cannot be called on meta tensors"),
        (float, RuntimeError, r"Tensor\.item\(\) cannot be called on meta tensors"),
        (lambda x: x.tolist(), NotImplementedError, "Cannot copy out of meta tensor; no data!"),
        (lambda x: x.numpy(), TypeError, "can't convert meta device type tensor to numpy"),
        (lambda x: x.cpu(), NotImplementedError, "Cannot copy out of meta tensor; no data!"),
    ],
)
def test_there_is_no_data_on_meta(ask, kind, text):
    with pytest.raises(kind, match=text):
        ask(torch.zeros(1, device="meta"))
