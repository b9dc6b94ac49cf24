"""Factors and what is solved with them: what they are defined by, gradients, torch's errors."""

import pytest

import flambeau as torch
from flambeau.autograd import gradcheck, gradgradcheck

pytest.importorskip("scipy_openblas32")
DOUBLE = torch.float64


def drawn(*shape, dtype=DOUBLE):
    torch.manual_seed(3)
    return torch.randn(*shape, dtype=dtype)


def positive(n, dtype=DOUBLE):
    made = drawn(n, n, dtype=dtype)
    return made @ made.mH + n * torch.eye(n, dtype=dtype)


KINDS = [DOUBLE, torch.complex128]


def near(one, other):
    return torch.allclose(one, other, atol=1e-10)


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("shape", [(3, 3), (2, 3, 3), (0, 2, 2), (1, 1)])
def test_inverse_times_itself_is_the_identity(shape, dtype):
    matrices = drawn(*shape, dtype=dtype)
    eye = torch.eye(shape[-1], dtype=dtype).expand(shape)
    assert near(torch.inverse(matrices) @ matrices, eye)
    assert near(torch.linalg.solve(matrices, matrices), eye)


def test_determinants():
    matrices = torch.tensor([[2.0, 1.0], [4.0, 3.0]], dtype=DOUBLE)
    assert near(torch.det(matrices), torch.tensor(2.0, dtype=DOUBLE))
    sign, logarithm = torch.slogdet(-matrices[:1].repeat(1, 1).new_tensor([[0.0, 1.0], [1.0, 0.0]]))
    assert (sign.item(), logarithm.item()) == (-1.0, 0.0)
    assert torch.logdet(torch.tensor([[0.0, 1.0], [1.0, 0.0]])).isnan()


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (2, 4, 3)])
def test_factors_multiply_to_the_matrix(shape, dtype):
    matrices = drawn(*shape, dtype=dtype)
    q, r = torch.linalg.qr(matrices)
    assert near(q @ r, matrices)
    u, s, vh = torch.linalg.svd(matrices, full_matrices=False)
    assert near(u * s.unsqueeze(-2) @ vh, matrices)
    p, low, up = torch.linalg.lu(matrices)
    assert near(p @ low @ up, matrices)
    assert near(matrices @ torch.linalg.pinv(matrices) @ matrices, matrices)
    a, tau = torch.geqrf(matrices.reshape(-1, shape[-1])[: shape[-1] + 1])
    reflected = torch.ormqr(a, tau, torch.eye(a.shape[0], dtype=dtype))
    assert near(torch.ormqr(a, tau, reflected, transpose=True), torch.eye(a.shape[0], dtype=dtype))


@pytest.mark.parametrize("dtype", KINDS)
def test_hermitian_matrices(dtype):
    matrices = positive(4, dtype)
    factor = torch.linalg.cholesky(matrices)
    assert near(factor @ factor.mH, matrices)
    assert near(torch.linalg.cholesky(matrices, upper=True), factor.mH)
    assert near(torch.cholesky_inverse(factor), torch.inverse(matrices))
    assert near(torch.linalg.pinv(matrices, hermitian=True), torch.inverse(matrices))
    values, vectors = torch.linalg.eigh(matrices)
    assert values.dtype is DOUBLE
    assert near(vectors * values @ vectors.mH, matrices)
    assert (values[1:] >= values[:-1]).all()
    assert torch.linalg.matrix_rank(matrices).item() == 4


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("driver", ["gels", "gelsy", "gelsd", "gelss"])
def test_least_squares_leaves_a_residual_at_right_angles(driver, dtype):
    matrices, right = drawn(6, 3, dtype=dtype), drawn(6, 2, dtype=dtype)
    found = torch.linalg.lstsq(matrices, right, driver=driver)
    assert near(matrices.mH @ (matrices @ found.solution - right), torch.zeros(3, 2, dtype=dtype))
    assert found.solution.stride() == (1, 6)
    nothing = torch.linalg.lstsq(matrices[:0], right[:0], driver=driver)
    assert near(nothing.solution, torch.zeros(3, 2, dtype=dtype))


@pytest.mark.parametrize("dtype", KINDS)
def test_eigenvectors_keep_their_directions(dtype):
    matrices = drawn(2, 4, 4, dtype=dtype)
    values, vectors = torch.linalg.eig(matrices)
    assert near(matrices.to(values.dtype) @ vectors, vectors * values.unsqueeze(-2))
    assert torch.linalg.eigvals(drawn(0, 0, dtype=dtype)).shape == (0,)


def test_gradients_of_vectors_leave_their_angles_out():
    given = drawn(3, 3, dtype=torch.complex128).requires_grad_()
    for vectors in (torch.linalg.eigh(given)[1], torch.linalg.svd(given)[0],
                    torch.linalg.eig(given)[1]):  # fmt: skip
        with pytest.raises(RuntimeError, match=r"specified up to multiplication by e\^\{i phi\}"):
            vectors.real.sum().backward()


def test_gradients_of_equal_singular_values_and_eigenvalues():
    given = torch.eye(3, dtype=DOUBLE).requires_grad_()
    for values in (torch.linalg.svdvals(given), torch.linalg.eigvalsh(given)):
        (grad,) = torch.autograd.grad(values.sum(), given)
        assert near(grad, torch.eye(3, dtype=DOUBLE))


CASES = {
    "inverse": (torch.linalg.inv, (3, 3)),
    "det": (torch.linalg.det, (3, 3)),
    "slogdet": (lambda a: torch.linalg.slogdet(a)[1], (2, 3, 3)),
    "cholesky": (lambda a: torch.linalg.cholesky(a @ a.mH + positive(3)), (3, 3)),
    "eigvalsh": (lambda a: torch.linalg.eigvalsh(a + a.mH), (3, 3)),
    "svdvals": (torch.linalg.svdvals, (3, 2)),
    "pinv": (torch.linalg.pinv, (4, 3)),
    "qr": (lambda a: torch.linalg.qr(a)[1], (4, 3)),
    "lu": (lambda a: torch.linalg.lu_factor(a)[0], (3, 3)),
    "lu of tall": (lambda a: torch.linalg.lu_factor(a)[0], (4, 2)),
    "lu of wide": (lambda a: torch.linalg.lu(a)[2], (2, 4)),
    "exp": (torch.matrix_exp, (3, 3)),
    "nuc": (lambda a: torch.linalg.matrix_norm(a, "nuc"), (3, 2)),
    "svd": (lambda a: torch.linalg.svd(a, full_matrices=False)[0].abs(), (4, 3)),
    "eigh": (lambda a: torch.linalg.eigh(a + a.mH)[1].abs(), (3, 3)),
    "eig": (lambda a: torch.linalg.eig(a)[1].abs(), (3, 3)),
    "eigvals": (torch.linalg.eigvals, (3, 3)),
    "sign of det": (lambda a: torch.linalg.slogdet(a)[0], (3, 3)),
    "logdet": (torch.logdet, (3, 3)),
}


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("name", CASES)
def test_gradients_are_those_of_differences(name, dtype):
    function, shape = CASES[name]
    given = drawn(*shape, dtype=dtype).requires_grad_()
    assert gradcheck(function, (given,))
    assert gradgradcheck(function, (given,))


@pytest.mark.parametrize("dtype", KINDS)
def test_gradients_of_solving(dtype):
    matrices, right = (drawn(3, n, dtype=dtype).requires_grad_() for n in (3, 2))
    assert gradcheck(torch.linalg.solve, (matrices, right))

    def triangular(a, b):
        return torch.linalg.solve_triangular(a + 3 * torch.eye(3, dtype=DOUBLE), b, upper=True)

    def adjoint(a, b):
        return torch.linalg.lu_solve(*torch.linalg.lu_factor(a), b.mT, left=False, adjoint=True)

    def least(a, b):
        return torch.linalg.lstsq(a[:, :2], b).solution

    def factored(a, b):
        return torch.cholesky_solve(b, torch.linalg.cholesky(a @ a.mH + positive(3)))

    for function in (adjoint, least, factored):
        assert gradcheck(function, (matrices, right))

    assert gradcheck(triangular, (matrices, right))


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: torch.inverse(torch.zeros(2, 2)), torch.linalg.LinAlgError,
         "linalg.inv: The diagonal element 1 is zero"),
        (lambda: torch.linalg.cholesky(-torch.eye(2)[None].repeat(2, 1, 1)),
         torch.linalg.LinAlgError, r"linalg.cholesky: \(Batch element 0\): The factorization"),
        (lambda: torch.linalg.solve(torch.zeros(2, 2), torch.ones(2)), RuntimeError,
         "torch.linalg.solve: The solver failed because the input matrix is singular."),
        (lambda: torch.det(torch.ones(2, 3)), RuntimeError,
         "linalg.det: A must be batches of square matrices, but they are 2 by 3 matrices"),
        (lambda: torch.inverse(torch.ones(3)), RuntimeError, "must have at least 2 dimensions"),
        (lambda: torch.inverse(torch.ones(2, 2).long()), RuntimeError,
         "Expected a floating point or complex tensor as input. Got Long"),
        (lambda: torch.inverse(torch.eye(2).half()), RuntimeError,
         "Low precision dtypes not supported. Got Half"),
        (lambda: torch.linalg.svd(torch.full((2, 2), float("nan"))), torch.linalg.LinAlgError,
         "linalg.svd: The algorithm failed to converge because the input matrix contained non-fin"),
        (lambda: torch.linalg.pinv(torch.ones(3)), RuntimeError,
         r"linalg.pinv\(Float\{\[3\]\}\): expected a tensor with 2 or more dimensions"),
        (lambda: torch.linalg.matrix_norm(torch.ones(2, 2), dtype=torch.complex64), RuntimeError,
         "linalg.matrix_norm: dtype should be real for real inputs, but got ComplexFloat"),
        (lambda: torch.linalg.matrix_norm(torch.ones(2, 2), 3), RuntimeError,
         "linalg.matrix_norm: Order 3 not supported."),
    ],
)  # fmt: skip
def test_errors_are_torchs(call, kind, text):
    with pytest.raises(kind, match=text):
        call()


def test_products():
    a, b, c = drawn(2, 5), drawn(5, 3), drawn(3, 4)
    assert near(torch.linalg.multi_dot([a, b, c]), a @ b @ c)
    assert near(torch.matrix_power(drawn(3, 3), 3), drawn(3, 3) @ drawn(3, 3) @ drawn(3, 3))
    x, y = torch.tensor([1.0, 0.0, 0.0]), torch.tensor([0.0, 1.0, 0.0])
    assert torch.cross(x, y, dim=0).tolist() == [0.0, 0.0, 1.0]


def test_only_what_is_asked_for_is_unpacked():
    factors, pivots = torch.linalg.lu_factor(drawn(3, 3))
    for data in (True, False):
        for orders in (True, False):
            found = torch.lu_unpack(factors, pivots, unpack_data=data, unpack_pivots=orders)
            expected = [9 if orders else 0, 9 if data else 0, 9 if data else 0]
            assert [each.numel() for each in found] == expected


def test_singular_values_without_vectors_leave_zeros():
    left, values, right = torch.svd(drawn(2, 3), compute_uv=False)
    assert torch.equal(values, torch.svd(drawn(2, 3))[1])
    assert torch.equal(left, torch.zeros(2, 2, dtype=DOUBLE))
    assert torch.equal(right, torch.zeros(3, 3, dtype=DOUBLE))


def test_a_symmetric_pseudoinverse_reads_the_lower_triangle():
    given = torch.tensor([[2.0, 9.0], [1.0, 3.0]], dtype=DOUBLE, requires_grad=True)
    found = torch.linalg.pinv(given, hermitian=True)
    assert near(found, torch.tensor([[0.6, -0.2], [-0.2, 0.4]], dtype=DOUBLE))
    assert torch.linalg.pinv(torch.zeros(2, 2), hermitian=True).abs().sum() == 0
    with pytest.raises(RuntimeError, match="must be batches of square matrices"):
        torch.linalg.pinv(torch.ones(2, 3), hermitian=True)
