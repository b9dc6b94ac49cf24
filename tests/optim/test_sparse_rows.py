"""Steps of parameters whose gradient is sparse."""

import pytest

import flambeau as torch

BATCHES = ((1, 3, 1), (2, 3, 0))


def trained(make, sparse, batches=BATCHES):
    table = torch.nn.Embedding(4, 2, sparse=sparse)
    with torch.no_grad():
        table.weight.copy_(torch.arange(8.0).reshape(4, 2))
    optimizer = make(table.parameters())
    for batch in batches:
        optimizer.zero_grad()
        (table(torch.tensor(batch)) ** 2).sum().backward()
        optimizer.step()
    return table.weight.detach(), optimizer


@pytest.mark.parametrize(
    "make",
    [
        lambda p: torch.optim.SGD(p, lr=0.1),
        lambda p: torch.optim.SGD(p, lr=0.1, maximize=True),
        lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.25),
        lambda p: torch.optim.Adagrad(p, lr=0.1, lr_decay=0.5),
    ],
)
def test_as_with_dense_gradients(make):
    assert torch.allclose(trained(make, True)[0], trained(make, False)[0])


def test_lbfgs_takes_them_as_dense_ones():
    ends = []
    for sparse in (True, False):
        table = torch.nn.Embedding(4, 2, sparse=sparse)
        torch.nn.init.ones_(table.weight)
        optimizer = torch.optim.LBFGS(table.parameters(), max_iter=2)

        def closure(table=table, optimizer=optimizer):
            optimizer.zero_grad()
            loss = (table(torch.tensor([1, 2])) ** 2).sum()
            loss.backward()
            return loss

        optimizer.step(closure)
        ends.append(table.weight.detach())
    assert torch.equal(*ends)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("Adam", "Adam does not support sparse gradients, please consider SparseAdam instead"),
        ("AdamW", "Adam does not support sparse gradients, please consider SparseAdam instead"),
        *((name, f"{name} does not support sparse gradients")
          for name in ("RMSprop", "Adadelta", "Adamax", "NAdam", "RAdam", "ASGD", "Rprop",
                       "Adafactor", "Muon")),
    ],
)  # fmt: skip
def test_the_others_refuse_them(name, says):
    with pytest.raises(RuntimeError, match=says):
        trained(getattr(torch.optim, name), True)


def test_decay_is_refused():
    with pytest.raises(RuntimeError, match=r"add.sparse, dense. is not supported"):
        trained(lambda p: torch.optim.SGD(p, lr=0.1, weight_decay=0.1), True)
    with pytest.raises(RuntimeError, match="weight_decay option is not compatible with sparse"):
        trained(lambda p: torch.optim.Adagrad(p, weight_decay=0.1), True)
