"""The axes of the drawings in the pages."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

from gpulint.reports.page import BOTTOM, HEIGHT, LEFT, MOST_LABELS, RIGHT, WIDTH, amounts, below

MIB = 1024**2


@pytest.mark.parametrize(
    ("high", "said"),
    [
        (67 * MIB, ["0 B", "20 MiB", "40 MiB", "60 MiB"]),
        (1400 * MIB, ["0 B", "512 MiB", "1 GiB"]),
        (5000 * MIB, ["0 B", "1 GiB", "2 GiB", "3 GiB", "4 GiB"]),
        (300, ["0 B", "100 B", "200 B", "300 B"]),
        (1, ["0 B", "1 B"]),
    ],
)
def test_amounts_are_round(high: int, said: list[str]) -> None:
    assert re.findall(r">([^<]+)</text>", amounts(high)) == said


def test_a_lower_edge_that_is_not_zero_has_round_amounts_too() -> None:
    drawn = amounts(61 * MIB, 48 * MIB)
    assert re.findall(r">([^<]+)</text>", drawn) == ["50 MiB", "55 MiB", "60 MiB"]
    assert re.findall(r'y1="([\d.]+)"', amounts(60 * MIB, 50 * MIB))[0] == str(float(HEIGHT - BOTTOM))


@pytest.mark.parametrize("high", [1, 7, 999, 1023, 1025, 10**6, 3 * 10**9, 79 * 1024**3])
def test_there_are_a_few_and_they_leave_room_for_their_words(high: int) -> None:
    said = re.findall(r">([^<]+)</text>", amounts(high))
    assert 2 <= len(said) <= 5
    assert (
        max(map(len, said)) * 22 * 0.6 <= LEFT - 10
    )  # letters of 22 units on a narrow screen, as wide as DejaVu's


def test_words_below_are_few_and_stay_inside() -> None:
    drawn = below([(step / 100, f"step {step}") for step in range(1, 101)])
    placed = re.findall(r'x="([\d.]+)"[^>]*text-anchor="(\w+)">step (\d+)<', drawn)
    assert len(placed) <= MOST_LABELS
    distances = {round(float(b[0]) - float(a[0])) for a, b in pairwise(placed)}
    assert len(distances) == 1
    (end,) = re.findall(r'x="([\d.]+)"[^>]*text-anchor="(\w+)"', below([(1.0, "step 1")]))
    assert end == (str(float(WIDTH - RIGHT)), "end")
    assert re.findall(r'x="([\d.]+)"[^>]*text-anchor="(\w+)"', below([(0.0, "")])) == [
        (str(float(LEFT)), "start")
    ]
    assert below([]) == ""
