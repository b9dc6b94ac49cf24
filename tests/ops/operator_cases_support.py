"""The argument lists that operators declare, with values that any process draws alike.

Keeps     a value depends on the operator's name, the number of the case and the place alone.
Touches   flambeau.ops only: the script that records torch's answers imports this too.
Not here  comparing (tests/test_every_operator.py), recording (tests/recorded)."""

from math import prod
from random import Random

from flambeau.ops import REGISTRY
from flambeau.ops.samples import Case, Drawn, Samples

SAMPLES = Samples()


def cases():
    """(key, operator, case) of the first two and the last argument list of every operator."""
    for name, operator in REGISTRY.items():
        declared = operator.samples(SAMPLES)
        numbers = sorted({0, 1, len(declared) - 1} & set(range(len(declared))))
        for number in numbers:
            yield f"{name} {number}", operator, declared[number]


def complex_cases():
    """The same with complex operands in place of real ones, where there are any."""
    for key, operator, case in cases():
        arguments = [complexed(each) for each in case.arguments]
        named = {name: complexed(each) for name, each in case.keywords.items()}
        if repr((arguments, named)) != repr((list(case.arguments), case.keywords)):
            yield f"{key} complex", operator, Case(tuple(arguments), named)


def complexed(value):
    """What is drawn real, drawn complex."""
    if isinstance(value, list):
        return [complexed(each) for each in value]
    if isinstance(value, Drawn) and value.kind == "real":
        made = Drawn("complex", value.shape, value.low, value.high)
        made.is_transposed = value.is_transposed
        return made
    return value


def drawn_values(drawn, random):
    """The elements of a tensor to be drawn, row-major, as Python numbers."""
    count = prod(drawn.shape)
    if drawn.kind == "boolean":
        return [random.random() < 0.5 for _ in range(count)]
    if drawn.kind in ("integer", "index"):
        return [random.randrange(int(drawn.low), int(drawn.high)) for _ in range(count)]
    if drawn.kind == "permutation":
        columns = [
            random.sample(range(int(drawn.high)), drawn.shape[0])
            for _ in range(prod(drawn.shape[1:]))
        ]
        return [column[row] for row in range(drawn.shape[0]) for column in columns]
    if drawn.kind == "complex":
        low, high = drawn.low, drawn.high
        return [complex(random.uniform(low, high), random.uniform(low, high)) for _ in range(count)]
    return [random.uniform(drawn.low, drawn.high) for _ in range(count)]


def weights(key, count):
    """Numbers to weigh results with, so that every element of a gradient matters."""
    random = Random(f"weights of {key}")
    return [random.uniform(0.5, 1.5) for _ in range(count)]


def arguments(key, case, make):
    """The case's arguments with every drawn tensor made by `make(values, drawn)`."""
    random = Random(key)

    def filled(value):
        if isinstance(value, list):
            return [filled(each) for each in value]
        if not isinstance(value, Drawn):
            return value
        return make(drawn_values(value, random), value)

    return (
        [filled(each) for each in case.arguments],
        {name: filled(each) for name, each in case.keywords.items()},
    )


def flat(values):
    """Tensors that take gradients among arguments, lists opened."""
    opened = [each for value in values for each in (value if isinstance(value, list) else [value])]
    return [each for each in opened if getattr(each, "requires_grad", False)]


def tensor_of(torch, values, drawn):
    """Values as a tensor of either library."""
    element = {
        "boolean": torch.bool, "real": torch.float64, "constant": torch.float64,
        "complex": torch.complex128,
    }  # fmt: skip
    tensor = torch.tensor(values, dtype=element.get(drawn.kind, torch.int64)).reshape(drawn.shape)
    if drawn.is_transposed:
        tensor = tensor.t().contiguous().t()
    return tensor.requires_grad_() if drawn.kind in ("real", "complex") else tensor
