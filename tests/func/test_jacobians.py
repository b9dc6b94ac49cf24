"""jacrev, jacfwd, hessian."""

import flambeau as torch
from flambeau.func import hessian, jacfwd, jacrev


def test_both_ways_agree():
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.float64)

    def function(x):
        return {"square": x * x, "sum": x.sum(0)}

    rows, columns = jacrev(function)(x), jacfwd(function)(x)
    assert rows["square"].shape == (2, 2, 2, 2)
    assert rows["sum"].shape == (2, 2, 2)
    for name in rows:
        assert torch.equal(rows[name], columns[name])
    assert float(rows["square"][1, 0, 1, 0]) == 6.0


def test_hessian_of_a_quadratic_form():
    a = torch.tensor([[2.0, 1.0], [1.0, 5.0]])
    assert hessian(lambda x: 0.5 * x @ a @ x)(torch.randn(2)).tolist() == a.tolist()


def test_several_arguments():
    found = jacrev(lambda a, b: a * b, argnums=(0, 1))(torch.ones(2), torch.full((2,), 3.0))
    assert [each.tolist() for each in found] == [[[3.0, 0.0], [0.0, 3.0]], [[1.0, 0.0], [0.0, 1.0]]]
