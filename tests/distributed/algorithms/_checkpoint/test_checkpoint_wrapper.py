"""Modules whose inner values are computed twice."""

import flambeau as torch
from flambeau.distributed.algorithms._checkpoint import checkpoint_wrapper as wrappers


def test_wrapped_modules_compute_what_they_did_and_keep_their_names():
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Tanh(), torch.nn.Linear(3, 1))
    names, x = list(model.state_dict()), torch.randn(4, 2)
    model(x).sum().backward()
    want = [p.grad.clone() for p in model.parameters()]
    state = {name: each.clone() for name, each in model.state_dict().items()}
    wrappers.apply_activation_checkpointing(
        model, check_fn=lambda each: isinstance(each, torch.nn.Linear)
    )
    assert isinstance(model[0], wrappers.CheckpointWrapper)
    assert list(model.state_dict()) == names
    assert [name for name, _ in model[0].named_parameters()] == ["weight", "bias"]
    assert model.load_state_dict(state).missing_keys == []
    model.zero_grad()
    model(x).sum().backward()
    assert all(torch.equal(a, p.grad) for a, p in zip(want, model.parameters(), strict=True))


def test_both_ways_of_checkpointing_are_taken():
    inner, x = torch.nn.Linear(2, 2), torch.randn(1, 2, requires_grad=True)
    way = wrappers.CheckpointImpl.REENTRANT
    wrapped = wrappers.checkpoint_wrapper(inner, way)
    wrapped(x).sum().backward()
    assert torch.equal(x.grad, inner.weight.sum(0, keepdim=True))
