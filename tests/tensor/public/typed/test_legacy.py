"""The old types that recognise and make tensors."""

import pytest

import flambeau as torch

NOT_AVAILABLE = "type torch.cuda.FloatTensor not available. Torch not compiled with CUDA enabled."


def test_types_of_the_cpu_recognise_their_dtype():
    assert isinstance(torch.ones(1), torch.FloatTensor)
    assert not isinstance(torch.ones(1), torch.DoubleTensor)
    assert repr(torch.FloatTensor) == "<class 'torch.FloatTensor'>"


def test_types_of_cuda_recognise_and_make_nothing():
    kind = torch.cuda.FloatTensor
    assert repr(kind) == "<class 'torch.cuda.FloatTensor'>"
    assert kind.is_cuda
    assert kind.dtype is torch.float32
    assert not isinstance(torch.ones(1), kind)
    for make in (lambda: kind(2), lambda: torch.set_default_tensor_type(kind),
                 lambda: torch.set_default_tensor_type("torch.cuda.FloatTensor")):  # fmt: skip
        with pytest.raises(TypeError, match=NOT_AVAILABLE):
            make()


def test_streams_and_events_of_cuda_cannot_be_made():
    for kind, text in (
        (torch.cuda.Event, "Tried to instantiate dummy base class Event"),
        (torch.cuda.CUDAGraph, "Tried to instantiate dummy base class CUDAGraph"),
        (torch.cuda.graph_pool_handle, "Tried to instantiate dummy base class _graph_pool_handle"),
        (torch.cuda.Stream, r"torch\.cuda\.Stream requires CUDA support"),
    ):
        with pytest.raises(RuntimeError, match=text):
            kind()
