"""Views of complex memory: writes through one are seen through all, gradients included."""

import pytest

import flambeau as torch


def numbers():
    return torch.tensor([[1 + 2j, 3 - 4j], [0.5j, 2.0]])


def test_parts_share_memory():
    z = numbers()
    z.real.mul_(2)
    z.imag[0] = 7
    torch.view_as_real(z)[1, 1, 1] = -1
    assert z.tolist() == [[2 + 7j, 6 + 7j], [0.5j, 4 - 1j]]
    pairs = torch.arange(8.0).reshape(2, 2, 2)
    torch.view_as_complex(pairs)[1].zero_()
    assert pairs.flatten().tolist() == [0, 1, 2, 3, 0, 0, 0, 0]


def test_offsets_of_parts_of_parts():
    z = torch.arange(12.0).reshape(3, 2, 2)
    inner = torch.view_as_complex(z)[1:, 1]
    assert inner.imag.storage_offset() == 7
    assert inner.imag.tolist() == [7, 11]
    assert torch.view_as_real(inner).tolist() == [[6, 7], [10, 11]]


def test_writes_through_parts_have_gradients():
    z = numbers().to(torch.complex128).requires_grad_()

    def through_real(z):
        x = z * 1
        x.real.mul_(2)
        x.imag.add_(x.real)
        return x * x

    def through_pairs(z):
        x = z * 1
        torch.view_as_real(x)[1:].mul_(3)
        return x * x

    def through_conjugates(z):
        x = z * 1
        y = x.conj()
        y.mul_(2j)
        return x * x * y

    def through_parts_of_conjugates(z):
        x = z * 1
        y = x.conj().imag
        y.mul_(x.real)
        return x * x * y + x.conj().imag

    for function in (
        through_real, through_pairs, through_conjugates, through_parts_of_conjugates,
    ):  # fmt: skip
        assert torch.autograd.gradcheck(function, (z,))


def test_conj_is_a_view():
    z = numbers()
    y = z.conj()
    assert y.is_conj()
    assert not z.is_conj()
    assert y.data_ptr() == z.data_ptr()
    assert not y.conj().is_conj()
    assert not y.clone().is_conj()
    assert not (y + 0).is_conj()
    assert y[0].is_conj()
    assert y.t().is_conj()
    assert y.reshape(-1).is_conj()
    y[0, 1] = 5 + 1j
    y[1].mul_(2j)
    assert z.tolist() == [[1 + 2j, 5 - 1j], [1 + 0j, -4j]]
    assert y.tolist() == [[1 - 2j, 5 + 1j], [1 + 0j, 4j]]
    assert y.resolve_conj().is_conj() is False
    assert torch.equal(y.resolve_conj(), y)


def test_imaginary_parts_of_conjugates_are_views():
    z = numbers()
    parts = z.conj().imag
    assert all(each.is_neg() for each in (parts, parts.t(), parts.detach(), parts[0]))
    assert not any(each.is_neg() for each in (z.imag, z.conj(), parts.clone(), parts + 0))
    assert not parts.is_conj()
    assert parts.data_ptr() == z.data_ptr() + 4
    parts.add_(1)
    parts[0, 1] = 7
    z.conj()[1:].imag = 3.0
    assert z.tolist() == [[1 + 1j, 3 - 7j], [-3j, 2 - 3j]]
    assert parts.tolist() == [[-1, 7], [3, 3]]
    assert parts[0, 1].item() == 7
    assert parts.resolve_neg().numpy().tolist() == parts.numpy(force=True).tolist()
    assert torch.cat([parts, parts @ parts.t()]).sort()[0].tolist() == [
        [-1, 7], [3, 3], [18, 50], [18, 18],
    ]  # fmt: skip
    assert repr(parts) == "tensor([[-1.,  7.],\n        [ 3.,  3.]])"


def test_conj_of_what_is_pending_fuses():
    z = torch.randn(100, dtype=torch.complex64)
    with torch.debug.fuse_new(True), torch.debug.counts() as seen:
        w = z * 2
        norm = (w * w.conj()).real
        del w
        norm.tolist()
    assert seen.kernels_launched <= 2


def test_refusals():
    z = numbers()
    with pytest.raises(RuntimeError, match="view_as_real doesn't work on unresolved conj"):
        torch.view_as_real(z.conj())
    with pytest.raises(RuntimeError, match="conjugate bit set"):
        z.conj().numpy()
    with pytest.raises(RuntimeError, match="must have a storage_offset divisible by 2"):
        torch.view_as_complex(torch.arange(9.0)[1:].reshape(4, 2))
    with pytest.raises(RuntimeError, match="that has negative bit set"):
        z.conj().imag.numpy()
    with pytest.raises(RuntimeError, match="not supported for conjugate view tensors when conv"):
        z.conj().view(torch.float32)
    with pytest.raises(RuntimeError, match="not supported for tensors with negative bit set when"):
        z.conj().imag.view(torch.int32)
    with pytest.raises(RuntimeError, match="imag is not implemented for tensors with non-complex"):
        torch.ones(2).imag  # noqa: B018
    with pytest.raises(RuntimeError, match="last dimension of size 2"):
        torch.view_as_complex(torch.ones(3))
    with pytest.raises(RuntimeError, match="last dimension with stride 1"):
        torch.view_as_complex(torch.ones(2, 2).t())
    with pytest.raises(RuntimeError, match="only supported for complex tensors"):
        torch.view_as_real(torch.ones(2))
