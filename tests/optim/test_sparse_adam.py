"""SparseAdam against values recorded from torch 2.13."""

import pytest

import flambeau as torch


def test_the_rows_read_move_as_torchs():
    table = torch.nn.Embedding(4, 2, sparse=True)
    with torch.no_grad():
        table.weight.copy_(torch.arange(8.0).reshape(4, 2))
    optimizer = torch.optim.SparseAdam(table.parameters(), lr=0.1, betas=(0.5, 0.6))
    for batch in ((1, 3, 1), (2, 3, 0)):
        optimizer.zero_grad()
        (table(torch.tensor(batch)) ** 2).sum().backward()
        optimizer.step()
    wanted = [
        [0.0, 0.9156726002693176], [1.899999976158142, 2.9000000953674316],
        [3.915672540664673, 4.915672779083252], [5.800073623657227, 6.800062656402588],
    ]  # fmt: skip
    assert torch.allclose(table.weight, torch.tensor(wanted))
    state = optimizer.state_dict()["state"][0]
    assert state["step"] == 2
    assert torch.allclose(state["exp_avg"][3], torch.tensor([8.9, 10.4]))
    other = torch.optim.SparseAdam(table.parameters())
    other.load_state_dict(optimizer.state_dict())
    assert other.param_groups[0]["lr"] == 0.1


def test_refusals():
    parameter = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SparseAdam([parameter])
    parameter.grad = torch.ones(2)
    with pytest.raises(RuntimeError, match="SparseAdam does not support dense gradients"):
        optimizer.step()
    with pytest.raises(ValueError, match=r"Invalid learning rate: 0\.0"):
        torch.optim.SparseAdam([parameter], lr=0.0)
    with pytest.raises(ValueError, match="Invalid beta parameter at index 0"):
        torch.optim.SparseAdam([parameter], betas=(1.0, 0.1))
