"""no_grad, enable_grad, set_grad_enabled, inference_mode."""

import threading

import pytest

import flambeau as torch


def leaf(*values):
    return torch.tensor(list(values), requires_grad=True)


def test_no_grad():
    x = leaf(1.0)
    with torch.no_grad():
        y = x * 2.0
        with torch.enable_grad():
            z = x * 2.0
        assert not torch.is_grad_enabled()
    assert torch.is_grad_enabled()
    assert (y.requires_grad, z.requires_grad) == (False, True)


def test_restored_after_an_error():
    with pytest.raises(ValueError, match="inside"), torch.no_grad():
        raise ValueError("inside")
    assert torch.is_grad_enabled()


def test_decorators():
    @torch.no_grad()
    def with_parentheses():
        return torch.is_grad_enabled()

    @torch.no_grad
    def without():
        return torch.is_grad_enabled()

    @torch.set_grad_enabled(False)
    def setting():
        return torch.is_grad_enabled()

    @torch.inference_mode()
    def inference():
        return torch.is_grad_enabled(), torch.is_inference_mode_enabled()

    assert torch.is_grad_enabled()
    assert (with_parentheses(), without(), setting()) == (False, False, False)
    assert inference() == (False, True)
    assert torch.is_grad_enabled()
    assert with_parentheses.__name__ == "with_parentheses"


def test_generators():
    @torch.no_grad()
    def values():
        received = yield torch.is_grad_enabled()
        try:
            yield received, torch.is_grad_enabled()
        except KeyError:
            yield "caught", torch.is_grad_enabled()
        return "done"

    generator = values()
    assert next(generator) is False
    assert torch.is_grad_enabled()
    assert generator.send("sent") == ("sent", False)
    assert generator.throw(KeyError("thrown")) == ("caught", False)
    with pytest.raises(StopIteration) as stop:
        next(generator)
    assert stop.value.value == "done"
    assert torch.is_grad_enabled()


def test_set_grad_enabled_as_a_function():
    torch.set_grad_enabled(False)
    try:
        assert not (leaf(1.0) * 2.0).requires_grad
    finally:
        torch.set_grad_enabled(True)
    with torch.set_grad_enabled(False):
        assert not torch.is_grad_enabled()
    assert torch.is_grad_enabled()
    assert repr(torch.set_grad_enabled(True)) == (
        "torch.autograd.grad_mode.set_grad_enabled(mode=True)"
    )


def test_mode_is_a_threads_own():
    seen = []
    with torch.no_grad():
        thread = threading.Thread(target=lambda: seen.append(torch.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_inference_tensors():
    x = leaf(1.0)
    with torch.inference_mode():
        y = torch.tensor([2.0]) * 3.0
        assert not (x * 2.0).requires_grad
    assert y.is_inference()
    assert not x.is_inference()
    assert (x + y).requires_grad  # add saves nothing
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        _ = x * y
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside"):
        y.add_(1.0)
    assert y.tolist() == [7.0]  # torch, too, finds out after the write, as it counts it
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside"):
        torch.add(y, 1.0, out=y)
    with pytest.raises(RuntimeError, match="Setting requires_grad=True on inference tensor"):
        y.requires_grad_()
    with pytest.raises(RuntimeError, match="Inference tensors do not track version counter"):
        _ = y._version
    assert not y.clone().is_inference()
    with torch.inference_mode():
        y.add_(1.0)
    assert y.tolist() == [9.0]


def test_backward_runs_with_grad_mode_off():
    x = leaf(1.0)
    seen = []
    y = x * 2.0
    y.register_hook(lambda grad: seen.append(torch.is_grad_enabled()))
    y.sum().backward(retain_graph=True)
    y.sum().backward(create_graph=True)
    assert seen == [False, True]
    assert torch.is_grad_enabled()
