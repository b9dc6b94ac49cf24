"""What a beginner does wrong: torch's sentence first, then what to change."""

import pytest

import flambeau as torch
from flambeau.nn import functional as F

LOGITS = torch.zeros(3, 4)


@pytest.mark.parametrize(
    ("mistake", "kind", "sentence", "says"),
    [
        (lambda: LOGITS[torch.tensor([0.0])], IndexError,
         "tensors used as indices must be long", "fix       index.long()"),
        (lambda: LOGITS @ LOGITS, RuntimeError,
         "mat1 and mat2 shapes cannot be multiplied (3x4 and 3x4)", "fix       transpose"),
        (lambda: LOGITS.long().mean(), RuntimeError,
         "mean(): could not infer output dtype.", "x.float() first"),
        (lambda: LOGITS.item(), RuntimeError,
         "a Tensor with 12 elements cannot be converted to Scalar", "given     shape (3, 4)"),
        (lambda: torch.zeros(1, device="cuda"), AssertionError,
         "Torch not compiled with CUDA enabled", "torch.cuda.is_available() else"),
        (lambda: torch.cuda.current_device(), AssertionError,
         "Torch not compiled with CUDA enabled", "torch.cuda.is_available() else"),
        (lambda: torch.nn.Linear(4, 2)(LOGITS.double()), RuntimeError,
         "mat1 and mat2 must have the same dtype, but got Double and Float",
         "convert the input with .to(torch.float32)"),
        (lambda: torch.nn.Conv1d(3, 2, 1)(LOGITS.double()), RuntimeError,
         "Input type (double) and bias type (float) should be the same",
         "convert the input with .to(torch.float32)"),
        (lambda: F.embedding(torch.tensor([3]), LOGITS[:2]), IndexError,
         "index out of range in self", "expected  0 to 1"),
        (lambda: F.cross_entropy(LOGITS, torch.zeros(3)), RuntimeError,
         "expected target dtype to be Long or Byte, but got Float", "fix       target.long()"),
        (lambda: F.cross_entropy(LOGITS, torch.ones(3, 4, dtype=torch.long)), RuntimeError,
         "Expected floating point type for target with class probabilities, got Long",
         "target.argmax(1) if it is one-hot"),
        (lambda: F.cross_entropy(LOGITS, torch.tensor([0, 1, 4])), IndexError,
         "Target 4 is out of bounds.", "expected  0 to 3"),
        (lambda: F.cross_entropy(LOGITS, torch.zeros(2, dtype=torch.long)), ValueError,
         "Expected input batch_size (3) to match target batch_size (2).",
         "target of shape (3,)"),
        (lambda: F.cross_entropy(LOGITS, torch.zeros(3, 1, dtype=torch.long)), RuntimeError,
         "0D or 1D target tensor expected, multi-target not supported", "target.squeeze(1)"),
        (lambda: F.binary_cross_entropy_with_logits(LOGITS, LOGITS.long()), RuntimeError,
         "result type Float can't be cast to the desired output type Long",
         "fix       target.float()"),
    ],
)  # fmt: skip
def test_a_mistake_says_what_to_change(mistake, kind, sentence, says):
    """Class and first sentence are torch's; the help stands below."""
    with pytest.raises(kind) as caught:
        mistake()
    first, _, help_ = str(caught.value).partition("\n")
    assert first.startswith(sentence)
    assert says in help_
    assert caught.value.__context__ is None or caught.value.__suppress_context__
