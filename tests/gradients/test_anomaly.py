"""Anomaly detection."""

import pytest

import flambeau as torch

pytestmark = pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")


def test_first_nan_and_where_it_was_recorded():
    x = torch.tensor([0.0], requires_grad=True)
    with torch.autograd.detect_anomaly():
        loss = (x / x).sqrt().sum()
        with (
            pytest.warns(UserWarning, match=r"Error detected in SqrtBackward0\.") as seen,
            pytest.raises(RuntimeError, match="'SqrtBackward0' returned nan values in its 0th"),
        ):
            loss.backward()
    assert "(x / x).sqrt().sum()" in str(seen[0].message)


def test_off_again():
    x = torch.tensor([0.0], requires_grad=True)
    with torch.autograd.set_detect_anomaly(True):
        pass
    (x / x).sqrt().sum().backward()
    assert x.grad.tolist() != x.grad.tolist()


def test_without_nan_check():
    x = torch.tensor([0.0], requires_grad=True)
    with torch.autograd.detect_anomaly(check_nan=False):
        (x / x).sqrt().sum().backward()
    assert x.grad.tolist() != x.grad.tolist()
