"""autocast on the CPU: which operators compute in which dtype."""

import threading

import pytest

import flambeau as torch
from flambeau.nn import functional as F


def test_products_are_lower_and_losses_full():
    a, b = torch.randn(4, 4), torch.randn(4, 4)
    with torch.autocast("cpu"):
        c = a @ b
        assert torch.is_autocast_enabled("cpu")
        convolved = F.conv1d(a[None], torch.ones(2, 4, 1))
        layer = torch.nn.Linear(4, 2)
        products = torch.mm(a, b), F.linear(a, b), torch.bmm(a[None], b[None]), layer(a)
        for lower in (c, convolved, *products):
            assert lower.dtype is torch.bfloat16
        assert F.mse_loss(c, a).dtype is torch.float32
        assert torch.cat([a, c]).dtype is torch.float32
        assert (a.double() @ b.double()).dtype is torch.float64
        with torch.autocast("cpu", enabled=False):
            assert (a @ b).dtype is torch.float32
        assert (a @ b).dtype is torch.bfloat16
    assert (a @ b).dtype is torch.float32
    assert not torch.is_autocast_enabled("cpu")
    assert torch.equal(c, a.bfloat16() @ b.bfloat16())


def test_gradients_have_the_parameters_dtype():
    layer = torch.nn.Linear(3, 2)
    with torch.autocast("cpu"):
        loss = layer(torch.ones(1, 3)).sum()
    loss.backward()
    assert layer.weight.grad.dtype is torch.float32


def test_as_a_decorator():
    @torch.autocast("cpu", dtype=torch.float16)
    def product(a, b):
        return a @ b

    assert product(torch.ones(2, 2), torch.ones(2, 2)).dtype is torch.float16


def test_what_does_nothing_warns():
    with pytest.warns(UserWarning, match="CUDA is not available"), torch.autocast("cuda"):
        assert (torch.ones(1, 1) @ torch.ones(1, 1)).dtype is torch.float32
    with pytest.warns(UserWarning, match="target dtype is not supported"):
        torch.autocast("cpu", dtype=torch.float64)
    with pytest.raises(RuntimeError, match="Expected one of cpu, cuda"):
        torch.autocast("tpu")


def test_functions_with_their_own_rules():
    class Double(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)
        def forward(ctx, x):
            return x * 2

        @staticmethod
        @torch.amp.custom_bwd(device_type="cpu")
        def backward(ctx, grad):
            assert not torch.is_autocast_enabled("cpu")
            return grad * 2

    x = torch.ones(2, dtype=torch.bfloat16, requires_grad=True)
    with torch.autocast("cpu"):
        y = Double.apply(x)
    assert y.dtype is torch.float32
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_a_parameter_is_converted_once_in_a_region():
    w = torch.ones(3, 3, requires_grad=True)
    a = torch.ones(3, 3)
    with torch.autocast("cpu"):
        first, second = torch.mm(w, a), torch.mm(w, a)
        with torch.autocast("cpu"):
            third = torch.mm(w, a)
    sources = {each.grad_fn.next_functions[0][0] for each in (first, second, third)}
    assert len(sources) == 1
    assert sources.pop().name() == "ToCopyBackward0"
    with torch.autocast("cpu", cache_enabled=False):
        first, second = torch.mm(w, a), torch.mm(w, a)
    assert first.grad_fn.next_functions[0][0] is not second.grad_fn.next_functions[0][0]


def test_learnt_ways_give_way_in_a_region_and_come_back():
    a = torch.ones(4, 4)
    for _ in range(3):
        assert torch.mm(a, a).dtype is torch.float32
    for _ in range(3):
        with torch.autocast("cpu"):
            assert torch.mm(a, a).dtype is torch.bfloat16
            assert (a @ a).dtype is torch.bfloat16
            assert F.linear(a, a, a[0]).dtype is torch.bfloat16
            assert (a + a).dtype is torch.float32
        assert torch.mm(a, a).dtype is torch.float32
        assert F.linear(a, a, a[0]).dtype is torch.float32


def test_another_thread_is_not_in_the_region():
    a = torch.ones(4, 4)
    found = []
    with torch.autocast("cpu"):
        other = threading.Thread(target=lambda: found.append((a @ a).dtype))
        other.start()
        other.join()
        assert (a @ a).dtype is torch.bfloat16
    assert found == [torch.float32]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda a, b: torch.mv(a, a[0]), "float32"),
        (lambda a, b: torch.addmm(a, a, b), "bfloat16"),
        (lambda a, b: torch.einsum("ij,jk->ik", a, a), "bfloat16"),
        (lambda a, b: torch.einsum("i,j->ij", a[0], a[0]), "float32"),
        (lambda a, b: torch.mm(a, a, out=torch.empty(3, 3)), "float32"),
        (lambda a, b: a.clone().addmm_(a, a), "float32"),
        (lambda a, b: torch.softmax(b, 0), "bfloat16"),
        (lambda a, b: torch.prod(b), "float32"),
        (lambda a, b: torch.stack([a, b]), "float32"),
        (lambda a, b: F.prelu(a, a[0, :1]), "bfloat16"),
        (lambda a, b: F.mse_loss(b, a.double()), "float64"),
        (lambda a, b: F.soft_margin_loss(b, b), "float32"),
        (lambda a, b: F.gaussian_nll_loss(b, b, b), "bfloat16"),
        (lambda a, b: F.pad(b[None], (1, 1), mode="reflect"), "float32"),
        (lambda a, b: F.pad(b[None], (1, 1), mode="circular"), "bfloat16"),
        (lambda a, b: torch.linalg.qr(b + torch.eye(3, dtype=b.dtype))[0], "float32"),
        (lambda a, b: torch.nn.LSTM(3, 2)(a)[0], "bfloat16"),
        (lambda a, b: torch.nn.RNN(3, 2)(a)[0], "bfloat16"),
        (lambda a, b: torch.nn.GRU(3, 2)(a)[0], "float32"),
        (lambda a, b: torch.nn.LSTMCell(3, 2)(a)[0], "float32"),
        (lambda a, b: F.scaled_dot_product_attention(a[None], a[None], a[None]), "bfloat16"),
        (lambda a, b: F.bilinear(a, a, a[None]), "float32"),
        (lambda a, b: F.bilinear(a.half(), a.half(), a[None].half()), "float16"),
        (lambda a, b: a.to_sparse() @ a, "bfloat16"),
        (lambda a, b: torch.mv(a.to_sparse(), a[0]), "bfloat16"),
        (lambda a, b: torch.sparse.mm(a.to_sparse(), a.half()), "bfloat16"),
        (lambda a, b: torch.sparse.mm(a.to_sparse().double(), a.double()), "float64"),
        (lambda a, b: torch.sparse.addmm(a, a.to_sparse(), a), "bfloat16"),
        (lambda a, b: torch.sparse.mm(a.to_sparse(), a.to_sparse()), "float32"),
    ],
)
def test_policies_are_torchs(call, expected):
    """As torch 2.13 answers on a CPU."""
    a = torch.ones(3, 3)
    with torch.autocast("cpu"):
        assert call(a, a.bfloat16()).dtype is getattr(torch, expected)
