"""torch's random tensors: which forms of a call are taken."""

import pytest

import flambeau as torch


@pytest.mark.parametrize(
    "call",
    [
        lambda: torch.randint(5),
        lambda: torch.randint(),
        lambda: torch.randint(0, 5, 2),
        lambda: torch.randint(high=5),
    ],
)
def test_randint_wants_a_size(call):
    with pytest.raises(TypeError, match=r"^randint\(\) received an invalid combination of argum"):
        call()


def test_forms_of_randint_draw_the_same():
    drawn = []
    for call in (
        lambda: torch.randint(9, (3,)),
        lambda: torch.randint(0, 9, [3]),
        lambda: torch.randint(low=0, high=9, size=torch.Size((3,))),
        lambda: torch.randint(0, high=9, size=(3,)),
    ):
        torch.manual_seed(0)
        drawn.append(call().tolist())
    assert all(each == drawn[0] for each in drawn)
    assert torch.randint(9, ()).shape == ()


def drawn(call, seed=3):
    """A call's values and the state afterwards."""
    torch.manual_seed(seed)
    return call().tolist(), torch.get_rng_state().tolist()


@pytest.mark.parametrize(
    ("into", "in_place"),
    [
        (lambda t: torch.rand(t.shape, out=t), lambda t: t.uniform_()),
        (lambda t: torch.randn(t.shape, out=t), lambda t: t.normal_()),
        (lambda t: torch.randint(3, 9, t.shape, out=t), lambda t: t.random_(3, 9)),
        (lambda t: torch.normal(1.0, 2.0, t.shape, out=t), lambda t: t.normal_(1.0, 2.0)),
    ],
)
def test_out_keeps_its_strides_and_is_filled_in_memory_order(into, in_place):
    def target():
        return torch.zeros(20, 3).t()

    assert drawn(lambda: into(target())) == drawn(lambda: in_place(target()))
    kept = target()
    assert into(kept) is kept
    assert kept.stride() == (1, 3)


def test_chances_in_a_tensor_are_drawn_in_the_targets_memory_order():
    chances = torch.full((4, 20), 0.5)
    found = drawn(lambda: torch.zeros(20, 4).t().bernoulli_(chances))
    assert found == drawn(lambda: torch.bernoulli(chances.t()).t())


def test_dropout_keeps_the_order_of_dims():
    x = torch.ones(4, 5, 6).permute(2, 0, 1)
    assert torch.nn.functional.dropout(x, 0.5).stride() == x.stride()


def test_normal_has_the_dtype_of_its_mean():
    mean, std = torch.zeros(3, dtype=torch.float16), torch.ones(3)
    assert torch.normal(mean, std).dtype == torch.float16
    assert torch.normal(0.0, std.double()).dtype == torch.float64


@pytest.mark.parametrize(
    "draw",
    [
        torch.bernoulli,
        torch.poisson,
        lambda p: torch.normal(p, 1.0),
        lambda p: torch.normal(0.0, p),
        lambda p: torch.normal(p, torch.ones(2, 3)),
    ],
)
def test_draws_do_not_move_with_their_parameters(draw):
    p = torch.full((3,), 0.5, requires_grad=True)
    draw(p).sum().backward()
    assert p.grad.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    "refused",
    [
        lambda: torch.zeros(3, requires_grad=True).uniform_(),
        lambda: torch.zeros(3, requires_grad=True).bernoulli_(0.5),
        lambda: torch.zeros(1).expand(3).bernoulli_(0.5),
        lambda: torch.zeros(3, dtype=torch.complex64).bernoulli_(0.5),
        lambda: torch.zeros(0).log_normal_(0.0, 0.0),
        lambda: torch.zeros(3).random_(5, 3),
    ],
)
def test_a_refused_draw_uses_no_words(refused):
    torch.manual_seed(0)
    before = torch.get_rng_state()
    with pytest.raises((RuntimeError, NotImplementedError)):
        refused()
    assert torch.equal(torch.get_rng_state(), before)


def test_a_generator_is_a_generator():
    with pytest.raises(TypeError, match=r"must be torch\.Generator, not int"):
        torch.zeros(3).uniform_(generator=5)


@pytest.mark.parametrize(
    ("bounds", "first"),
    [
        ((0, 2**28 - 1), [209652528.0, 130329280.0]),
        ((-(2**25) + 1, 2**25 + 1), [-25228628.0, 29665840.0]),
    ],
)
def test_bounds_that_float32_rounds_move_inward(bounds, first):
    torch.manual_seed(0)
    assert torch.empty(2).random_(*bounds).tolist() == first
