"""The allocator model against traces worked out by hand from the allocator's rules, and its segments where an H200's driver put them."""

import itertools
import json
import random
from pathlib import Path

import pytest

from gpulint.allocator import LARGE_SEGMENT, MIB, Allocator, OutOfMemory, Settings, parse_settings
from gpulint.allocator.driver import AnyOrder, Driver


class TestRounding:
    @pytest.mark.parametrize(
        ("size", "rounded"), [(0, 512), (1, 512), (512, 512), (513, 1024), (1000, 1024), (MIB + 1, MIB + 512)]
    )
    def test_to_512(self, size, rounded) -> None:
        assert Allocator().round(size) == rounded

    @pytest.mark.parametrize(
        ("size", "rounded"),
        [
            # between 1024 and 2048 in steps of 256: the example of torch's documentation
            (1200 * MIB, 1280 * MIB),
            (1024 * MIB, 1024 * MIB),
            (1025 * MIB, 1280 * MIB),
            (1200, 1536),  # at most 512 * 4: rounded to 512 only
        ],
    )
    def test_to_divisions(self, size, rounded) -> None:
        assert Allocator("roundup_power2_divisions:4").round(size) == rounded

    def test_divisions_by_size(self) -> None:
        settings = parse_settings("roundup_power2_divisions:[256:1,512:2,1024:4,>:8]")
        assert settings.divisions[:9] == (1,) * 9  # 1 to 256 MiB
        assert settings.divisions[9:12] == (2, 4, 8)
        assert settings.divisions[15] == 8
        gaps = parse_settings("roundup_power2_divisions:[64:8,1024:4]").divisions
        assert gaps == (8,) * 7 + (0, 0, 0, 4) + (0,) * 5
        assert parse_settings("roundup_power2_divisions:[>:4]").divisions == (0,) + (4,) * 15

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("max_split_size_mb:abc", "max_split_size_mb:abc is no whole number"),
            ("large_segment_size_mb:1.5", "no whole number"),
            ("roundup_power2_divisions:[a:1]", "roundup_power2_divisions:a is no whole number"),
            ("garbage_collection_threshold:x", "no fraction"),
        ],
    )
    def test_what_cannot_be_read_is_said(self, text, said) -> None:
        with pytest.raises(ValueError, match=said):
            parse_settings(text)


class TestDefault:
    def test_empty_cache_keeps_segments_that_a_tensor_is_in(self) -> None:
        model = Allocator()
        model.free(model.malloc(5 * MIB))
        kept = model.malloc(2 * MIB)
        model.empty_cache()
        assert model.reserved == LARGE_SEGMENT
        assert model.largest_free == 18 * MIB
        model.free(kept)

    def test_free_twice(self) -> None:
        model = Allocator()
        address = model.malloc(1)
        model.free(address)
        with pytest.raises(KeyError):
            model.free(address)


class TestCollection:
    def test_old_unsplit_segments_go_above_the_threshold(self) -> None:
        model = Allocator("garbage_collection_threshold:0.5", capacity=1000 * MIB, limit=200 * MIB)
        model.free(model.malloc(60 * MIB))
        model.free(model.malloc(80 * MIB))
        model.malloc(100 * MIB)
        assert model.retries == 0
        assert model.reserved == 180 * MIB  # the older 60 went

    def test_without_a_limit_nothing_is_collected(self) -> None:
        model = Allocator("garbage_collection_threshold:0.1", capacity=200 * MIB)
        model.free(model.malloc(60 * MIB))
        model.malloc(100 * MIB)
        assert model.reserved == 160 * MIB


class TestExpandable:
    def test_unmapped_holes_are_filled_lowest_address_first(self) -> None:
        model = Allocator("expandable_segments:True")
        parts = [model.malloc(20 * MIB) for _ in range(4)]
        model.free(parts[0])
        model.free(parts[2])
        model.empty_cache()
        assert model.malloc(20 * MIB) == parts[0]
        assert model.malloc(20 * MIB) == parts[2]


class TestInvariants:
    @pytest.mark.parametrize(
        "settings",
        [
            "",
            "expandable_segments:True",
            "max_split_size_mb:32",
            "garbage_collection_threshold:0.6",
            "roundup_power2_divisions:4",
            "expandable_segments:True,roundup_power2_divisions:8",
        ],
    )
    @pytest.mark.parametrize("seed", range(3))
    def test_random_programs(self, settings, seed) -> None:
        chance = random.Random(seed)
        model = Allocator(settings, capacity=600 * MIB, limit=500 * MIB)
        live: dict[int, int] = {}
        for _ in range(3000):
            if live and chance.random() < 0.5:
                address = chance.choice(list(live))
                del live[address]
                model.free(address)
            else:
                size = int(2 ** chance.uniform(5, 26))
                try:
                    live[model.malloc(size, chance.choice((0, 0, 0, 7)))] = size
                except OutOfMemory:
                    model.empty_cache()
            blocks = list(model._heap.blocks.values())
            assert model.allocated == sum(b.size for b in blocks if b.allocated) >= sum(live.values())
            assert model.reserved == sum(b.size for b in blocks if b.mapped)
            # The limit is held against the request; expandable segments then map whole pages, as torch does.
            assert model.reserved <= 500 * MIB + ("expandable" in settings) * LARGE_SEGMENT
        spans = sorted((b.address, b.address + b.size) for b in model._heap.blocks.values())
        assert all(end <= start for (_, end), (start, _) in itertools.pairwise(spans))
        for address in live:
            model.free(address)
        model.empty_cache()
        assert (model.allocated, model.reserved) == (0, 0)


# -- where segments come to lie: as an H200's driver put them ------------------------------------------------


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
