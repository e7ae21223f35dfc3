"""`gpulint gpu` on a fake driver, with real processes to end."""

from __future__ import annotations

import ast
import inspect
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fake_nvml import SOURCE

import gpulint.memory
from gpulint.operator import gpu

GIB = 1024**3
SLEEPER = "import time\nprint('up', flush=True)\ntime.sleep(60)"
STUBBORN = (
    "import signal, time\nsignal.signal(signal.SIGTERM, lambda *_: None)\nprint('up', flush=True)\n"
    + ("while True: time.sleep(1)")
)


BEFORE = """
import sys
from gpulint.cli import main
from gpulint.operator import gpu
gpu.opens_gpu = lambda pid: {opens}
main(["gpu", *sys.argv[1:]])
"""


@pytest.fixture
def run(tmp_path):
    """The command with the fake driver: `run(arguments, cards=[...], given="y\\n")`; `opens` says whether processes
    are seen to have a GPU's device file open, None that it may not be seen."""
    (tmp_path / "pynvml.py").write_text(SOURCE)

    def call(*arguments: str, cards=None, given: str = "", opens: bool | None = True, timeout: float = 60):
        environment = {**os.environ, "PYTHONPATH": str(tmp_path), "COLUMNS": "160"}
        if cards is not None:
            environment["FAKE_NVML"] = json.dumps(cards)
        return subprocess.run(
            [sys.executable, "-c", BEFORE.format(opens=opens), *arguments],
            input=given,
            capture_output=True,
            text=True,
            env=environment,
            timeout=timeout,
        )

    return call


@pytest.fixture
def child():
    """Starts real processes; ends what is left of them."""
    started = []

    def start(code: str) -> subprocess.Popen[str]:
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        process.stdout.readline()
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


def card(*processes_: tuple[int, int | None], name: str = "Fake 80G", used: int = 20 * GIB, **more):
    return {"name": name, "total": 80 * GIB, "used": used, "temperature": 41, "processes": processes_, **more}


class TestShow:
    def test_cards_and_processes(self, run) -> None:
        done = run(cards=[card((os.getpid(), 19 * GIB), load=97), card(name="Idle", used=0)])
        assert done.returncode == 0
        assert "GPU 0  Fake 80G" in done.stdout
        assert "20.00 GiB of 80.00 GiB used" in done.stdout
        assert "97 % busy" in done.stdout
        assert "41 °C" in done.stdout
        assert Path(sys.executable).name in done.stdout  # the command line of this very process
        assert "no process" in done.stdout

    def test_processes_of_other_containers_are_not_invented(self, run) -> None:
        done = run(cards=[card((99999999, None))])
        assert "not visible from here" in done.stdout

    def test_memory_that_nobody_listed_holds(self, run) -> None:
        assert "20.00 GiB more are in use" in run(cards=[card()]).stdout

    def test_json(self, run) -> None:
        done = run("--json", cards=[card((os.getpid(), GIB))])
        (data,) = json.loads(done.stdout)
        assert data["free"] == 60 * GIB
        assert data["power"] is None
        assert data["tenants"][0]["own"] is True
        assert data["tenants"][0]["pid"] == os.getpid()

    def test_without_driver(self, run) -> None:
        done = run()
        assert done.returncode == 2
        assert "no NVIDIA driver answers" in done.stderr

    def test_a_lost_card_does_not_hide_the_others(self, run) -> None:
        done = run(cards=[card(lost=True), card(name="Other 40G")])
        assert done.returncode == 0
        assert "cannot be read: GPU is lost" in done.stdout
        assert "Other 40G" in done.stdout

    def test_a_card_that_keeps_its_memory_private(self, run) -> None:
        done = run(cards=[card(private=True)])
        assert "memory not told" in done.stdout
        assert json.loads(run("--json", cards=[card(private=True)]).stdout)[0]["total"] is None

    def test_a_driver_that_fails(self, run) -> None:
        done = run(cards="broken")
        assert done.returncode == 2
        assert done.stderr == "gpulint: the NVIDIA driver answers with an error (Unknown Error)\n"

    def test_watch_refreshes_until_interrupted(self, tmp_path, run) -> None:
        run(cards=[])  # writes the driver
        environment = {**os.environ, "PYTHONPATH": str(tmp_path), "FAKE_NVML": json.dumps([card()])}
        process = subprocess.Popen(
            [sys.executable, "-m", "gpulint", "gpu", "--watch", "--interval", "0.1"],
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
            # Shells start their background jobs with INT ignored.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        time.sleep(2.0)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=20)
        assert process.returncode == 0
        assert "GPU 0" in output

    def test_clear_tells_the_truth(self, run) -> None:
        done = run("clear")
        assert done.returncode == 0
        assert "no other process can empty it" in done.stdout

    def test_what_clear_advises_is_there(self, run) -> None:
        advice = re.findall("`([^`]+)`", run("clear").stdout)
        calls = [ast.parse(text, mode="eval").body for text in advice if text.endswith(")")]
        named = {}
        for call in calls:
            assert isinstance(call, ast.Call)
            name = ast.unparse(call.func).rpartition(".")[2]
            given = {one.arg or "": ast.literal_eval(one.value) for one in call.keywords}
            values = [ast.literal_eval(one) for one in call.args]
            named[name] = inspect.signature(getattr(gpulint.memory, name)).bind(*values, **given).arguments
        assert named == {"clear": {"force": True}, "reset_peak": {}, "limit": {"fraction": 0.8}}
        assert [text for text in advice if text.startswith("gpulint ")] == [
            "gpulint gpu kill PID",
            "gpulint run --alloc-conf auto -- ...",
        ]
        tried = [
            sys.executable,
            "-m",
            "gpulint",
            "run",
            "--alloc-conf",
            "auto",
            "--",
            sys.executable,
            "-c",
            "print(1)",
        ]
        assert subprocess.run(tried, capture_output=True, text=True, timeout=60).stdout == "1\n"


class TestKill:
    def test_asks_and_ends(self, run, child) -> None:
        process = child(SLEEPER)
        done = run("kill", str(process.pid), cards=[card((process.pid, GIB))], given="y\n")
        assert done.returncode == 0, done.stderr
        assert process.wait(10) == -signal.SIGTERM
        assert f"{process.pid}: ended" in done.stdout

    @pytest.mark.parametrize("answer", ["n\n", "\n"])
    def test_no_means_no(self, run, child, answer) -> None:
        process = child(SLEEPER)
        done = run("kill", str(process.pid), cards=[card((process.pid, GIB))], given=answer)
        assert done.returncode == 1
        assert process.poll() is None

    def test_kill_comes_after_the_grace(self, run, child) -> None:
        process = child(STUBBORN)
        done = run("kill", "-y", "--grace", "0.5", str(process.pid), cards=[card((process.pid, GIB))])
        assert process.wait(10) == -signal.SIGKILL
        assert "did not react to TERM" in done.stdout
        assert f"{process.pid}: killed" in done.stdout

    def test_a_process_without_gpu_is_left_alone(self, run, child) -> None:
        process = child(SLEEPER)
        done = run("kill", "-y", str(process.pid), cards=[card()], opens=False)
        assert done.returncode == 2
        assert "uses no GPU" in done.stderr
        assert process.poll() is None

    def test_a_number_of_the_host_is_not_taken_for_a_process_here(self, run, child) -> None:
        process = child(SLEEPER)
        cards = [card((process.pid, GIB))]
        done = run("kill", "-y", str(process.pid), cards=cards, opens=False)
        assert done.returncode == 2
        assert process.poll() is None
        assert "time.sleep" not in run(cards=cards, opens=False).stdout

    def test_where_it_may_not_be_seen_the_driver_is_believed(self, run, child) -> None:
        process = child(SLEEPER)
        assert run("kill", "-y", str(process.pid), cards=[card()], opens=None).returncode == 2
        assert (
            run("kill", "-y", str(process.pid), cards=[card((process.pid, GIB))], opens=None).returncode == 0
        )

    def test_our_own_parents_are_left_alone(self, run) -> None:
        done = run("kill", "-y", str(os.getpid()), cards=[card((os.getpid(), GIB))])
        assert done.returncode == 2
        assert "one that started it" in done.stderr

    def test_no_such_process(self, run) -> None:
        assert "no such process" in run("kill", "-y", "99999999", cards=[card()]).stderr

    def test_there_is_no_kill_all(self, run) -> None:
        assert run("kill", cards=[card()]).returncode == 2
        assert run("kill", "--all", cards=[card()]).returncode == 2
        assert run("kill", "0", cards=[card()]).returncode == 2

    def test_others_processes_are_left_alone(self, monkeypatch, child) -> None:
        process = child(SLEEPER)
        known = gpu.describe(process.pid)
        assert known is not None
        monkeypatch.setattr(os, "getuid", lambda: known.uid + 1)
        monkeypatch.setattr(gpu, "opens_gpu", lambda pid: True)
        cards = [gpu.Card(0, "x", "u", 1, 1, 0, tenants=(gpu.Tenant(process.pid, 1),))]
        allowed, refused = gpu.candidates([process.pid], cards)
        assert not allowed
        assert "belongs to" in refused[process.pid]


class TestEnding:
    def test_a_reused_number_is_not_signalled(self, child) -> None:
        process = child(SLEEPER)
        known = gpu.describe(process.pid)
        assert known is not None
        known.handle._ident = (known.pid, 1.0)  # as of one that had the number before
        assert gpu.end(known, 0.1) == "gone"
        assert process.poll() is None

    def test_one_that_has_ended_is_gone(self, child) -> None:
        process = child(SLEEPER)
        known = gpu.describe(process.pid)
        assert known is not None
        process.kill()
        process.wait()
        assert gpu.end(known, 0.1) == "gone"

    def test_one_that_its_parent_takes_no_note_of_has_ended(self, child) -> None:
        process = child(SLEEPER)
        known = gpu.describe(process.pid)
        assert known is not None
        assert gpu.end(known, 5.0) == "ended"  # nobody has waited for it
        assert gpu.describe(process.pid) is None


@pytest.mark.parametrize("asked", [("account", "1"), ("kill", "1"), ("snapshot", "1", "file.pickle"), ()])
def test_without_psutil_it_is_said(tmp_path, run, asked) -> None:
    (tmp_path / "psutil.py").write_text("raise ImportError")
    done = run(*asked, cards=[card((os.getpid(), GIB))])
    assert done.returncode == 2
    assert done.stderr == "gpulint: the library psutil is not installed: pip install psutil\n"
