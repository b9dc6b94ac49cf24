"""What the losses over classes refuse, in torch's words, and rows that are ignored."""

import math

import pytest

import flambeau as torch
from flambeau.base import dtypes
from flambeau.base.layout import contiguous
from flambeau.ops import REGISTRY
from flambeau.tensor import functions


def floats(*shape):
    return contiguous(shape, dtypes.float32)


def integers(*shape):
    return contiguous(shape, dtypes.int64)


@pytest.mark.parametrize(
    ("arguments", "kind", "sentence"),
    [
        ((floats(2, 3), integers(3)), ValueError,
         "Expected input batch_size (2) to match target batch_size (3)."),
        ((floats(2, 3), integers(2, 3)), RuntimeError,
         "Expected floating point type for target with class probabilities, got Long"),
        ((floats(2, 3, 4), integers(2, 3)), RuntimeError,
         "Expected target size [2, 4], got [2, 3]"),
        ((floats(2, 3), contiguous((2,), dtypes.int32)), RuntimeError,
         "expected target dtype to be Long or Byte, but got Int"),
        ((floats(2, 3), integers(2), floats(4)), RuntimeError,
         "weight tensor should be defined either for all 3 classes or no classes"),
        ((floats(2, 3), integers(2), None, -100, "best"), ValueError,
         "best is not a valid value for reduction"),
        ((floats(2, 3), integers(2), None, -100, "mean", 1.5), RuntimeError,
         "label_smoothing must be between 0.0 and 1.0. Got: 1.5"),
    ],
)  # fmt: skip
def test_wrong_arguments(arguments, kind, sentence):
    """torch's class and first sentence."""
    with pytest.raises(kind) as caught:
        REGISTRY["cross_entropy"].infer(*arguments)
    assert str(caught.value).startswith(sentence)


def test_ignored_rows_count_for_nothing():
    """Neither in the loss nor in its gradient."""
    logits = torch.tensor([[1.0, 2.0, 3.0], [9.0, -9.0, 4.0]], requires_grad=True)
    loss = functions.cross_entropy(logits, torch.tensor([2, -100]))
    loss.backward()
    expected = math.log(1 + math.exp(-1) + math.exp(-2))
    assert loss.item() == pytest.approx(expected, rel=1e-6)
    assert logits.grad[1].tolist() == [0.0, 0.0, 0.0]


def test_huge_logits_do_not_overflow():
    """The largest is taken off first."""
    loss = functions.cross_entropy(torch.tensor([[1e30, 0.0], [0.0, 1e4]]), torch.tensor([0, 0]))
    assert loss.item() == pytest.approx(5e3)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_the_gradient_stores_nothing_else_of_its_size(reduction):
    """One kernel goes over the logits."""
    logits = torch.linspace(-1, 1, 64 * 1000).reshape(64, 1000).requires_grad_()
    target = torch.arange(64)

    def step():
        logits.grad = None
        functions.cross_entropy(logits, target, reduction=reduction).sum().backward()
        return logits.grad.numpy()

    with torch.debug.fuse_new(True):
        step()
        logits.grad = None
        with torch.debug.counts() as seen:
            step()
    assert seen.peak_bytes < 1.2 * 4 * logits.numel()
