"""`python -m flambeau doctor` computes something and says where."""

from flambeau.cli.doctor import report


def test_report_computes():
    lines = dict(line.split("  ", 1) for line in report().splitlines())
    assert lines["flambeau"].strip() == "2.13.0+flambeau.0.1"
    computed = next(text for name, text in lines.items() if name.startswith("computes"))
    # a = [[0, 1, 2], [3, 4, 5]]: (a @ a.T).sum() = |a[0] + a[1]|^2 = 9 + 25 + 49
    assert "(a @ a.T).sum() = 83" in computed
    assert "[[6.0, 10.0, 14.0], [6.0, 10.0, 14.0]]" in computed
