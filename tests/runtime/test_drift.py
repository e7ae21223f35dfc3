"""The judgement on synthetic numbers: what leaks, what only looks like it."""

import dataclasses
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulint.runtime.record import drift
from gpulint.runtime.record.besides import Later
from gpulint.runtime.record.drift import Births
from gpulint.runtime.record.result import Drift, Held, Holder, Sample, Site
from gpulint.runtime.record.series import Window, released

SITE = Site("/train.py", 10, "train")
STEPS = 20
EVERY = list(range(STEPS + 1))


def births(alive: dict[int, int], garbage: dict[int, int] | None = None, series=None) -> Births:
    levels = None if series is None else list(enumerate(series))
    return Births(SITE, "device", alive, dict.fromkeys(alive, 1), garbage or {}, levels)


def status(one: Births, edges=EVERY, age: int = 2) -> str | None:
    found = drift.judge(one, edges, "train", age)
    return None if found is None else found.status


def cumulative(alive: dict[int, int], start: int = 0) -> list[int]:
    totals = [start]
    for step in range(STEPS):
        totals.append(totals[-1] + alive.get(step, 0))
    return totals


def at(steps, size: int = 512) -> dict[int, int]:
    return dict.fromkeys(steps, size)


RANDOM = {step: 512 * (1 + step % 5) for step in range(STEPS) if step not in (4, 11, 15)}
STATUSES = {
    **{
        f"every {period}th step from {first} on": (at(range(first, STEPS, period), 2048), None, "leak")
        for period in (2, 3, 4)
        for first in (0, 1)
    },
    "of random size, a few steps missing": (RANDOM, None, "leak"),
    "one stray survivor beside": (at(range(0, 18, 3), 2048) | {10: 512}, None, "leak"),
    "too many strays": ({0: 2048, 4: 512, 9: 512, 10: 512, 16: 512, 17: 9}, None, "occasional"),
    "young, and not judged": (at((18, 19)), None, None),
    "a rolling window": (at(range(14, STEPS)), [5 * 512] * (STEPS + 1), "occasional"),
    "in the last steps alone": (at(range(15, STEPS)), None, "occasional"),
    "a window that became full": (at(range(2, STEPS)), [min(n, 10) * 512 for n in EVERY], "bounded"),
    "set up once, beside what each leaves": (at(range(STEPS), 4096) | {0: 32 << 20}, None, "leak"),
    "a cache that fills up": (at((0, 1, 2, 4, 7)), None, "occasional"),
    "one alone": ({3: 8 << 20}, None, "occasional"),
}


@pytest.mark.parametrize(("alive", "series", "expected"), STATUSES.values(), ids=STATUSES)
def test_what_survivors_mean(alive, series, expected):
    assert status(births(alive, series=series or cumulative(alive))) == expected


@pytest.mark.parametrize("first", [6, 10, 12])
def test_a_leak_that_begins_within_the_window_is_not_averaged_away(first):
    alive = dict.fromkeys(range(first, STEPS), 4096)
    found = drift.judge(births(alive, series=cumulative(alive)), EVERY, "train")
    assert (found.status, found.bytes_per_step, found.steps) == ("leak", 4096, 18 - first)


def test_intervals_of_several_steps():
    found = drift.judge(births({0: 6 * 512, 1: 6 * 512, 2: 6 * 512}), [0, 6, 12, 18, 20], "train")
    assert (found.status, found.bytes_per_step, found.steps) == ("leak", 512, 18)


def holder(**changes) -> Holder:
    base = Holder(
        "deque `recent` in `train()`", "recent", "deque", "local", "train()", "/train.py", 12, 18, 18 * 512
    )
    return dataclasses.replace(base, births=(Held(SITE, 18, 18 * 512),), **changes)


def test_a_limit_takes_a_leak_back():
    leak = drift.judge(births(dict.fromkeys(range(STEPS), 512)), EVERY, "train")
    (settled,) = drift.settle([leak], [holder(bound=100)])
    assert settled.status == "bounded"
    assert "holds at most 100" in settled.reason
    assert drift.settle([leak], [holder()]) == [leak]
    assert drift.settle([leak], [holder(bound=100, place="host")]) == [leak]


@pytest.mark.parametrize(
    ("changes", "room", "status", "words"),
    [
        ({"length": 18}, None, "bounded", "at most 1000000: 488.28 MiB then"),
        ({"length": 18, "entry": 1024}, None, "bounded", "at most 1000000: 976.56 MiB then"),
        ({"length": 18}, 2**28, "leak", "488.28 MiB then, of 256.00 MiB that there are"),
        ({"length": 18, "pins": "graph"}, None, "leak", "its entries keep whole graphs"),
        ({"length": 18, "pins": "graph", "bound": 20}, None, "bounded", "at most 20"),
    ],
)
def test_a_limit_is_weighed_when_it_is_full(changes, room, status, words):
    leak = drift.judge(births(dict.fromkeys(range(STEPS), 512)), EVERY, "train")
    (settled,) = drift.settle([leak], [holder(**{"bound": 1_000_000, **changes})], room)
    assert settled.status == status
    assert words in settled.reason


MOVED, KEPT = [0, *[320 << 10] * 3], [0, 66 << 10, 132 << 10, 198 << 10]
WINDOWS = {
    "only the address has changed": (at((0, 1), 66 << 10), MOVED, 3, "call", "bounded"),
    "more each time": (at((0, 1), 66 << 10), KEPT, 3, "call", "leak"),
    "outlived twice": (at((0, 1, 2), 4096), None, 3, "evaluation", "leak"),
    "not from the first": (at((1, 2), 4096), None, 3, "evaluation", "occasional"),
    "the last one's may be in use": (at((2,), 4096), None, 3, "evaluation", None),
    "one of two": (at((0, 1), 4096), None, 2, "evaluation", "occasional"),
    "a few steps": (at((0, 1)), None, 3, "", "occasional"),
    # where each step seems to have survivors
    "in one of three steps": (at(range(6), 256), [0, 0, 0, 512, 512, 512, 1024, 1024], 7, "", "occasional"),
}


@pytest.mark.parametrize(("alive", "series", "number", "window", "expected"), WINDOWS.values(), ids=WINDOWS)
def test_what_few_stretches_say(alive, series, number, window, expected):
    found = drift.judge(births(alive, series=series), list(range(number + 1)), "eval", 1, window)
    assert (found and found.status) == expected


def test_what_libraries_set_up_once_is_no_growth():
    levels = [0, 33 << 20 | 4096, 33 << 20 | 8192, 33 << 20 | 12288]
    grown = births({0: 33 << 20 | 4096, 1: 4096, 2: 4096}, series=levels)
    leak = drift.judge(grown, [0, 1, 2, 3], "eval", 1, "trial")
    nothing = dataclasses.replace(holder(), scope="unknown", births=(Held(SITE, 1, 33 << 20, 1),))
    kept = dataclasses.replace(holder(), births=(Held(SITE, 2, 8192, 2),))
    (found,), held = drift.less_set_up([leak], [nothing, kept])
    assert (found.status, found.total, found.bytes_per_step) == ("leak", 8192, 4096)
    assert held == [kept]
    several = dataclasses.replace(nothing, births=(Held(SITE, 2, 33 << 20, 2),))
    assert drift.less_set_up([leak], [several, kept]) == ([leak], [several, kept])


def larger_each_time(number: int, now: int | None = None) -> Births:
    series = [4096 * n for n in range(number)]
    return dataclasses.replace(births({}, series=series), now=series[-1] if now is None else now)


def test_what_is_replaced_by_something_larger_each_time_is_growth():
    found = drift.judge(larger_each_time(21), EVERY, "train")
    assert (found.status, found.bytes_per_step, found.enlarged) == ("leak", 4096, True)
    assert drift.settle([found], [holder()]) == [found]
    assert drift.judge(larger_each_time(21, now=512), EVERY, "train") is None  # it has gone since
    up_and_down = dataclasses.replace(births({}, series=[4096 * (n % 7) for n in range(21)]), now=4096)
    assert drift.judge(up_and_down, EVERY, "train") is None


def test_a_few_larger_ones_are_growth_only_where_each_is_made_of_the_last():
    found = drift.judge(larger_each_time(4), [0, 1, 2, 3], "train", 1, "call of `trial()`")
    assert found.enlarged
    assert drift.settle([found], [holder()]) == []
    assert drift.settle([found], [holder(renews=True)]) == [found]


@given(st.lists(st.integers(0, 3), min_size=21, max_size=21), st.integers(1, 1000))
def test_theil_sen_finds_the_slope_under_bounded_noise(noise, slope):
    values = [slope * 100 * x + n for x, n in enumerate(noise)]
    assert abs(drift.theil_sen(values) - slope * 100) <= 3


def test_theil_sen_shrugs_off_outliers_that_ruin_first_minus_last():
    values = [1000] * 21
    values[-1] = 1_000_000
    assert drift.theil_sen(values) == 0


@given(st.sets(st.integers(0, 17)))
def test_judging_never_fails_and_counts_every_byte(steps):
    found = drift.judge(births(dict.fromkeys(steps, 512)), EVERY, "train")
    assert (found is None) == (not steps)
    if found is not None:
        assert found.total == 512 * len(steps)
        assert found.status != "leak" or len(steps) >= 4


def samples(allocated: list[int], reserved: list[int]) -> list[Sample]:
    return [
        Sample(n, "train", True, float(n), 1.0, allocated=a, reserved=r)
        for n, (a, r) in enumerate(zip(allocated, reserved, strict=True), 1)
    ]


MIB = 1 << 20


def test_reserved_that_grows_while_allocated_stays_is_fragmentation():
    reserved = [100 * MIB + 30 * MIB * step for step in range(20)]
    found = drift.trends("train", samples([50 * MIB + (step % 3) * MIB for step in range(20)], reserved))
    (trend,) = [trend for trend in found if trend.figure == "reserved"]
    assert trend.status == "fragmentation"
    assert "expandable_segments" in trend.advice
    assert trend.reason.startswith("reserved grew by 570.00 MiB while allocated stayed")


@pytest.mark.parametrize("figure", ["allocated", "peak"])
def test_where_tensors_need_more_it_is_not_fragmentation(figure):
    """At the steps' ends or within them, and not in every step: batches that become longer."""
    needed = [50 * MIB] * 12 + [50 * MIB + 40 * MIB * (step // 3) for step in range(8)]
    reserved = [100 * MIB] * 12 + [100 * MIB + 60 * MIB * (step // 3) for step in range(8)]
    found = drift.trends(
        "train",
        [
            dataclasses.replace(one, **{figure: value})
            for one, value in zip(samples([50 * MIB] * 20, reserved), needed, strict=True)
        ],
    )
    assert "fragmentation" not in {trend.status for trend in found}


def test_reserved_that_grows_with_a_leak_is_not_fragmentation():
    allocated = [50 * MIB + 30 * MIB * step for step in range(20)]
    found = drift.trends("train", samples(allocated, [value + 40 * MIB for value in allocated]))
    assert {trend.figure: trend.status for trend in found} == {"allocated": "growing", "reserved": "growing"}


def test_one_late_segment_is_not_fragmentation():
    reserved = [100 * MIB] * 15 + [120 * MIB] * 5
    found = drift.trends("train", samples([50 * MIB] * 20, reserved))
    assert {trend.status for trend in found} == {"flat"}


def test_a_figure_that_was_not_measured_has_no_trend():
    found = drift.trends("train", [Sample(n, "train", True, 0.0, 0.0, allocated=5) for n in range(10)])
    assert [trend.figure for trend in found] == ["allocated"]


def test_what_rises_at_equal_distances_leaks_where_an_address_is_taken_again():
    alive = at(
        (1, 4, 10, 11, 17), 2048
    )  # of every third step, on an H200: what is kept of the eighth seems to be of another
    kept = [2048 * ((step + 1) // 3) for step in range(STEPS + 1)]
    found = drift.judge(births(alive, series=kept), EVERY, "train")
    assert (found.status, found.reason) == ("leak", "survivors at regular intervals, about every 3 stretches")
    kept[9] -= 2048  # it was let go of, once
    assert status(births(alive, series=kept)) == "occasional"


def test_a_regular_leak_seen_in_uneven_stretches():
    """Readings now and then: some stretches cover one step, some several."""
    edges = [0, 1, 2, 3, 6, 8, 9, 10, 11, 12, 13, 15, 16, 17, 18, 20]
    spans = list(itertools.pairwise(edges))
    leaking = {i: 2048 for i, (a, b) in enumerate(spans) if any(step % 3 == 2 for step in range(a, b))}
    assert status(births(leaking), edges) == "leak"
    irregular = {i: 2048 for i, (a, b) in enumerate(spans) if a in (0, 1, 8, 9, 17)}
    assert status(births(irregular), edges) == "occasional"


def grown(status: str = "leak", row: int = 3, **changes) -> Drift:
    base = Drift(Site("train.py", row, "main"), "train", "device", status, 50.0, 1.0, 20, 1000, 20)
    return dataclasses.replace(base, **changes)


LARGER = grown(enlarged=True)


@pytest.mark.parametrize(
    ("before", "now", "fell", "last", "statuses"),
    [
        # what is replaced by something larger is let go of only where memory falls
        ([LARGER], [], 0, None, ["leak"]),
        ([LARGER], [], -500, None, ["leak"]),
        ([LARGER], [], 1000, None, ["bounded"]),
        # what stops growing in the steps that follow is no leak
        ([grown()], [grown()], 0, Later(100, 0), ["bounded"]),
        ([grown()], [grown()], -1200, Later(100, 1200), ["bounded"]),
        ([grown()], [grown()], -1300, Later(100, 1300), ["leak"]),
        ([grown()], [grown()], -5000, Later(100, 5000), ["leak"]),
        ([grown()], [grown()], 0, Later(50, 0), ["leak"]),
        # what is let go of meanwhile may hide that another grows on
        ([grown(), grown(row=9)], [grown(row=9)], 0, Later(100, 0), ["bounded", "leak"]),
    ],
)
def test_what_the_steps_that_follow_say_of_a_leak(before, now, fell, last, statuses) -> None:
    later = released(Window(before, [], 20), Window(now, [], 20), 100, fell, last)
    assert [one.status for one in later.drifts] == statuses


def levels_of(amounts: list[int]) -> list[tuple[int, int]]:
    return [(16 * number, amount) for number, amount in enumerate(amounts)]


@pytest.mark.parametrize(
    ("amounts", "events", "status"),
    [
        ([4096 * (n // 5) for n in range(97)], 19, "unsettled"),
        ([4096 * (n // 5) for n in range(97)], drift.FEWEST, "occasional"),
        ([4096 * min(n // 5, 8) for n in range(97)], 8, "occasional"),
        ([4096 * (n % 5) for n in range(97)], 19, "occasional"),
        ([], 19, "occasional"),
    ],
)
def test_what_comes_without_regularity_and_all_the_time_is_not_settled(
    amounts: list[int], events: int, status: str
) -> None:
    assert drift.going_on(grown("occasional", events=events), levels_of(amounts)).status == status


def test_keys_that_come_again_may_be_so_many_and_no_more() -> None:
    grown = drift.judge(births(dict.fromkeys(range(STEPS), 1024)), EVERY, "train")
    cells = dataclasses.replace(holder(), births=(Held(SITE, 18, grown.total),), refilled=True)
    slower = levels_of([round(16000 * (1 - 0.9**n)) for n in range(24)])
    on = levels_of([n * 999 for n in range(24)])
    assert drift.refilled(grown, [cells], slower).status == "filling"
    assert drift.refilled(grown, [cells], on) == grown
    once = dataclasses.replace(cells, refilled=False)
    assert drift.refilled(grown, [once], slower) == grown


def test_a_place_for_each_entry_is_a_limit() -> None:
    leak = drift.judge(births(dict.fromkeys(range(STEPS), 1024)), EVERY, "train")
    items = holder(bound=330, length=330, slots=True, limit="has 330 entries")
    items = dataclasses.replace(items, births=(Held(SITE, 18, leak.total),))
    assert [one.status for one in drift.settle([leak], [items])] == ["filling"]
    larger = dataclasses.replace(leak, enlarged=True, count=drift.FEWEST_LEVELS)
    assert drift.settle([larger], [items]) == [larger]
