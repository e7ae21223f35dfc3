import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from support import run_command

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


@pytest.mark.parametrize("size", [1, 4, 40])
def test_a_worker_that_dies_costs_one_item(size: int) -> None:
    done = dict(in_processes(work, chunks(list(range(30)), size), 2, crashed))
    assert done == {item: item * item for item in range(30)} | {
        13: -1000 * signal.SIGKILL - 13,
        14: 3000 - 14,
    }


def children() -> set[str]:
    """The numbers of this process's children: other tests' servers among them."""
    done = run_command("ps", "--ppid", os.getpid(), "-o", "pid=,args=")
    return {line.split()[0] for line in done.stdout.splitlines() if "ps --ppid" not in line}


def test_no_process_outlives_an_abandoned_run() -> None:
    before = children()
    results = in_processes(work, chunks(list(range(10)), 1), 2, crashed)
    next(results)
    results.close()  # type: ignore[attr-defined]
    assert children() <= before


def test_fork_only_where_it_is_safe() -> None:
    release = threading.Event()
    thread = threading.Thread(target=release.wait)
    thread.start()
    try:
        assert worker_context().get_start_method() == "spawn"
        assert sorted(in_processes(abs, [[-1], [2]], 2, crashed)) == [(-1, 1), (2, 2)]
    finally:
        release.set()
        thread.join()


ORPHAN = """
import os, sys, time
sys.path.insert(0, {directory!r})
from gpulint.lint.pool import in_processes

def slow(item):
    os.write(1, b"%d\\n" % os.getpid())  # in one piece: two workers share the pipe
    time.sleep(0.2)
    return item

for _ in in_processes(slow, [[n] for n in range(100)], 2, lambda item, code: None):
    pass
"""


def test_workers_end_with_a_killed_parent() -> None:
    script = ORPHAN.format(directory=str(Path(__file__).parents[1]))
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    workers = {int(parent.stdout.readline()) for _ in range(2)}
    parent.kill()
    parent.wait()
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and any(map(alive, workers)):
        time.sleep(0.05)
    assert not any(map(alive, workers))
    parent.stdout.close()


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
