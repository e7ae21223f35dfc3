"""`gpulint gpu account PID`: asking real processes, with a fake driver beside them."""

import json
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fake_nvml import SOURCE
from support import run_command

from gpulint.operator import accounting, gpu

MIB = 1024**2
# A program in which the tests' own figures stand for CUDA's: one tensor of 4 MiB in a segment of 20.
TRAINING = f"""
import time, types
import torch
block = {{"address": 0, "size": {4 * MIB}, "requested_size": {4 * MIB}, "state": "active_allocated"}}
rest = {{"address": {4 * MIB}, "size": {16 * MIB}, "requested_size": 0, "state": "inactive"}}
segment = {{"device": 0, "address": 0, "total_size": {20 * MIB}, "active_size": {4 * MIB}, "segment_pool_id": (0, 0), "blocks": [block, rest]}}
for name, answer in {{
    "is_initialized": True, "is_available": True, "device_count": 1, "memory_snapshot": [segment], "memory_reserved": {20 * MIB},
    "get_device_capability": (9, 0), "get_device_name": "Fake", "mem_get_info": (0, 1),
    "get_device_properties": types.SimpleNamespace(uuid="GPU-Fake"), "host_memory_stats": {{}},
}}.items():
    setattr(torch.cuda, name, lambda *_, answer=answer: answer)
torch._C._cuda_hasPrimaryContext = lambda index: True
print("up", flush=True)
time.sleep(60)
"""
# What stands for torch's own record of allocations there: it notes how it was begun, and leaves a file when it is ended.
HISTORY = """
from pathlib import Path
traces = []
def record(enabled=None, **options):
    traces.append(f"recorded with {enabled}") if enabled else Path(__file__).with_name("stopped").touch()
torch.cuda.memory._record_memory_history = record
torch.cuda.memory._snapshot = lambda *_: {"segments": [], "device_traces": [[], list(traces)]}
"""
IDLE = "import time; print('up', flush=True); time.sleep(60)"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "pynvml.py").write_text(SOURCE)
    return tmp_path


@pytest.fixture
def start(home: Path) -> Iterator[Callable[..., int]]:
    """Starts a program that says "up", under `gpulint run` or not; the process that runs it."""
    running: list[subprocess.Popen[str]] = []

    def call(code: str, under_run: bool = True, cards: str = "") -> int:
        (home / "program.py").write_text(code)
        launch = [sys.executable, "-m", "gpulint", "run", "-q", "--"] if under_run else []
        process = subprocess.Popen(
            [*launch, sys.executable, str(home / "program.py")],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(home), "FAKE_NVML": cards},
        )
        running.append(process)
        assert process.stdout.readline() == "up\n"
        if not under_run:
            return process.pid
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        # The launcher has a child of its own besides, that watches for signals.
        lines = {pid: Path(f"/proc/{pid}/cmdline").read_text() for pid in children}
        return next(int(pid) for pid, line in lines.items() if "gpulint\0run" not in line)

    yield call
    for process in running:
        process.terminate()
        process.communicate(timeout=30)


def account(
    home: Path, pid: int, *options: str, cards: list[dict[str, object]] | None = None
) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(home), "FAKE_NVML": json.dumps(cards) if cards else ""}
    command = [sys.executable, "-m", "gpulint", "gpu", "account", *options]
    return run_command(*command, pid, env=environment, timeout=60)


def card(*listed: tuple[int, int | None]) -> list[dict[str, object]]:
    used = 9 * MIB + sum(size or 0 for _, size in listed)
    return [{"name": "Fake", "total": 8192 * MIB, "used": used, "temperature": 40, "processes": listed}]


Start = Callable[..., int]


def test_a_program_under_run_answers_and_the_driver_s_figures_are_added(home: Path, start: Start) -> None:
    pid = start(TRAINING)  # it has no driver, as in an environment without nvidia-ml-py
    for _ in range(2):  # it can be asked again
        said = account(home, pid, cards=card((pid, 620 * MIB), (4_000_000, 100 * MIB)))
        assert (said.returncode, said.stderr) == (0, "")
        lines = [" ".join(line.split()) for line in said.stdout.splitlines()]
        assert "held by C++ code 4.00 MiB no tensor of Python's: DDP's buckets, libraries" in lines
        assert "= reserved by torch 20.00 MiB" in lines
        assert any(line.startswith("unexplained 600.00 MiB the CUDA context") for line in lines)
        assert "= the process 620.00 MiB the driver's list of processes" in lines
    pid = start(TRAINING, cards=json.dumps(card((1, 100 * MIB))))  # its own driver tells
    (only,) = json.loads(account(home, pid, "--json").stdout)["accounts"]
    assert (only["reserved"], only["uuid"]) == (20 * MIB, "GPU-Fake")
    assert only["process"] == 100 * MIB  # the list's only process, by another number


def test_a_program_without_cuda_or_torch_is_not_disturbed(home: Path, start: Start) -> None:
    code = "import sys, time; print('up', flush=True)\nwhile time.sleep(0.1) is None: assert 'torch' not in sys.modules"
    pid = start(code)
    assert "CUDA has not been used in this process" in account(home, pid).stdout
    time.sleep(0.3)
    assert gpu.describe(pid) is not None  # to be asked imported nothing


def test_one_that_cannot_answer_now(home: Path, start: Start) -> None:
    pid = start(IDLE)
    os.kill(pid, signal.SIGSTOP)
    try:
        said = account(home, pid, "--timeout", "0.5", cards=card((pid, 620 * MIB)))
    finally:
        os.kill(pid, signal.SIGCONT)
    assert said.returncode == 0
    assert "it did not answer within 0.5 s" in said.stdout
    assert "620.00 MiB of 8.00 GiB" in said.stdout


def test_of_any_other_process_the_driver_tells(home: Path, start: Start) -> None:
    pid = start(IDLE, under_run=False)
    said = account(home, pid, cards=card((pid, 620 * MIB)))
    assert said.returncode == 0
    assert "GPU 0 (Fake): 620.00 MiB of 8.00 GiB, by the driver's list of processes" in said.stdout
    assert "start it with `gpulint run -- ...`" in said.stdout
    for cards, told in (
        (card((4_000_000, 620 * MIB)), "the driver lists it on no card"),
        (None, "no NVIDIA driver answers"),
    ):
        said = account(home, pid, cards=cards)
        assert (said.returncode, told in said.stdout) == (2, True)
    said = account(home, 2**22)
    assert (said.returncode, said.stdout) == (2, "")
    assert said.stderr == "gpulint: there is no process 4194304 here\n"


def test_somebody_else_s_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounting.os, "getuid", lambda: 12345)
    told = accounting.told(os.getpid(), 0.5)
    assert told.accounts == ()
    assert "is not asked" in told.why[0]


# -- gpulint gpu snapshot PID FILE -----------------------------------------------------------------------------


def ask(home: Path, pid: int, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gpulint", "gpu", "snapshot", pid, home / "run.pickle"]
    return run_command(*command, *options, timeout=60)


@pytest.mark.parametrize(
    ("begun", "seconds", "recorded"),
    [
        (HISTORY, "0.3", "recorded with all"),
        (f'{HISTORY}torch.cuda.memory._record_memory_history("state")\n', "30", "recorded with state"),
    ],
    ids=["for a while", "it records already, and goes on to"],
)
def test_a_snapshot_of_a_running_program(
    home: Path, start: Start, begun: str, seconds: str, recorded: str
) -> None:
    said = ask(home, start(TRAINING.replace('print("up"', f'{begun}print("up"')), "--seconds", seconds)
    assert (said.returncode, said.stderr) == (0, "")
    assert said.stdout.startswith(f"A memory snapshot was written to {home / 'run.pickle'}")
    assert pickle.loads((home / "run.pickle").read_bytes())["device_traces"] == [[], [recorded]]
    assert (home / "stopped").exists() == (begun == HISTORY)


def test_programs_of_which_there_is_no_snapshot(home: Path, start: Start) -> None:
    said = ask(home, start(IDLE))
    assert said.returncode == 2
    assert said.stderr == "gpulint: it could not answer: CUDA has not been used in this process\n"
    assert not (home / "run.pickle").exists()
    said = ask(home, start(IDLE, under_run=False))
    assert (said.returncode, "start it with `gpulint run -- ...`" in said.stderr) == (2, True)


# -- Python 3.14: `sys.remote_exec`, played by what is done with the file that it is handed -----------------------


@pytest.fixture
def remotely(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[str], object]], accounting.Told]:
    def call(played: Callable[[str], object]) -> accounting.Told:
        monkeypatch.setattr(sys, "remote_exec", lambda pid, script: played(script), raising=False)
        monkeypatch.setattr(accounting.gpu, "environment", lambda pid: {})
        return accounting.told(os.getpid(), 20)

    return call


def test_a_process_that_runs_the_file_answers(remotely) -> None:
    told = remotely(lambda script: subprocess.run([sys.executable, "-I", script], check=True, cwd="/"))
    assert [one.missing for one in told.accounts] == ["CUDA has not been used in this process"]


@pytest.mark.parametrize(
    "said", ["{", "[]", '{"accounts": []}', '{"executable": "", "accounts": [{"new": 1}]}']
)
def test_one_with_another_version(remotely, said: str) -> None:
    told = remotely(lambda script: Path(script).with_name(accounting.agent.ANSWER).write_text(said))
    assert told.accounts == ()
    assert "of another version" in told.why[0]


@pytest.mark.parametrize("error", [PermissionError("not permitted"), RuntimeError("another version")])
def test_it_cannot_be_asked(remotely, error: Exception) -> None:
    def refuse(script: str) -> None:
        raise error

    told = remotely(refuse)
    assert told.why == (f"it cannot be asked: {error}",)
    assert accounting.INSIDE in told.lines()
