"""What is said of untouched memory, cycles and host memory, from records alone."""

from dataclasses import replace

import pytest
from made import FILE, MIB, drift, finding, holder, rank, run, samples, text_of, verified

from gpulint.reports.page import page
from gpulint.reports.verify import document
from gpulint.runtime.parent import standing
from gpulint.runtime.record.besides import (
    Besides,
    Collections,
    Cycle,
    ProcessMemory,
    Untouched,
    WorkerContext,
)
from gpulint.runtime.record.peaks import Limits
from gpulint.testing.gate import checks


def seen(besides=None, rss=(100 * MIB,) * 20, heap=None, **more):
    """A rank of 20 steps, by what the host had at the end of each."""
    steps = samples([10 * MIB] * len(rss), duration=0.1)
    heap = heap or [None] * len(rss)
    steps = [replace(step, rss=size, heap=used) for step, size, used in zip(steps, rss, heap, strict=True)]
    return rank(steps, besides=besides or Besides(), **more)


def untouched(name="best", size=4 * MIB, **more):
    return Untouched(f"`{name}`, train.py:9", name, FILE, 9, 4, size, more.pop("freed", size), **more)


# -- untouched -----------------------------------------------------------------------------------------------


def test_what_is_untouched_is_told_worst_first_with_what_del_gives_back():
    found = (untouched("small", MIB), untouched("shared", 4 * MIB, freed=MIB, others=("`other`",)))
    verification = verified(seen(Besides(watched={"train": 4, "eval": 2}, untouched=found)))
    said = text_of(verification)
    assert said.index("4.00 MiB") < said.index("1.00 MiB in")
    assert "no forward, backward or optimizer of 4 training and 2 evaluation steps read or wrote" in said
    assert "`del small` gives all of it back" in said
    assert "`del shared` alone gives back 1.00 MiB, the rest is held by `other` too" in said
    assert "del small" in page(document(verification))
    assert verification.exit_code == 0


def test_what_grows_is_not_told_as_untouched_too():
    leak, best = drift(512.0), holder(16 * 512, line=9)
    besides = Besides(watched={"train": 4}, untouched=(untouched(),))
    assert len(standing.idle(run(seen(besides)))) == 1
    assert standing.idle(run(seen(besides, drifts=(leak,), holders=(best,)))) == ()


def test_ranks_tell_the_same_once():
    besides = Besides(watched={"train": 4}, untouched=(untouched(),))
    (one,) = standing.idle(run(seen(besides), seen(besides, number=1)))
    assert one.ranks == (0, 1)


@pytest.mark.parametrize(("limit", "status"), [(4 * MIB, "within"), (4 * MIB - 1, "exceeded")])
def test_untouched_memory_can_be_limited(limit, status):
    verification = verified(seen(Besides(watched={"train": 4}, untouched=(untouched(),))))
    (check,) = checks(verification, Limits(untouched=limit))
    assert (check.limit, check.status, check.now) == ("untouched", status, 4 * MIB)
    assert ("`del best`" in check.text) == (status == "exceeded")


# -- cycles --------------------------------------------------------------------------------------------------


def test_a_cycle_is_told_with_what_waits_and_how_often_the_collector_came():
    garbage = drift(2.0 * MIB, "gc-garbage", reason="waits")
    chain = ("`Probe.net`", "function `hook()`")
    cycle = Cycle(chain, "`hook()` closes over `self`", FILE, 8, 18, 36 * MIB)
    besides = Besides(cycles=(cycle,), collections=Collections(2, 1, 5 * MIB))
    verification = verified(seen(besides, drifts=(garbage,)))
    said = text_of(verification)
    assert "2.00 MiB a step wait for Python's collector" in said
    assert (
        "`Probe.net` → function `hook()` → `Probe`; in 20 sampled steps it came 3 times, and freed 5" in said
    )
    assert "`hook()` closes over `self`" in said
    assert [one for one in verification.harmless if one.why == "gc-garbage"] == []


@pytest.mark.parametrize(("off", "codes", "untold"), [(False, (), 0), (True, (), 1), (True, ("GPU408",), 0)])
def test_what_waits_in_cycles_grows_where_the_script_has_switched_the_collector_off(off, codes, untold):
    besides = Besides(collections=Collections(off=off))
    verification = verified(
        seen(besides, drifts=(drift(2.0 * MIB, "gc-garbage", reason="waits"),)),
        findings=[finding(code, subject="gc.disable") for code in codes],
    )
    assert (verification.exit_code, len(verification.unpredicted)) == (int(off), untold)


# -- host memory ---------------------------------------------------------------------------------------------


RISING = [100 * MIB + 2 * MIB * n for n in range(20)]


@pytest.mark.parametrize(
    ("rss", "heap", "per_step"),
    [
        (RISING, None, [2 * MIB]),
        ([100 * MIB] * 20, None, []),
        ([100 * MIB + 2 * MIB * min(n, 9) for n in range(20)], None, []),  # stops
        ([100 * MIB + 2 * MIB * (n % 5) for n in range(20)], None, []),  # a saw
        ([100 * MIB + 20_000 * n for n in range(20)], None, []),  # no more than the interpreter's own
        ([100 * MIB] * 20, [10 * MIB + 100_000 * n for n in range(20)], [100_000]),  # as malloc says
    ],
)
def test_memory_that_rises_to_the_end_is_told_and_no_other(rss, heap, per_step):
    found = standing.host_growth(run(seen(rss=rss, heap=heap)), 0.0)
    assert [one.per_step for one in found] == per_step
    assert [one.per_minute for one in found] == [600 * size for size in per_step]
    assert all("in no tensor" in standing.host_text(one) for one in found)


def test_what_holders_are_told_to_keep_is_not_told_twice():
    grown = run(seen(rss=RISING))
    assert standing.host_growth(grown, 1.9 * MIB) == ()
    (left,) = standing.host_growth(grown, 1.0 * MIB)
    assert left.per_step == MIB


def worker(pid, sizes, **more):
    steps = tuple(range(3, 3 + 3 * len(sizes), 3))
    seconds = tuple(float(step) for step in steps)
    return ProcessMemory(pid, more.pop("loader", True), "", False, 2, seconds, steps, tuple(sizes), **more)


def test_workers_are_told_together_with_their_number():
    sizes = [100 * MIB, 200 * MIB, 203 * MIB, 206 * MIB, 209 * MIB]  # the first fills it
    (growth,) = standing.host_growth(run(seen(Besides(processes=(worker(7, sizes), worker(8, sizes))))), 0.0)
    assert (growth.who, growth.number, growth.per_step) == ("DataLoader worker", 2, 2 * MIB)
    said = standing.host_text(growth)
    assert said.startswith("memory of 2 DataLoader workers grows by 2.00 MiB a step (120.00 MiB a minute")
    assert said.endswith("they are made anew in each pass")


@pytest.mark.parametrize(
    "sizes", [[100 * MIB, 200 * MIB, 200 * MIB, 200 * MIB, 200 * MIB], [100 * MIB, 200 * MIB, 300 * MIB]]
)
def test_workers_that_do_not_grow_or_were_hardly_read_are_not_told(sizes):
    assert standing.host_growth(run(seen(Besides(processes=(worker(7, sizes),)))), 0.0) == ()


def test_host_memory_fails_only_where_it_is_limited():
    verification = verified(seen(rss=RISING))
    assert verification.exit_code == 0
    (check,) = checks(verification, Limits(host_drift=MIB))
    assert check.status == "exceeded"


# -- the rest ------------------------------------------------------------------------------------------------


def test_a_context_of_a_worker_is_named():
    context = WorkerContext("/project/data.py", 12, "Images.__getitem__", 77)
    verification = verified(seen(), contexts=(context,))
    assert "process 77) has a CUDA context since data.py:12 in Images.__getitem__" in text_of(verification)
