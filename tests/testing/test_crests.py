"""The highest moment of a stretch, from changes and from what the CUDA allocator records."""

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("torch")

from gpulint.runtime.probes.crests import Crest, Crests, CudaCrests, highest

MIB = 1024**2


def test_the_first_highest_moment_counts_the_one_before_any_change_too() -> None:
    assert highest({1: 10}, []) == Crest(10, {1: 10})
    assert highest({1: 10}, [(1, -10), (2, 10)]) == Crest(10, {1: 10})
    assert highest({1: 10}, [(2, 5), (1, -10), (3, 9)]) == Crest(15, {1: 10, 2: 5})
    assert highest({1: 10}, [(2, 5)], least=15) is None


def test_stretches_have_highest_moments_of_their_own() -> None:
    crests = Crests()
    crests.add(1, 100)
    crests.fold()
    crests.begin("steps")
    crests.add(2, 30)
    crests.add(2, -30)
    crests.fold()
    crests.begin("evaluation")
    crests.add(3, 70)
    crests.fold()
    assert crests.best == {
        "start": Crest(100, {1: 100}),
        "steps": Crest(130, {1: 100, 2: 30}),
        "evaluation": Crest(170, {1: 100, 3: 70}),
    }


def test_what_does_not_count_now_may_have_counted_before() -> None:
    """A host tensor stands for the device until the script is seen to move one."""
    moved = False
    crests = Crests(lambda key: key % 4 == 0 or not moved)
    crests.add(1, 100)
    crests.add(4, 10)
    crests.fold()
    moved = True
    crests.begin("steps")
    crests.add(4, 5)
    crests.fold()
    assert crests.best["start"].allocated == 110
    assert crests.best["steps"] == Crest(15, {4: 15})


def events(*rows: tuple[str, int, int, int, str]) -> list[dict[str, Any]]:
    """(action, address, bytes, microseconds, line), as `torch.cuda.memory._snapshot()["device_traces"]` has them."""
    return [
        {"action": action, "addr": address, "size": size, "time_us": time, "frames": [line] if line else []}
        for action, address, size, time, line in rows
    ]


@pytest.fixture
def followed() -> Iterator[CudaCrests]:
    lines = {"model": 1, "hidden": 2, "kept": 3}
    return CudaCrests(lambda stack: lines[stack[0]] if stack else 0)


def test_the_trace_is_gone_through_from_what_was_alive_before(followed: CudaCrests) -> None:
    followed.fold([[]], {0: {0x1000: (4 * MIB, 1)}}, cleared=True)
    trace = events(
        ("alloc", 0x2000, 700, 1, "hidden"),
        ("alloc", 0x3000, MIB, 2, ""),
        ("segment_alloc", 0x9000, 20 * MIB, 2, ""),
        ("free_requested", 0x2000, 700, 3, ""),
        ("free_completed", 0x2000, 700, 3, ""),
        ("free_requested", 0x1000, 4 * MIB, 4, ""),
        ("free_requested", 0x7777, 512, 5, ""),  # older than anything that is known
    )
    followed.fold([trace], {0: {0x3000: (MIB, 0)}}, cleared=True)
    assert followed.best == {"start": Crest(5 * MIB + 1024, {1: 4 * MIB, 2: 1024, 0: MIB})}


def test_events_belong_to_the_stretch_of_their_time(
    followed: CudaCrests, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.time_ns", lambda: 10_000)
    followed.split()
    followed.begin("steps")
    trace = events(("alloc", 1, 512, 5, "model"), ("alloc", 2, 512, 12, "kept"))
    followed.fold([trace, []], {0: {1: (512, 1), 2: (512, 3)}}, cleared=True)
    assert followed.best == {"start": Crest(512, {1: 512}), "steps": Crest(1024, {1: 512, 3: 512})}


def test_devices_are_added_up(followed: CudaCrests) -> None:
    followed.fold(
        [events(("alloc", 1, 512, 1, "model")), events(("alloc", 9, 1024, 2, "kept"))],
        {0: {1: (512, 1)}, 1: {9: (1024, 3)}},
        cleared=True,
    )
    assert followed.best == {"start": Crest(1536, {1: 512, 3: 1024})}


def test_events_that_come_again_are_gone_through_once(
    followed: CudaCrests, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where somebody else wants the allocator's record, it is not cleared."""
    trace = events(("alloc", 1, 512, 5, "model"))
    monkeypatch.setattr("time.time_ns", lambda: 10_000)
    followed.fold([trace], {0: {1: (512, 1)}}, cleared=False)
    more = events(("free_requested", 1, 512, 12, ""), ("alloc", 2, 1024, 13, "kept"))
    followed.fold([[*trace, *more]], {0: {2: (1024, 3)}}, cleared=False)
    assert followed.best == {"start": Crest(1024, {3: 1024})}


def test_what_autograd_allocates_is_of_the_line_that_asks_for_it(
    followed: CudaCrests, monkeypatch: pytest.MonkeyPatch
) -> None:
    for moment, site in ((10_000, 7), (20_000, 0)):
        monkeypatch.setattr("time.time_ns", lambda now=moment: now)
        followed.backward(site)
    trace = events(
        ("alloc", 1, 512, 5, ""),
        ("alloc", 2, 512, 15, ""),
        ("alloc", 3, 512, 16, "hidden"),
        ("alloc", 4, 512, 25, ""),
    )
    alive = {0: {address: (512, 2 if address == 3 else 0) for address in (1, 2, 3, 4)}}
    followed.fold([trace], alive, cleared=True)
    assert followed.best == {"start": Crest(2048, {0: 1024, 7: 512, 2: 512})}
    assert followed.live[2] == (512, 7)
    # The allocator's snapshots go on saying that they do not know.
    followed.fold([events(("free_requested", 2, 512, 30, ""))], {0: {1: (512, 0)}}, cleared=True)
    assert followed.live == {1: (512, 0)}
