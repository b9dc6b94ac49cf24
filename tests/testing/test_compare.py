"""assert_close and make_tensor."""

import pytest

import flambeau as torch
from flambeau.testing import assert_allclose, assert_close, make_tensor


def test_what_is_close_passes():
    assert_close(torch.ones(2), torch.ones(2) + 1e-7)
    assert_close([1.0, {"a": torch.ones(1)}], [1.0, {"a": torch.ones(1)}])
    assert_close(torch.tensor([float("nan")]), torch.tensor([float("nan")]), equal_nan=True)
    assert_close(torch.ones(2), torch.ones(2).double(), check_dtype=False)
    assert_close(torch.ones(2), torch.ones(2) * 1.1, rtol=0.2, atol=0.0)


def test_the_report_says_where():
    with pytest.raises(AssertionError) as caught:
        assert_close({"a": [torch.tensor([1.0, 2.0, 3.0])]}, {"a": [torch.tensor([1.0, 2.5, 3.0])]})
    text = str(caught.value)
    assert text.startswith("Tensor-likes are not close!\n\nMismatched elements: 1 / 3 (33.3%)\n")
    assert "Greatest absolute difference: 0.5 at index (1,) (up to 1e-05 allowed)" in text
    assert "Greatest relative difference: 0.20000000298023224 at index (1,)" in text
    assert text.endswith("The failure occurred for item ['a'][0]")


@pytest.mark.parametrize(
    "actual, expected, message",
    [
        (torch.ones(2), torch.ones(3), "attribute 'shape' do not match"),
        (torch.ones(2), torch.ones(2).double(), "attribute 'dtype' do not match"),
        ([1], [1, 2], "length of the sequences mismatch: 1 != 2"),
        ({"a": 1}, {"b": 1}, "keys of the mappings do not match"),
        (torch.tensor([1, 2]), torch.tensor([1, 3]), "Tensor-likes are not equal!"),
        (1.0, 2.0, "Expected 2.0 but got 1.0"),
        (torch.tensor([float("nan")]), torch.tensor([float("nan")]), "Mismatched elements: 1 / 1"),
    ],
)
def test_what_is_not_close_is_refused(actual, expected, message):
    with pytest.raises(AssertionError, match=message):
        assert_close(actual, expected)


def test_messages_and_mistakes():
    with pytest.raises(AssertionError, match=r"^mine$"):
        assert_close(1, 2, msg="mine")
    with pytest.raises(ValueError, match="but got no 'atol'"):
        assert_close(1.0, 1.0, rtol=1.0)
    with pytest.raises(TypeError, match="No comparison pair was able to handle"):
        assert_close("a", "b")


def test_made_tensors():
    made = make_tensor(3, 4, dtype=torch.float32, low=-1, high=1, requires_grad=True)
    assert made.shape == (3, 4)
    assert float(made.detach().abs().max()) <= 1
    assert made.requires_grad
    assert not make_tensor((3, 4), dtype=torch.int64, noncontiguous=True).is_contiguous()
    assert bool(make_tensor((50,), dtype=torch.uint8, exclude_zero=True).all())


def test_the_older_comparison_warns_and_is_blind_to_dtypes():
    with pytest.warns(FutureWarning, match=r"`torch\.testing\.assert_allclose\(\)` is deprecated"):
        assert_allclose([1.0, 2.0], torch.tensor([1, 2]))
    with (
        pytest.warns(FutureWarning, match="since 1.12"),
        pytest.raises(AssertionError, match=r"up to 0\.0001 allowed"),
    ):
        assert_allclose(torch.ones(3), torch.ones(3) + 1e-3)
