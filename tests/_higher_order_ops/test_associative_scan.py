"""Running combinations."""

import pytest

import flambeau as torch
from flambeau._higher_order_ops.associative_scan import associative_scan


@pytest.mark.parametrize("reverse", [False, True])
def test_a_linear_recurrence_is_a_scan_of_pairs(reverse):
    gain, gift = torch.rand(2, 5, requires_grad=True), torch.randn(2, 5)

    def combined(left, right):
        return {
            "gain": left["gain"] * right["gain"],
            "gift": left["gift"] * right["gain"] + right["gift"],
        }

    made = associative_scan(combined, {"gain": gain, "gift": gift}, 1, reverse=reverse)
    state, want = torch.zeros(2), []
    for place in range(5)[:: -1 if reverse else 1]:
        state = state * gain[:, place] + gift[:, place]
        want.append(state)
    want = torch.stack(want[:: -1 if reverse else 1], 1)
    assert torch.allclose(made["gift"], want, atol=1e-6)
    made["gift"].sum().backward()
    assert gain.grad is not None


def test_what_is_no_tensor_is_refused():
    with pytest.raises(ValueError, match="xs leaves must be a Tensor"):
        associative_scan(max, [1], 0)
    with pytest.raises(ValueError, match="Expected at least 1 xs leaf"):
        associative_scan(max, [], 0)
    with pytest.raises(ValueError, match="must have same dim 0 size"):
        associative_scan(max, [torch.ones(2), torch.ones(3)], 0)
