"""Members of complex tensors: numbers in and out, files, parts, adjoints, warnings."""

import copy
import io
import pickle
import warnings

import numpy as np
import pytest

import flambeau as torch
from flambeau.tensor.public import complex_members


def numbers():
    return torch.tensor([[1 + 2j, 3 - 4j], [0.5j, 2.0]])


def test_numbers_out():
    z = numbers()
    assert complex(z[0, 0]) == 1 + 2j
    assert z[1, 0].conj().item() == -0.5j
    assert float(z[1, 1]) == 2.0
    assert int(z[1, 1]) == 2
    assert bool(z[1, 0])
    for convert, name in ((float, "double"), (int, "int64_t")):
        with pytest.raises(RuntimeError, match=f"cannot be converted to type {name} without"):
            convert(z[0, 0])


def test_numpy_and_back():
    z = numbers()
    array = z.numpy()
    assert array.dtype == np.complex64
    assert np.array_equal(array.real, z.real.numpy())
    array[0, 0] = 9j
    assert z[0, 0].item() == 9j
    assert torch.equal(torch.from_numpy(array), z)
    assert torch.tensor(np.array([1j])).dtype is torch.complex128


def test_files_and_copies_hold_what_is_seen():
    seen = numbers().conj()
    buffer = io.BytesIO()
    torch.save(seen, buffer)
    buffer.seek(0)
    for made in (torch.load(buffer), pickle.loads(pickle.dumps(seen)), copy.deepcopy(seen)):
        assert made.tolist() == seen.tolist()


def test_parts_can_be_set():
    z = numbers()
    z.real = torch.zeros(2, 2)
    z.imag = 3
    assert z.flatten().tolist() == [3j] * 4
    assert torch.ones(2).real.tolist() == [1, 1]
    assert torch.isreal(numbers()).tolist() == [[False, False], [False, True]]


def test_adjoints():
    z = numbers()
    assert z.H.tolist() == z.mH.tolist() == z.adjoint().tolist() == z.t().conj().tolist()
    assert torch.vdot(z[0], z[1]).item() == sum(
        a.conjugate() * b for a, b in zip(z[0].tolist(), z[1].tolist(), strict=True)
    )
    with pytest.raises(RuntimeError, match="only supported on matrices"):
        z.reshape(1, 2, 2).H  # noqa: B018


def test_a_lost_imaginary_part_is_said_once():
    complex_members._SAID.clear()
    with pytest.warns(UserWarning, match="discards the imaginary part"):
        assert numbers().to(torch.float32).tolist() == [[1, 3], [0, 2]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        numbers().double()
    assert numbers().bool().all()


def test_a_real_tensor_holds_no_complex_number():
    for write in (
        lambda x: x.fill_(1j),
        lambda x: x.masked_fill_(x > 0, 1j),
        lambda x: torch.full_like(x, 1j),
    ):
        with pytest.raises(RuntimeError, match="without overflow"):
            write(torch.ones(2))
    with pytest.raises(RuntimeError, match="result type ComplexFloat can't be cast"):
        torch.ones(2).add_(1j)
    with pytest.raises(RuntimeError, match="In-place abs is not supported for complex tensors"):
        numbers().abs_()


def test_creation():
    assert torch.linspace(0, 2j, 3).tolist() == [0, 1j, 2j]
    assert torch.full((2,), 1j).dtype is torch.complex64
    assert torch.eye(2, dtype=torch.cdouble).sum().item() == 2
    assert torch.complex(torch.ones(2), torch.zeros(2)).dtype is torch.complex64
    assert abs(torch.polar(torch.tensor(2.0), torch.tensor(0.5)).angle().item() - 0.5) < 1e-6
    assert (torch.ones(2, dtype=torch.float64) * 1j).dtype is torch.complex128
    assert (torch.ones(2, dtype=torch.int64) * 1j).dtype is torch.complex64


def test_a_number_that_changes_makes_no_new_kernel():
    z = numbers()
    (z * 1j).tolist()
    with torch.debug.counts() as seen:
        for turn in range(5):
            (z * complex(turn, 0.5)).tolist()
    assert seen.kernels_compiled == 0


def test_plus_is_the_tensor_itself():
    """A write into +x is one into x, whatever the dtype; bools have none."""
    x = torch.ones(3)
    y = +x
    assert y is x
    assert torch.positive(x) is x
    assert x.positive() is x
    y.add_(1)
    assert x.tolist() == [2.0, 2.0, 2.0]
    z = torch.tensor([1j])
    assert +z is z
    with pytest.raises(RuntimeError, match="on a bool tensor is not supported"):
        +torch.tensor(True)
