"""What is said of untouched memory, cycles and host memory, from records alone."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest

from gpulint.reports.page import page
from gpulint.reports.terminal import write
from gpulint.reports.verify import document
from gpulint.runtime.parent import standing
from gpulint.runtime.parent.verdict import verify
from gpulint.runtime.record.besides import (
    Besides,
    Collections,
    Cycle,
    ProcessMemory,
    Untouched,
    WorkerContext,
)
from gpulint.runtime.record.peaks import Limits
from gpulint.runtime.record.result import (
    Drift,
    End,
    Environment,
    Held,
    Holder,
    RankResult,
    RunResult,
    Sample,
    Site,
)
from gpulint.testing.gate import checks

MIB = 1024**2
HERE = Site("/project/train.py", 8, "train")
ENVIRONMENT = Environment(
    "3.11", "python", "linux", "2026-11-26", torch="2.13", device="cuda", probe="cuda-allocator"
)


def samples(sizes, host=None, heap=None):
    return tuple(
        Sample(
            number,
            "train",
            True,
            float(number),
            0.1,
            allocated=10 * MIB,
            host_tensors=host,
            rss=size,
            heap=heap[number] if heap else None,
        )
        for number, size in enumerate(sizes)
    )


def rank(besides=None, rss=(100 * MIB,) * 20, number=0, **more):
    return RankResult(
        number, 1, ENVIRONMENT, End("stopped", "enough"), "optimizer", samples=more.pop("samples", samples(rss)),
        besides=besides or Besides(), **more,
    )  # fmt: skip


def run(*ranks, **more):
    return RunResult(("python",), End("stopped", "enough"), 1.0, ranks, **more)


def untouched(name="best", size=4 * MIB, **more):
    return Untouched(
        f"`{name}`, train.py:9", name, "/project/train.py", 9, 4, size, more.pop("freed", size), **more
    )


def text(verification):
    out = io.StringIO()
    write(document(verification), out)
    return out.getvalue()


# -- untouched -----------------------------------------------------------------------------------------------


def test_what_is_untouched_is_told_worst_first_with_what_del_gives_back():
    found = (untouched("small", MIB), untouched("shared", 4 * MIB, freed=MIB, others=("`other`",)))
    verification = verify(
        "train.py", run(rank(Besides(watched={"train": 4, "eval": 2}, untouched=found))), []
    )
    said = text(verification)
    assert said.index("4.00 MiB") < said.index("1.00 MiB in")
    assert "no forward, backward or optimizer of 4 training and 2 evaluation steps read or wrote" in said
    assert "`del small` gives all of it back" in said
    assert "`del shared` alone gives back 1.00 MiB, the rest is held by `other` too" in said
    assert "del small" in page(document(verification))
    assert verification.exit_code == 0


def test_what_grows_is_not_told_as_untouched_too():
    leak = Drift(HERE, "train", "device", "leak", 512.0, 1.0, 10, 5120, 10)
    holder = Holder(
        "list `best`",
        "best",
        "list",
        "global",
        "train",
        "/project/train.py",
        9,
        10,
        5120,
        births=(Held(HERE, 10, 5120),),
    )
    besides = Besides(watched={"train": 4}, untouched=(untouched(),))
    assert len(standing.idle(run(rank(besides)))) == 1
    assert standing.idle(run(rank(besides, drifts=(leak,), holders=(holder,)))) == ()


def test_ranks_tell_the_same_once():
    besides = Besides(watched={"train": 4}, untouched=(untouched(),))
    (one,) = standing.idle(run(rank(besides), rank(besides, number=1)))
    assert one.ranks == (0, 1)


@pytest.mark.parametrize(("limit", "status"), [(4 * MIB, "within"), (4 * MIB - 1, "exceeded")])
def test_untouched_memory_can_be_limited(limit, status):
    verification = verify("train.py", run(rank(Besides(watched={"train": 4}, untouched=(untouched(),)))), [])
    (check,) = checks(verification, Limits(untouched=limit))
    assert (check.limit, check.status, check.now) == ("untouched", status, 4 * MIB)
    assert ("`del best`" in check.text) == (status == "exceeded")


# -- cycles --------------------------------------------------------------------------------------------------


def test_a_cycle_is_told_with_what_waits_and_how_often_the_collector_came():
    garbage = Drift(HERE, "train", "device", "gc-garbage", 2.0 * MIB, 1.0, 18, 36 * MIB, 18, reason="waits")
    cycle = Cycle(
        ("`Probe.net`", "function `hook()`"),
        "`hook()` closes over `self`",
        "/project/train.py",
        8,
        18,
        36 * MIB,
    )
    besides = Besides(cycles=(cycle,), collections=Collections(2, 1, 5 * MIB))
    verification = verify("train.py", run(rank(besides, drifts=(garbage,))), [])
    said = text(verification)
    assert "2.00 MiB a step wait for Python's collector" in said
    assert (
        "`Probe.net` → function `hook()` → `Probe`; in 20 sampled steps it came 3 times, and freed 5.00 MiB"
        in said
    )
    assert "`hook()` closes over `self`" in said
    assert [one for one in verification.harmless if one.why == "gc-garbage"] == []


# -- host memory ---------------------------------------------------------------------------------------------


def test_resident_memory_that_rises_to_the_end_is_told():
    (growth,) = standing.host_growth(run(rank(rss=[100 * MIB + 2 * MIB * n for n in range(20)])), 0.0)
    assert (growth.per_step, growth.per_minute) == (2 * MIB, 2 * MIB * 600)
    assert "in no tensor" in standing.host_text(growth)


@pytest.mark.parametrize(
    "rss",
    [
        [100 * MIB] * 20,
        [100 * MIB + 2 * MIB * min(n, 9) for n in range(20)],  # stops
        [100 * MIB + 2 * MIB * (n % 5) for n in range(20)],  # a saw
        [100 * MIB + 20_000 * n for n in range(20)],  # no more than the interpreter's own
    ],
)
def test_what_stops_or_is_small_is_not_told(rss):
    assert standing.host_growth(run(rank(rss=rss)), 0.0) == ()


def test_small_growth_is_told_where_malloc_says_so():
    heap = [10 * MIB + 100_000 * n for n in range(20)]
    (growth,) = standing.host_growth(run(rank(samples=samples([100 * MIB] * 20, heap=heap))), 0.0)
    assert growth.per_step == 100_000


def test_what_holders_are_told_to_keep_is_not_told_twice():
    grown = run(rank(rss=[100 * MIB + 2 * MIB * n for n in range(20)]))
    assert standing.host_growth(grown, 1.9 * MIB) == ()
    (left,) = standing.host_growth(grown, 1.0 * MIB)
    assert left.per_step == MIB


def worker(pid, sizes, **more):
    steps = tuple(range(3, 3 + 3 * len(sizes), 3))
    seconds = tuple(float(step) for step in steps)
    return ProcessMemory(pid, more.pop("loader", True), "", False, 2, seconds, steps, tuple(sizes), **more)


def test_workers_are_told_together_with_their_number():
    sizes = [100 * MIB, 200 * MIB, 203 * MIB, 206 * MIB, 209 * MIB]  # the first fills it
    (growth,) = standing.host_growth(run(rank(Besides(processes=(worker(7, sizes), worker(8, sizes))))), 0.0)
    assert (growth.who, growth.number, growth.per_step) == ("DataLoader worker", 2, 2 * MIB)
    said = standing.host_text(growth)
    assert said.startswith("memory of 2 DataLoader workers grows by 2.00 MiB a step (120.00 MiB a minute")
    assert said.endswith("they are made anew in each pass")


@pytest.mark.parametrize(
    "sizes", [[100 * MIB, 200 * MIB, 200 * MIB, 200 * MIB, 200 * MIB], [100 * MIB, 200 * MIB, 300 * MIB]]
)
def test_workers_that_do_not_grow_or_were_hardly_read_are_not_told(sizes):
    assert standing.host_growth(run(rank(Besides(processes=(worker(7, sizes),)))), 0.0) == ()


def test_host_memory_fails_only_where_it_is_limited():
    verification = verify("train.py", run(rank(rss=[100 * MIB + 2 * MIB * n for n in range(20)])), [])
    assert verification.exit_code == 0
    (check,) = checks(verification, Limits(host_drift=MIB))
    assert check.status == "exceeded"


# -- the rest ------------------------------------------------------------------------------------------------


def test_steps_that_could_not_be_judged_are_status_2_with_the_reason():
    verification = verify("train.py", run(rank(unjudged=("steps could not be judged: a view",))), [])
    assert verification.exit_code == 2
    assert "a view" in text(verification)


def test_a_context_of_a_worker_is_named():
    context = WorkerContext(77, "/project/data.py", 12, "Images.__getitem__")
    verification = verify("train.py", run(rank(), contexts=(context,)), [])
    assert "process 77) has a CUDA context since data.py:12 in Images.__getitem__" in text(verification)


def test_the_record_survives_the_way_to_the_parent():
    besides = Besides(
        {"train": 4}, "doubt", (untouched(),), (Cycle(("a",), "b", "c", 1, 2, 3),), Collections(1, 2, 3),
        (worker(7, [1, 2, 3]),),
    )  # fmt: skip
    assert Besides.from_json(replace(besides).to_json()) == besides
