"""Spreading over devices that are not there."""

import pytest

import flambeau as torch
from flambeau.nn import parallel
from flambeau.nn.parallel.scatter_gather import scatter_kwargs


def test_modules_are_applied_in_turn():
    found = parallel.parallel_apply([torch.nn.Identity(), torch.nn.ReLU()],
                                    [torch.ones(1), (-torch.ones(1),)])  # fmt: skip
    assert [each.item() for each in found] == [1.0, 0.0]
    with pytest.raises(AssertionError, match="The number of modules 1 is not equal"):
        parallel.parallel_apply([torch.nn.Identity()], [])


def test_what_holds_no_tensor_is_repeated():
    assert parallel.scatter(3, [0, 1]) == [3, 3]
    assert scatter_kwargs((1,), {"a": 2}, [0]) == (((1,),), ({"a": 2},))


@pytest.mark.parametrize(
    ("call", "what"),
    [(lambda x: parallel.scatter([x], [0]), "Scatter"),
     (lambda x: parallel.gather([x], "cpu"), "Gather"),
     (lambda x: parallel.replicate(torch.nn.Linear(1, 1), [0]), "Broadcast")],
)  # fmt: skip
def test_tensors_are_refused(call, what):
    with pytest.raises(AssertionError, match=f"{what} function not implemented for CPU tensors"):
        call(torch.ones(1))
