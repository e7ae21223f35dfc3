"""How often lines ran at which loops begin."""

from __future__ import annotations

import sys

import pytest

from gpulint.runtime.observing.lines import Ticks

pytestmark = pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring is of Python 3.12")


def rounds(number: int) -> int:
    total = 0
    for one in range(number):
        total += one
    return total


def others(number: int) -> int:
    total = 0
    while total < number:
        total += 1
    return total


def head(function: object) -> int:
    return function.__code__.co_firstlineno + 2  # type: ignore[attr-defined]


def test_a_loop_ticks_in_each_round_and_tells_nobody_afterwards() -> None:
    first, second = Ticks(), Ticks()
    first.follow(rounds.__code__, frozenset({head(rounds)}))
    rounds(3)
    counted = first.of(rounds.__code__, [head(rounds)])
    first.stop()
    second.follow(others.__code__, frozenset({head(others)}))
    rounds(3)  # nobody follows it any more
    others(2)
    assert first.of(rounds.__code__, [head(rounds)]) == counted
    assert counted[0] >= 3
    assert second.of(others.__code__, [head(others)])[0] >= 2
    second.stop()
