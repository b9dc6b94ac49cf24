"""Losses under torch.nn.functional's names: where their warnings point."""

import pytest

import flambeau as torch

F = torch.nn.functional


@pytest.mark.parametrize(
    ("loss", "target"),
    [(F.cross_entropy, torch.tensor([0, 1])), (F.kl_div, torch.ones(2, 3)),
     (F.nll_loss, torch.tensor([0, 1]))],
    ids=["cross_entropy", "kl_div", "nll_loss"],
)  # fmt: skip
def test_the_old_flags_warn_at_the_line_that_gives_them(loss, target):
    with pytest.warns(UserWarning, match="size_average and reduce args") as seen:
        loss(torch.zeros(2, 3), target, reduce=False)
    assert [each.filename for each in seen] == [__file__]
