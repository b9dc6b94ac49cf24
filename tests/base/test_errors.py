"""What a beginner does wrong: torch's sentence first, then what to change."""

import pytest

import flambeau as torch
from flambeau.nn import functional as F

LOGITS = torch.zeros(3, 4)


class Unbegun(torch.nn.Module):
    """Forgets super().__init__()."""

    def __init__(self):
        self.layer = torch.nn.Linear(1, 1)


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
        (lambda: F.binary_cross_entropy_with_logits(LOGITS, LOGITS[:, :1]), ValueError,
         "Target size (torch.Size([3, 1])) must be the same as input size (torch.Size([3, 4]))",
         "one number for each of the input's"),
        (lambda: F.binary_cross_entropy_with_logits(LOGITS[:, 0], LOGITS[:, :1]), ValueError,
         "Target size (torch.Size([3, 1])) must be the same as input size (torch.Size([3]))",
         "fix       target.view_as(input)"),
        (lambda: F.binary_cross_entropy(LOGITS + 2, LOGITS), RuntimeError,
         "all elements of input should be between 0 and 1", "fix       input.sigmoid()"),
        (lambda: F.binary_cross_entropy(LOGITS, LOGITS.long()), RuntimeError,
         "Found dtype Long but expected Float", "fix       target.to(torch.float32)"),
        (lambda: torch.nn.Linear(3, 2)(LOGITS), RuntimeError,
         "mat1 and mat2 shapes cannot be multiplied (3x4 and 3x2)",
         "or in_features=4"),
        (lambda: LOGITS @ LOGITS[0].double(), RuntimeError,
         "addmv input tensors must have the same dtype, but got Double, Float, and Double",
         "given     a matrix of torch.float32, a vector of torch.float64"),
        (lambda: torch.nn.BatchNorm1d(5)(LOGITS), RuntimeError,
         "running_mean should contain 4 elements not 5", "num_features=4"),
        (lambda: torch.nn.LayerNorm(5)(LOGITS), RuntimeError,
         "Given normalized_shape=[5], expected input with shape [*, 5], but got input",
         "the sizes of the input's last dims"),
        (lambda: torch.nn.LSTM(3, 2)(LOGITS), RuntimeError,
         "input.size(-1) must be equal to input_size. Expected 3, got 4",
         "expected  3 features in its last dim"),
        (lambda: torch.nn.LSTM(4, 2)(LOGITS[None], torch.zeros(1, 3, 2)), IndexError,
         "index 1 is out of bounds for dimension 0 with size 1", "(h_0, c_0)"),
        (lambda: LOGITS & LOGITS, NotImplementedError,
         "\"bitwise_and_cpu\" not implemented for 'Float'", "fix       compare first"),
        (lambda: LOGITS.cfloat() < LOGITS.cfloat(), NotImplementedError,
         "\"lt_cpu\" not implemented for 'ComplexFloat'", ".real or .abs()"),
        (lambda: LOGITS.long().softmax(0), NotImplementedError,
         "\"softmax_kernel_impl\" not implemented for 'Long'", ".to(torch.float32)"),
        (lambda: LOGITS.masked_select(torch.ones(5, 1, 1, dtype=torch.bool).expand(5, 2, 1)),
         RuntimeError,
         "The size of tensor a (2) must match the size of tensor b (3) at non-singleton dim",
         "equal sizes, or 1"),
        (lambda: F.bilinear(LOGITS, LOGITS, torch.ones(1, 4, 4).double()), RuntimeError,
         "All tensors must have the same dtype, got input1: float, input2: float, weight: double",
         "fix       convert the others with .to(torch.float64)"),
        (lambda: Unbegun(), AttributeError,
         "cannot assign module before Module.__init__() call", "super().__init__() first"),
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


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: torch.zeros(2, requires_grad="False"),
         "zeros(): argument 'requires_grad' must be bool, not str"),
        (lambda: torch.tensor([1.0], requires_grad="False"),
         "tensor(): argument 'requires_grad' must be bool, not str"),
        (lambda: torch.zeros_like(LOGITS, requires_grad="False"),
         "zeros_like(): argument 'requires_grad' must be bool, not str"),
        (lambda: LOGITS.new_zeros(2, requires_grad="False"),
         "new_zeros(): argument 'requires_grad' must be bool, not str"),
        (lambda: torch.full((2,), 1.0, requires_grad=1),
         "full(): argument 'requires_grad' must be bool, not int"),
        (lambda: torch.empty(2, requires_grad=[1]),
         "empty(): argument 'requires_grad' must be bool, not list"),
        (lambda: torch.nn.Parameter(LOGITS, requires_grad="False"),
         "_make_subclass(): argument 'require_grad' (position 3) must be bool, not str"),
        (lambda: torch.nn.Parameter(LOGITS, requires_grad=None),
         "_make_subclass(): argument 'require_grad' (position 3) must be bool, not NoneType"),
        (lambda: torch.asarray([1.0], requires_grad=1),
         "asarray(): argument 'requires_grad' must be bool, not int"),
        (lambda: torch.rand(2, requires_grad=1),
         "rand() received an invalid combination of arguments - got (int, requires_grad=int)"),
        (lambda: torch.randn_like(LOGITS, requires_grad=1),
         "randn_like() received an invalid combination of arguments - got (Tensor, requires"),
        (lambda: torch.arange(3.0, requires_grad=1),
         "arange(): argument 'requires_grad' must be bool, not int"),
    ],
)  # fmt: skip
def test_a_flag_is_a_bool(make, sentence):
    """requires_grad="False" is a mistake, not a yes."""
    with pytest.raises(TypeError) as caught:
        make()
    assert str(caught.value).startswith(sentence)
