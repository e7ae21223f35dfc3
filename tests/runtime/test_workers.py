"""Workers that a script starts with multiprocessing: each is measured, and the run ends when they have been."""

from pathlib import Path
from textwrap import dedent

import pytest
import starting

from gpulint.runtime.child import stopping
from gpulint.runtime.parent import runner
from gpulint.runtime.record.options import join_lines
from gpulint.runtime.record.result import RunResult

HEAD = """
import multiprocessing, os, sys, time
from gpulint.marks import step
context = multiprocessing.get_context("{method}")

def work(number, steps):
    for _ in range(steps):
        step()
    sys.stdout.write(f"worker {number} has ended\\n")  # in one: both write to the same pipe
"""
TWO = """
if __name__ == "__main__":
    workers = [context.Process(target=work, args=(number, {steps})) for number in range(2)]
    [worker.start() for worker in workers]
    [worker.join() for worker in workers]
    print("joined", [worker.exitcode for worker in workers])
"""


def start(tmp_path: Path, text: str, method: str = "fork", *arguments: str, **options: object) -> RunResult:
    path = starting.write(tmp_path, text.replace("{method}", method), "parallel.py")
    return starting.start(path, *arguments, **{"steps": 5, "environment": starting.NO_GPU, **options})


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_every_worker_is_measured_and_stopped(tmp_path: Path, method: str) -> None:
    text = HEAD + TWO.replace("{steps}", "1000")
    path = tmp_path / "parallel.py"
    line = next(n for n, row in enumerate(dedent(text).splitlines(), 1) if row == "        step()")
    result = start(tmp_path, text, method, lines=join_lines([(str(path), line)]))
    assert result.end.reason == "stopped", result.stderr
    assert [(rank.rank, rank.process, rank.world_size) for rank in result.ranks] == [
        (0, (1,), 2),
        (1, (2,), 2),
    ]
    assert [rank.steps() for rank in result.ranks] == [5, 5]
    assert all(rank.lines[0].hits >= 5 for rank in result.ranks)  # type: ignore[operator]
    assert [one.process for one in result.others] == [()]
    assert result.stdout == "joined [0, 0]\n"


def test_workers_that_end_by_themselves_print_all_they_have_to_say(tmp_path: Path) -> None:
    result = start(tmp_path, HEAD + TWO.replace("{steps}", "4"), "spawn")
    assert result.end.message == "the script ended by itself after 4 steps"
    assert sorted((result.stdout or "").splitlines()) == [
        "joined [0, 0]", "worker 0 has ended", "worker 1 has ended",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("death", "said"),
    [
        ("raise ValueError('no data')", "worker 2: the script raised ValueError: no data after 3 steps"),
        ("sys.exit(3)", "worker 2: the script called sys.exit(3) after 3 steps"),
    ],
)
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_worker_that_fails_is_named(tmp_path: Path, death: str, said: str, method: str) -> None:
    dying = HEAD.replace("        step()\n", f"        step()\n        if number == 1 and _ == 2: {death}\n")
    result = start(tmp_path, dying + TWO.replace("{steps}", "4"), method)
    assert result.end.message == said
    assert "joined [0, " in (result.stdout or "")


def test_a_worker_that_is_killed_is_told_as_far_as_it_came(tmp_path: Path) -> None:
    dying = HEAD.replace(
        "        step()\n", "        step()\n        if number == 1 and _ == 2: os.kill(os.getpid(), 9)\n"
    )
    result = start(tmp_path, dying + TWO.replace("{steps}", "4"))
    assert [len(rank.samples) for rank in result.ranks] == [4, 3]
    assert "before it could report" in result.ranks[1].notes[0]
    assert result.end.reason == "finished"


def test_a_script_that_waits_for_what_a_worker_would_have_sent_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "JOIN_GRACE", 1.0)
    waiting = """
if __name__ == "__main__":
    queue = context.Queue()
    worker = context.Process(target=work, args=(0, 1000))
    worker.start()
    print("waiting", flush=True)
    queue.get()
"""
    result = start(tmp_path, HEAD + waiting)
    assert (result.end.reason, len(result.ranks)) == ("stopped", 1)


def test_a_script_that_lacks_what_its_workers_would_have_made_is_excused(tmp_path: Path) -> None:
    result = start(tmp_path, HEAD + TWO.replace("{steps}", "1000") + "    open('model.pt')\n")
    assert result.end.reason == "stopped"
    assert "model.pt" in result.others[0].end.message


def test_a_script_that_trains_beside_its_workers_is_the_first_rank(tmp_path: Path) -> None:
    both = TWO.replace("    [worker.join()", "    work(2, 4)\n    [worker.join()").replace("{steps}", "4")
    result = start(tmp_path, HEAD + both)
    assert [rank.process for rank in result.ranks] == [(), (1,), (2,)]
    assert [rank.rank for rank in result.ranks] == [0, 1, 2]


def test_workers_of_workers_and_of_a_pool_are_measured(tmp_path: Path) -> None:
    nested = """
def both(number, steps):
    inner = context.Process(target=work, args=(10 + number, steps))
    inner.start()
    work(number, steps)
    inner.join()

if __name__ == "__main__":
    outer = context.Process(target=both, args=(0, 4))
    outer.start()
    outer.join()
    with context.Pool(1) as pool:
        pool.starmap(work, [(1, 4)])
"""
    result = start(tmp_path, HEAD + nested, "spawn")
    assert [rank.process for rank in result.ranks] == [(1,), (1, 1), (2,)]


def test_python_that_is_started_otherwise_is_said_not_to_be_measured(tmp_path: Path) -> None:
    text = """
import subprocess, sys
from gpulint.marks import step
subprocess.run([sys.executable, "-c", "print(1)"])
for _ in range(20):
    step()
"""
    result = start(tmp_path, text)
    assert "parallel.py:4 starts Python itself: what runs there is not measured." in result.ranks[0].notes


# -- ranks that train together ----------------------------------------------------------------------------------


def test_ranks_stop_after_the_same_step_once_one_has_seen_what_it_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    distributed = pytest.importorskip("torch.distributed")
    if not distributed.is_available():
        pytest.skip("this torch was built without torch.distributed")
    store = distributed.HashStore()
    monkeypatch.setattr(stopping, "_store", lambda: store)
    ranks = [stopping.Agreement(lambda: 2) for _ in range(2)]
    stops: dict[int, int] = {}
    for number in range(1, 60):
        for rank in (0, 1) if number % 2 else (1, 0):
            if rank not in stops and ranks[rank].after_step(
                sampled=number > 20 + rank, content=rank == 0 and number > 30
            ):
                stops[rank] = number
    assert stops == {0: 33, 1: 33}


DISTRIBUTED = """
import sys
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

def evaluate(model):
    model.eval()
    for _ in range(6):
        model(torch.randn(4, 8))
    model.train()

def main(rank, world, file):
    dist.init_process_group("gloo", init_method="file://" + file, rank=rank, world_size=world)
    model = nn.parallel.DistributedDataParallel(nn.Linear(8, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    kept = []
    for step in range(2000):
        loss = model(torch.randn(4, 8)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        {leak}
        if rank == 0 and step % 30 == 29:
            evaluate(model.module)

if __name__ == "__main__":
    mp.spawn(main, args=(2, sys.argv[1]), nprocs=2)
    print("done")
"""


@pytest.mark.usefixtures("warm_scripts")
@pytest.mark.parametrize("rank", ["0", "1"])
def test_spawned_ranks_stop_together_and_a_leak_names_its_rank(tmp_path: Path, rank: str) -> None:
    """A line that only the first rank runs is waited for, and the others do not wait longer."""
    torch = pytest.importorskip("torch")
    if not torch.distributed.is_available():
        pytest.skip("this torch was built without torch.distributed")
    text = DISTRIBUTED.replace("{leak}", f"if rank == {rank}: kept.append(loss)")
    line = next(n for n, row in enumerate(dedent(text).splitlines(), 1) if "        model(torch.randn" in row)
    places = join_lines([(str(tmp_path / "parallel.py"), line)])
    result = start(tmp_path, text, "fork", str(tmp_path / "store"), lines=places, awaited=places, reach=60.0)
    assert result.end.reason == "stopped", result.stderr
    assert [one.rank for one in result.ranks] == [0, 1]
    assert result.ranks[0].lines[0].hits
    assert [one.rank for one in result.ranks if one.leaks()] == [int(rank)]
    assert result.stdout == "done\n"
