"""geqrf, householder_product, ormqr."""

import pytest

import flambeau as torch


def test_reflections_give_qr_back():
    torch.manual_seed(0)
    a = torch.randn(2, 5, 3, dtype=torch.float64)
    reflectors, tau = torch.geqrf(a)
    q = torch.linalg.householder_product(reflectors, tau)
    r = reflectors.triu()[:, :3]
    assert torch.allclose(q @ r, a)
    assert torch.allclose(q.mT @ q, torch.eye(3, dtype=torch.float64).expand(2, 3, 3))
    assert torch.equal(reflectors.orgqr(tau), q)
    assert torch.equal(a.geqrf().tau, tau)
    assert torch.equal(reflectors.ormqr(tau, q), torch.ormqr(reflectors, tau, q))


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("transpose", [True, False])
def test_ormqr_multiplies_with_the_whole_product(left, transpose):
    torch.manual_seed(0)
    reflectors, tau = torch.geqrf(torch.randn(4, 3, dtype=torch.float64))
    whole = torch.ormqr(reflectors, tau, torch.eye(4, dtype=torch.float64))
    assert torch.allclose(whole.T @ whole, torch.eye(4, dtype=torch.float64))
    other = torch.randn(4, 4, dtype=torch.float64)
    q = whole.T if transpose else whole
    expected = q @ other if left else other @ q
    assert torch.allclose(torch.ormqr(reflectors, tau, other, left, transpose), expected)


def test_gradients():
    a = torch.randn(4, 2, dtype=torch.float64, requires_grad=True)
    tau = torch.randn(2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(torch.linalg.householder_product, (a, tau))


def test_shapes_are_checked():
    with pytest.raises(RuntimeError, match=r"must be greater than or equal to input.shape"):
        torch.linalg.householder_product(torch.ones(2, 3), torch.ones(2))
    with pytest.raises(RuntimeError, match="one dimension less than input"):
        torch.linalg.householder_product(torch.ones(3, 2), torch.ones(1, 2))


def test_gradients_of_the_derivative_that_nobody_gives():
    given = torch.eye(3, requires_grad=True)
    with pytest.raises(NotImplementedError, match="the derivative for 'geqrf' is not implemented"):
        torch.geqrf(given).a.sum().backward()
    with pytest.raises(RuntimeError, match="geqrf does not support automatic differentiation"):
        torch.geqrf(torch.eye(2, dtype=torch.complex64, requires_grad=True))
    torch.linalg.matrix_power(given, 0).sum().backward()
    assert given.grad.tolist() == [[0.0] * 3] * 3
