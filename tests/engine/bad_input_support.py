"""Bad input, written against torch's API, and what each case raises: class and first sentence."""

from __future__ import annotations

import re
from typing import Any

CASES = """
x + torch.ones(4)
x.add_(torch.ones(2, 3))
x @ torch.ones(4)
torch.ones(2, 3) @ torch.ones(4, 2)
x[3]
x[-4]
x[0, 0]
x[torch.tensor([3])]
x.sum(1)
x.sum(-2)
x.reshape(2, 2)
x.view(4)
x.expand(4)
x.expand(2, 2)
x.unsqueeze(3)
x.transpose(0, 1)
x.narrow(0, 2, 2)
x.item()
bool(x)
x.long().add_(0.5)
x.long().div_(2)
x.copy_(torch.ones(2))
x.fill_(torch.ones(2))
torch.cat([x, torch.ones(1, 3)])
torch.cat([])
torch.stack([x, torch.ones(2)])
torch.stack([])
torch.zeros(-1)
torch.zeros(2, -3)
torch.arange(0, 3, -1)
torch.arange(0, 3, 0)
torch.linspace(0, 1, -1)
torch.empty(0).amax()
torch.empty(0).argmax()
torch.empty(2, 0).amax(1)
torch.gather(x, 0, torch.tensor([3]))
torch.gather(x, 1, torch.tensor([0]))
torch.index_select(x, 0, torch.tensor([5]))
x.scatter(0, torch.tensor([7]), 1.0)
x.to("nonsense")
x.to(torch.device("cuda"))
x.backward()
(w * 2).backward()
(w * 2).sum().backward(torch.ones(2))
w.add_(1)
w.numpy()
(w * 1)[:2].numpy()
x.requires_grad_().long().requires_grad_()
x.squeeze(4)
x.permute(0, 0)
x.flip(1)
x.softmax(2)
x.split(0)
x.chunk(0)
x.unbind(2)
torch.where(x > 0, x, torch.ones(2))
x.repeat()
torch.eye(-1)
torch.full((2,), None)
torch.tensor([[1, 2], [3]])
torch.tensor([1, "a"])
x.expand(2, 3).add_(1)
x[1:].add_(x[:-1])
x.type(torch.int64)[0] << "a"
x.set_nothing()
torch.nn.functional.cross_entropy(torch.ones(2, 3), torch.tensor([0, 3]))
torch.nn.functional.cross_entropy(torch.ones(2, 3), torch.tensor([0]))
torch.nn.functional.linear(x, torch.ones(2, 4))
torch.nn.functional.embedding(torch.tensor([9]), torch.ones(3, 2))
torch.nn.functional.dropout(x, 2.0)
torch.ones(3).mean(dtype=torch.int64)
torch.ones(3).long().mean()
torch.multinomial(torch.tensor([-1.0, 2.0]), 1)
torch.bernoulli(torch.tensor([2.0]))
torch.nn.functional.binary_cross_entropy(torch.tensor([2.0]), torch.tensor([1.0]))
torch.clamp(x)
torch.empty(2 ** 62)
torch.from_numpy([1, 2])""".strip().splitlines()


def first_sentence(error: BaseException) -> str:
    """Up to the first full stop that ends a sentence, or the end of the line; numbers of bytes and
    addresses of the machine left out."""
    line = str(error).strip().splitlines()[0] if str(error) else ""
    return re.split(r"(?<=[a-z)\]'\"])\.(?:\s|$)|(?<=\d)\.(?:\s|$)", line)[0].strip()


def outcome(torch: Any, case: str) -> list[str]:
    """Class and first sentence of what a case raises."""
    names = {"torch": torch, "x": torch.arange(3.0), "w": torch.ones(3, requires_grad=True)}
    try:
        eval(case, names)
    except Exception as error:
        return [type(error).__name__, first_sentence(error)]
    return ["nothing", ""]
