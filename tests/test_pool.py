from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from gpulint.lint.pool import in_processes, worker_context


def work(item: int) -> int:
    if item == 13:
        os.kill(os.getpid(), signal.SIGKILL)
    if item == 14:
        os._exit(3)
    return item * item


def crashed(item: int, exitcode: int) -> int:
    return 1000 * exitcode - item


def chunks(items: list[int], size: int) -> list[list[int]]:
    return [items[start : start + size] for start in range(0, len(items), size)]


@pytest.mark.parametrize("jobs", [1, 2, 5])
@pytest.mark.parametrize("size", [1, 7])
def test_every_item_once(jobs: int, size: int) -> None:
    items = [item for item in range(40) if item not in (13, 14)]
    assert sorted(in_processes(work, chunks(items, size), jobs, crashed)) == [
        (item, item * item) for item in items
    ]


@pytest.mark.parametrize("size", [1, 4, 40])
def test_a_worker_that_dies_costs_one_item(size: int) -> None:
    done = dict(in_processes(work, chunks(list(range(30)), size), 2, crashed))
    assert done == {item: item * item for item in range(30)} | {
        13: -1000 * signal.SIGKILL - 13,
        14: 3000 - 14,
    }


def test_nothing_to_do() -> None:
    assert list(in_processes(work, [], 4, crashed)) == []
    assert list(in_processes(work, [[], [2]], 4, crashed)) == [(2, 4)]


def children() -> set[str]:
    """The numbers of this process's children: other tests' servers among them."""
    done = subprocess.run(
        ["ps", "--ppid", str(os.getpid()), "-o", "pid=,args="], capture_output=True, text=True
    )
    return {line.split()[0] for line in done.stdout.splitlines() if "ps --ppid" not in line}


def test_no_process_outlives_an_abandoned_run() -> None:
    before = children()
    results = in_processes(work, chunks(list(range(10)), 1), 2, crashed)
    next(results)
    results.close()  # type: ignore[attr-defined]
    assert children() <= before
