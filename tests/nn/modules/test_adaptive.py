"""AdaptiveLogSoftmaxWithLoss against answers of torch."""

import pytest

import flambeau as torch

OUTPUT = [-1.55287, -1.55557, -4.49719, -5.67879, -3.39155, -3.67635]
GRADIENT = 0.276157
PREDICTED = [2, 4, 2, 0, 3, 1]
FIRST = [-1.55287, -2.34325, -1.5848, -2.09311, -2.27684, -3.67954]


def near(values):
    return pytest.approx(values, rel=1e-4)


def test_numbers_are_those_of_torch():
    torch.manual_seed(0)
    layer = torch.nn.AdaptiveLogSoftmaxWithLoss(8, 20, [5, 10, 15], div_value=2.0, head_bias=True)
    x = torch.randn(6, 8, requires_grad=True)
    target = torch.tensor([0, 4, 7, 12, 19, 5])
    output, loss = layer(x, target)
    loss.backward()
    assert output.tolist() == near(OUTPUT)
    assert loss.item() == near(-sum(OUTPUT) / 6)
    assert x.grad.norm().item() == near(GRADIENT)
    assert layer.predict(x * 5).tolist() == PREDICTED
    full = layer.log_prob(x)
    assert full[0, :6].tolist() == near(FIRST)
    assert full.exp().sum(1).tolist() == near([1.0] * 6)
    one = layer(x[1], target[1])
    assert one.output.shape == ()
    assert one.loss.item() == near(-OUTPUT[1])


@pytest.mark.parametrize(
    ("rows", "target", "message"),
    [(torch.ones(2, 8), torch.tensor([0, 20]), r"Target values should be in \[0, 19\]"),
     (torch.ones(2, 8), torch.tensor([0]), "the same size in the batch dimension"),
     (torch.ones(2), torch.tensor([0, 1]), "1D target tensor expects 2D input tensors"),
     (torch.ones(2, 8), torch.tensor(0), "0D target tensor expects 1D input tensors"),
     (torch.ones(2, 8), torch.zeros(2, 1).long(), "multi-target not supported")],
)  # fmt: skip
def test_what_does_not_fit_is_refused(rows, target, message):
    with pytest.raises(RuntimeError, match=message):
        torch.nn.AdaptiveLogSoftmaxWithLoss(8, 20, [5])(rows, target)


@pytest.mark.parametrize("cutoffs", [[5, 5], [10, 5], [0, 5], [20]])
def test_cutoffs_rise(cutoffs):
    with pytest.raises(ValueError, match="unique, positive integers sorted in an increasing"):
        torch.nn.AdaptiveLogSoftmaxWithLoss(8, 20, cutoffs)
