"""Memory that forked processes see: share_memory_ and training in several of them at once."""

import os

import flambeau as torch
from flambeau import nn


def in_child(work):
    """Run in a forked process; its exit status."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1]


def test_what_a_child_writes_is_seen():
    x = torch.arange(6.0).reshape(2, 3)
    row = x[1]
    assert not x.is_shared()
    assert x.share_memory_() is x
    assert x.is_shared()
    assert row.is_shared()

    def work():
        row.mul_(2)
        x[0, 0] = 7

    assert in_child(work) == 0
    assert x.tolist() == [[7, 1, 2], [6, 8, 10]]
    assert torch.zeros(0).share_memory_().shape == (0,)


def test_children_train_one_model():
    torch.manual_seed(0)
    model = nn.Linear(3, 1)
    model.share_memory()
    inputs = torch.randn(64, 3)
    target = inputs @ torch.tensor([[1.0], [-2.0], [0.5]])

    def work():
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(60):
            optimizer.zero_grad()
            nn.functional.mse_loss(model(inputs), target).backward()
            optimizer.step()

    before = nn.functional.mse_loss(model(inputs), target).item()
    assert in_child(work) == in_child(work) == 0
    assert nn.functional.mse_loss(model(inputs), target).item() < before / 100
