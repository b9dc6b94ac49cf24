"""Principal components by random projection, for torch's draws."""

import pytest

import flambeau as torch

PCA = [4.30331, 3.48606, 2.56493]
SVD = [4.34943, 3.89074, 2.98441]


def test_values_are_those_of_torch():
    torch.manual_seed(1)
    rows = torch.randn(10, 7)
    assert torch.pca_lowrank(rows, q=3)[1].tolist() == pytest.approx(PCA, rel=1e-4)
    assert torch.svd_lowrank(rows.T, q=3)[1].tolist() == pytest.approx(SVD, rel=1e-4)


@pytest.mark.parametrize("shape", [(6, 4), (4, 6)])
def test_all_values_make_the_matrix(shape):
    torch.manual_seed(0)
    matrix = torch.randn(shape, dtype=torch.float64)
    left, values, right = torch.svd_lowrank(matrix, q=4)
    assert torch.allclose(left @ torch.diag(values) @ right.mT, matrix)
    left, values, right = torch.svd_lowrank(matrix, q=4, M=matrix.mean(0, keepdim=True))
    assert torch.allclose(left @ torch.diag(values) @ right.mT, matrix - matrix.mean(0))


@pytest.mark.parametrize("named", [{"q": 5}, {"niter": -1}])
def test_numbers_that_make_no_sense_are_refused(named):
    with pytest.raises(ValueError, match="must be non-negative integer"):
        torch.pca_lowrank(torch.ones(4, 6), **named)
