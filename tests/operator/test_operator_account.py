"""`gpulint gpu account PID`: asking real processes, with a fake driver beside them."""

from __future__ import annotations

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
        assert process.stdout is not None
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
    return subprocess.run(
        [sys.executable, "-m", "gpulint", "gpu", "account", *options, str(pid)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=60,
    )


def card(*listed: tuple[int, int | None]) -> list[dict[str, object]]:
    used = 9 * MIB + sum(size or 0 for _, size in listed)
    return [{"name": "Fake", "total": 8192 * MIB, "used": used, "temperature": 40, "processes": listed}]


class TestAProgramUnderRun:
    def test_it_answers_and_the_driver_s_figures_are_added(
        self, home: Path, start: Callable[..., int]
    ) -> None:
        pid = start(TRAINING)  # it has no driver, as in an environment without nvidia-ml-py
        said = account(home, pid, cards=card((pid, 620 * MIB), (4_000_000, 100 * MIB)))
        assert (said.returncode, said.stderr) == (0, "")
        lines = [" ".join(line.split()) for line in said.stdout.splitlines()]
        assert "held by C++ code 4.00 MiB no tensor of Python's: DDP's buckets, libraries" in lines
        assert "= reserved by torch 20.00 MiB" in lines
        assert any(line.startswith("unexplained 600.00 MiB the CUDA context") for line in lines)
        assert "= the process 620.00 MiB the driver's list of processes" in lines

    def test_its_own_driver_tells(self, home: Path, start: Callable[..., int]) -> None:
        cards = json.dumps(card((1, 100 * MIB)))
        pid = start(TRAINING, cards=cards)
        told = json.loads(account(home, pid, "--json").stdout)
        (only,) = told["accounts"]
        assert (only["reserved"], only["uuid"]) == (20 * MIB, "GPU-Fake")
        assert only["process"] == 100 * MIB  # the list's only process, by another number

    def test_asked_twice(self, home: Path, start: Callable[..., int]) -> None:
        pid = start(TRAINING)
        assert [account(home, pid, "--json").returncode for _ in range(2)] == [0, 0]

    def test_a_program_without_cuda_or_torch(self, home: Path, start: Callable[..., int]) -> None:
        code = "import sys, time; print('up', flush=True)\nwhile time.sleep(0.1) is None: assert 'torch' not in sys.modules"
        pid = start(code)
        assert "CUDA has not been used in this process" in account(home, pid).stdout
        time.sleep(0.3)
        assert gpu.describe(pid) is not None  # to be asked imported nothing, and disturbed nothing

    def test_one_that_cannot_answer_now(self, home: Path, start: Callable[..., int]) -> None:
        pid = start(IDLE)
        os.kill(pid, signal.SIGSTOP)
        try:
            said = account(home, pid, "--timeout", "0.5", cards=card((pid, 620 * MIB)))
        finally:
            os.kill(pid, signal.SIGCONT)
        assert said.returncode == 0
        assert "it did not answer within 0.5 s" in said.stdout
        assert "620.00 MiB of 8.00 GiB" in said.stdout


class TestAnyOtherProcess:
    def test_what_the_driver_says_and_how_to_learn_more(self, home: Path, start: Callable[..., int]) -> None:
        pid = start(IDLE, under_run=False)
        said = account(home, pid, cards=card((pid, 620 * MIB)))
        assert said.returncode == 0
        assert "GPU 0 (Fake): 620.00 MiB of 8.00 GiB, by the driver's list of processes" in said.stdout
        assert "start it with `gpulint run -- ...`" in said.stdout

    def test_one_that_is_on_no_card(self, home: Path, start: Callable[..., int]) -> None:
        said = account(home, start(IDLE, under_run=False), cards=card((4_000_000, 620 * MIB)))
        assert said.returncode == 2
        assert "the driver lists it on no card" in said.stdout

    def test_no_driver(self, home: Path, start: Callable[..., int]) -> None:
        said = account(home, start(IDLE, under_run=False))
        assert said.returncode == 2
        assert "no NVIDIA driver answers" in said.stdout

    def test_no_such_process(self, home: Path) -> None:
        said = account(home, 2**22)
        assert (said.returncode, said.stdout) == (2, "")
        assert said.stderr == "gpulint: there is no process 4194304 here\n"

    def test_somebody_else_s(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(accounting.os, "getuid", lambda: 12345)
        told = accounting.told(os.getpid(), 0.5)
        assert told.accounts == ()
        assert "is not asked" in told.why[0]


class TestASnapshotOfARunningProgram:
    """`gpulint gpu snapshot PID FILE`."""

    def ask(self, home: Path, pid: int, *options: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "gpulint", "gpu", "snapshot", str(pid), str(home / "run.pickle")]
        return subprocess.run([*command, *options], capture_output=True, text=True, timeout=60)

    def test_it_records_for_a_while_and_writes(self, home: Path, start: Callable[..., int]) -> None:
        said = self.ask(
            home, start(TRAINING.replace('print("up"', f'{HISTORY}print("up"')), "--seconds", "0.3"
        )
        assert (said.returncode, said.stderr) == (0, "")
        assert said.stdout.startswith(f"A memory snapshot was written to {home / 'run.pickle'}")
        written = pickle.loads((home / "run.pickle").read_bytes())
        assert written["device_traces"] == [[], ["recorded with all"]]
        assert (home / "stopped").exists()

    def test_one_that_records_already_goes_on_to(self, home: Path, start: Callable[..., int]) -> None:
        begun = f'{HISTORY}torch.cuda.memory._record_memory_history("state")\nprint("up"'
        said = self.ask(home, start(TRAINING.replace('print("up"', begun)), "--seconds", "30")
        assert (said.returncode, said.stderr) == (0, "")
        assert pickle.loads((home / "run.pickle").read_bytes())["device_traces"] == [
            [],
            ["recorded with state"],
        ]
        assert not (home / "stopped").exists()

    def test_one_without_cuda(self, home: Path, start: Callable[..., int]) -> None:
        said = self.ask(home, start(IDLE))
        assert said.returncode == 2
        assert said.stderr == "gpulint: it could not answer: CUDA has not been used in this process\n"
        assert not (home / "run.pickle").exists()

    def test_one_that_cannot_be_asked(self, home: Path, start: Callable[..., int]) -> None:
        said = self.ask(home, start(IDLE, under_run=False))
        assert (said.returncode, "start it with `gpulint run -- ...`" in said.stderr) == (2, True)


class TestPython314:
    """`sys.remote_exec`, played by a process that runs the file that it is handed."""

    def test_the_process_answers(self, monkeypatch: pytest.MonkeyPatch) -> None:
        asked = []

        def remote_exec(pid: int, script: str) -> None:
            asked.append(pid)
            subprocess.run([sys.executable, "-I", script], check=True, cwd="/")

        monkeypatch.setattr(sys, "remote_exec", remote_exec, raising=False)
        monkeypatch.setattr(accounting.gpu, "environment", lambda pid: {})
        told = accounting.told(os.getpid(), 20)
        assert asked == [os.getpid()]
        assert [one.missing for one in told.accounts] == ["CUDA has not been used in this process"]

    @pytest.mark.parametrize(
        "said", ["{", "[]", '{"accounts": []}', '{"executable": "", "accounts": [{"new": 1}]}']
    )
    def test_one_with_another_version(self, monkeypatch: pytest.MonkeyPatch, said: str) -> None:
        def remote_exec(pid: int, script: str) -> None:
            Path(script).with_name(accounting.agent.ANSWER).write_text(said)

        monkeypatch.setattr(sys, "remote_exec", remote_exec, raising=False)
        monkeypatch.setattr(accounting.gpu, "environment", lambda pid: {})
        told = accounting.told(os.getpid(), 20)
        assert told.accounts == ()
        assert "of another version" in told.why[0]

    @pytest.mark.parametrize("error", [PermissionError("not permitted"), RuntimeError("another version")])
    def test_it_cannot_be_asked(self, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
        def remote_exec(pid: int, script: str) -> None:
            raise error

        monkeypatch.setattr(sys, "remote_exec", remote_exec, raising=False)
        monkeypatch.setattr(accounting.gpu, "environment", lambda pid: {})
        told = accounting.told(os.getpid(), 1)
        assert told.why == (f"it cannot be asked: {error}",)
        assert accounting.INSIDE in told.lines()
