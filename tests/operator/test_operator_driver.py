"""Where segments come to lie: as an H200's driver put them, and what the allocator reserves with its addresses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpulint.allocator import MIB, Allocator, Settings
from gpulint.allocator.driver import AnyOrder, Driver

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
[MEASURED] = RESULTS.glob("driver-addresses-nvidia-h200-*.json")
ASKED: dict[str, list[list[int]]] = json.loads(MEASURED.read_text())["asked"]
CHUNK = 32


def _with_a_context() -> Driver:
    """As it is when a program begins: two chunks of the context's own have room for 24 and for 2 MiB, and below them it has 384."""
    driver = Driver()
    for size in (8, 64, 30, 384):
        driver.malloc(size * MIB)
    return driver


@pytest.mark.parametrize("events", ASKED.values(), ids=ASKED)
def test_each_address_is_the_one_that_the_driver_gave(events: list[list[int]]) -> None:
    driver = _with_a_context()
    first = next((size, address) for size, address in events if size > 0 and not address % CHUNK)
    top = first[1] + -(-first[0] // CHUNK) * CHUNK + 512
    shift = (1 << 46) - top * MIB
    given: list[int] = []
    for what, address in events:
        if what > 0:
            given.append(driver.malloc(what * MIB))
            assert given[-1] - shift == address * MIB
        else:
            driver.free(given[-what - 1])


def test_what_the_driver_does_not_know_is_passed_over_and_stays_above() -> None:
    driver = Driver()
    driver.free(12345)
    driver.stay_below(1000 * MIB)
    assert driver.malloc(2 * MIB) == 960 * MIB
    driver.stay_below(5000 * MIB)
    assert driver.malloc(100 * MIB) == 832 * MIB


def test_an_allocator_that_gives_segments_back_is_given_their_addresses_again() -> None:
    model = Allocator()
    kept = model.malloc(20 * MIB)
    for _ in range(50):
        again = model.malloc(100 * MIB)
        model.free(again)
        model.empty_cache()
    assert kept - again < 1 << 30


def _played(seeds: list[int]) -> set[int]:
    found = set()
    for seed in seeds:
        model = Allocator(addresses=AnyOrder(seed))
        pieces = [model.malloc(size * MIB) for size in (40, 30, 40, 30)]
        for piece in pieces:
            model.free(piece)
        model.malloc(12 * MIB)  # of which of the two of 30 MiB?
        found.add(model.largest_free)
        assert model.reserved == 140 * MIB
    return found


def test_any_order_is_the_same_each_time() -> None:
    def addresses(seed: int) -> list[int]:
        order = AnyOrder(seed)
        return [order.malloc(2 * MIB) for _ in range(5)]

    assert addresses(3) == addresses(3) != addresses(4)
    assert len(set(addresses(3))) == 5
    assert _played([0, 1, 2]) == {40 * MIB}


@pytest.mark.parametrize("expandable", [False, True])
def test_the_size_of_large_segments_is_a_setting(expandable: bool) -> None:
    model = Allocator(Settings(expandable=expandable, large_segment=64 * MIB))
    model.malloc(2 * MIB)
    assert model.reserved == 64 * MIB
