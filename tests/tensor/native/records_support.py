"""Random programs whose records, graphs and results are written down, to be compared between the
native recorder and the closures: python records_support.py SEED COUNT."""

import random
import sys

import flambeau as torch
from flambeau.engine import callsite, stream
from flambeau.gradients.graph import AccumulateGrad, OperatorNode, Output

SHAPES = [(4,), (3, 4), (1, 4), (3, 1), (), (2, 3, 4)]


class Program:
    """One random program over a handful of tensors."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        torch.manual_seed(seed)
        self.lines = []
        self.errors = []
        self.records = []
        self.tensors = [
            torch.randn(*shape).requires_grad_(self.random.random() < 0.4)
            for shape in self.random.choices(SHAPES, k=4)
        ]
        self.tensors.append(torch.arange(12).reshape(3, 4))

    def pick(self):
        return self.random.choice(self.tensors)

    def number(self):
        return self.random.choice([2, 0.5, -1, 3, 0, 2.0, 1e-3, 7])

    def step(self):
        r = self.random
        x, y = self.pick(), self.pick()
        kind = r.randrange(16)
        if kind <= 3:
            f = r.choice(["__add__", "__sub__", "__mul__", "__truediv__", "__gt__", "__eq__"])
            return getattr(x, f)(y if r.random() < 0.6 else self.number())
        if kind == 4:
            return r.choice([torch.tanh, torch.exp, torch.relu, torch.neg, torch.sigmoid])(x)
        if kind == 5:
            return x ** self.number()
        if kind == 6:
            return r.choice([x.sum, x.mean, x.amax])(*([0] if r.random() < 0.5 else []))
        if kind == 7:
            return x.softmax(-1)
        if kind == 8:
            return x[r.randrange(-3, 3)]
        if kind == 9:
            return r.choice(
                [
                    lambda: x.reshape(-1),
                    lambda: x.transpose(0, -1),
                    lambda: x.view(4),
                    lambda: x.unsqueeze(0),
                    lambda: x.expand(3, 4),
                    lambda: x[..., 1:],
                ]
            )()
        if kind == 10:
            return torch.stack([x, y])
        if kind == 11:
            return torch.where(x > 0, x, y)
        if kind == 12:
            with torch.no_grad():
                r.choice([x.add_, x.mul_, x.sub_])(y if r.random() < 0.5 else self.number())
            return x
        if kind == 13:
            given = [self.number()] if r.random() < 0.9 else []
            return r.choice([x.add_, x.mul_, x.tanh_])(*given)
        if kind == 14:
            return torch.add(x, y, alpha=self.number())
        return x.detach() * y

    def run(self, count):
        for _ in range(count):
            try:
                made = self.step()
            except (RuntimeError, IndexError, TypeError) as error:
                self.errors.append(f"{type(error).__name__}: {error}")
                continue
            self.note_records()
            if made._layout.n_elements < 200:
                self.tensors[self.random.randrange(len(self.tensors))] = made
        self.lines += self.records
        self.lines += [graph_of(tensor) for tensor in self.tensors]
        self.backward()
        self.note_records()
        self.lines += self.records[-40:]
        self.lines += self.errors
        with torch.no_grad():
            self.lines += [repr(tensor.detach().tolist()) for tensor in self.tensors]
            grads = [t.grad for t in self.tensors if t.is_leaf and t.grad is not None]
            self.lines += [repr(grad.tolist()) for grad in grads]
        self.lines += [str(tensor._version) for tensor in self.tensors]

    def backward(self):
        for tensor in self.tensors:
            if tensor.requires_grad and tensor.dtype.is_floating_point:
                try:
                    tensor.sum().backward(retain_graph=self.random.random() < 0.5)
                except RuntimeError as error:
                    self.errors.append(f"{type(error).__name__}: {error}")

    def note_records(self):
        """The records of the open segment, as text."""
        segment = stream.current().segment
        self.records = [record_text(record) for record in segment.records]
        self.records.append(repr((segment.touched, segment.offsets, len(segment.fresh))))


def record_text(record):
    """One record: operator, layouts, slots, numbers and line."""
    (signature, *slots), numbers, site = record
    return repr(
        (
            signature.operator.name,
            signature.all_layouts,
            str(signature.attributes),
            slots,
            [(type(n).__name__, n) for n in numbers],
            callsite.describe(site),
        )
    )


def graph_of(tensor):
    """The nodes behind a tensor: names, edges, what they save, their lines."""
    lines, seen, stack = [], {}, [tensor._autograd]
    while stack:
        history = stack.pop()
        node = history.node if isinstance(history, Output) else history
        if node is None or node in seen:
            continue
        seen[node] = len(seen)
        saved = getattr(node, "saved", None) if isinstance(node, OperatorNode) else None
        lines.append(
            (
                node.node_name(),
                type(saved).__name__,
                saved_texts(saved),
                [None if e is None else (type(e).__name__, e.output_index) for e in node.edges],
                [str(each) for each in node.layouts],
                callsite.describe(node.site),
                isinstance(node, AccumulateGrad) or sorted(map(str, type(node).__slots__)),
            )
        )
        stack.extend(node.edges)
    return repr(lines)


def saved_texts(saved):
    """What a node saved; how many empty places follow does not matter."""
    texts = [saved_text(each) for each in saved or ()]
    while texts and texts[-1] == "None":
        texts.pop()
    return texts


def saved_text(entry):
    """A saved value without addresses."""
    if isinstance(entry, tuple):
        storage, layout, offset, history, counter, version = entry
        return (str(layout), offset, type(history).__name__, counter is storage, version)
    return repr(entry)


def main(seed, count):
    for number in range(count):
        program = Program(seed + number)
        program.run(40)
        print(f"--- program {seed + number}")
        for line in program.lines:
            print(line)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
