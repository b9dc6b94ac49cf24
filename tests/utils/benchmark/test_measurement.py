"""Measurements print, sum up and warn as torch 2.13's do; the texts were recorded from it."""

import pytest

from flambeau.utils.benchmark import Measurement, TaskSpec, select_unit

SPREAD = [1e-3, 1e-3, 1e-3, 1.2e-3, 9.1e-3] * 3
TEXTS = [
    (
        Measurement(1, [1e-6, 2e-6, 3e-6, 4e-6, 5e-6], TaskSpec("foo(x)", "")),
        """foo(x)
  Median: 3.00 us
  IQR:    2.00 us (2.00 to 4.00)
  5 measurements, 1 runs per measurement, 1 thread
  WARNING: Interquartile range is 66.7% of the median measurement.
           This suggests significant environmental influence.""",
    ),
    (
        Measurement(
            10,
            [1e-3, 1e-3, 1e-3, 1.2e-3, 1.1e-3],
            TaskSpec("foo(x)", "", description="dd", label="LL", sub_label="ss", env="E"),
        ),
        """LL: ss
dd
  Median: 100.00 us
  IQR:    10.00 us (100.00 to 110.00)
  5 measurements, 10 runs per measurement, 1 thread""",
    ),
    (
        Measurement(10, SPREAD, TaskSpec("foo(x)", "a=1\nb=2", num_threads=4)),
        """foo(x)
setup:
  a=1
  b=2

  Median: 100.00 us
  IQR:    20.00 us (100.00 to 120.00)
  15 measurements, 10 runs per measurement, 4 threads
  WARNING: Interquartile range is 20.0% of the median measurement.
           This could indicate system fluctuation.""",
    ),
    (
        Measurement(10, [2.1e-9], TaskSpec("a\nb", "")),
        """stmt:
  a
  b

  0.00 s
  1 measurement, 10 runs , 1 thread""",
    ),
    (
        Measurement(10, [2.1e-9, 2.2e-9], TaskSpec("a\nb", "\n\nx")),
        """stmt:
  a
  b

setup:


  x

  Median: 0.00 s
  2 measurements, 10 runs per measurement, 1 thread""",
    ),
]


@pytest.mark.parametrize(("measurement", "wanted"), TEXTS)
def test_text(measurement, wanted):
    first, _, rest = repr(measurement).partition("\n")
    assert first.endswith(f"Measurement object at {id(measurement):#x}>")
    assert rest == wanted


def test_numbers():
    seen = Measurement(10, SPREAD, TaskSpec("foo(x)", "", num_threads=4))
    assert seen.mean == pytest.approx(0.000266)
    assert seen.median == pytest.approx(1e-4)
    assert seen.iqr == pytest.approx(2e-5)
    assert (seen.significant_figures, seen.has_warnings) == (1, True)
    assert not seen.meets_confidence()
    assert (seen.title, seen.as_row_name, seen.num_threads, seen.env) == (
        "foo(x)",
        "foo(x)",
        4,
        None,
    )
    (merged,) = Measurement.merge([seen, seen])
    assert (merged.number_per_run, merged.times) == (1, seen.times * 2)
    assert select_unit(3.0) == ("s", 1)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        seen.nothing  # noqa: B018
