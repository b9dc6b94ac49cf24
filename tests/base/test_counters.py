"""Counters are attributes in Python and words in memory."""

import ctypes

from flambeau.base.counters import Counter, Counters


class Counted(Counters):
    """Two words."""

    __slots__ = ()

    first = Counter()
    second = Counter()


def test_attributes_are_the_words_in_order():
    counted, other = Counted(), Counted()
    counted.second += 5
    counted.first = 3
    assert counted.words.tolist() == [3, 5]
    assert other.words.tolist() == [0, 0]


def test_what_is_counted_in_memory_is_seen():
    counted = Counted()
    ctypes.c_int64.from_address(counted.address + 8).value = 7
    assert (counted.first, counted.second) == (0, 7)
