"""`gpulint gpu` on a fake driver, with real processes to end; who else is on the cards."""

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
from support import run_command

import gpulint.memory
from gpulint.operator import gpu
from gpulint.operator.gpu import Card, Tenant

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
        command = [sys.executable, "-c", BEFORE.format(opens=opens), *arguments]
        return run_command(*command, input=given, env=environment, timeout=timeout)

    return call


@pytest.fixture
def child():
    """Starts real processes; ends what is left of them."""
    started = []

    def start(code: str) -> subprocess.Popen[str]:
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
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


# -- showing ---------------------------------------------------------------------------------------------------


def test_cards_and_processes(run) -> None:
    cards = [
        card((os.getpid(), 19 * GIB), load=97),
        card(name="Idle", used=0),
        card((99999999, None)),
        card(),
    ]
    done = run(cards=cards)
    assert done.returncode == 0
    for told in (
        "GPU 0  Fake 80G",
        "20.00 GiB of 80.00 GiB used",
        "97 % busy",
        "41 °C",
        Path(sys.executable).name,  # the command line of this very process
        "no process",
        "not visible from here",  # of another container: none is invented
        "20.00 GiB more are in use",  # by nobody who is listed
    ):
        assert told in done.stdout
    first, *_ = json.loads(run("--json", cards=cards).stdout)
    assert (first["free"], first["power"]) == (60 * GIB, None)
    assert (first["tenants"][0]["own"], first["tenants"][0]["pid"]) == (True, os.getpid())


def test_a_card_that_does_not_answer_does_not_hide_the_others(run) -> None:
    cards = [card(lost=True), card(name="Other 40G"), card(private=True)]
    done = run(cards=cards)
    assert done.returncode == 0
    for told in ("cannot be read: GPU is lost", "Other 40G", "memory not told"):
        assert told in done.stdout
    assert json.loads(run("--json", cards=cards).stdout)[2]["total"] is None


@pytest.mark.parametrize(
    ("cards", "said"),
    [(None, "no NVIDIA driver answers"), ("broken", "answers with an error (Unknown Error)")],
)
def test_without_a_driver(run, cards, said) -> None:
    done = run(cards=cards)
    assert (done.returncode, said in done.stderr) == (2, True)
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("asked", [("account", "1"), ("kill", "1"), ("snapshot", "1", "file.pickle"), ()])
def test_without_psutil_it_is_said(tmp_path, run, asked) -> None:
    (tmp_path / "psutil.py").write_text("raise ImportError")
    done = run(*asked, cards=[card((os.getpid(), GIB))])
    assert done.returncode == 2
    assert done.stderr == "gpulint: the library psutil is not installed: pip install psutil\n"


def test_watch_refreshes_until_interrupted(tmp_path, run) -> None:
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


def test_clear_tells_the_truth_and_what_it_advises_is_there(run) -> None:
    done = run("clear")
    assert (done.returncode, "no other process can empty it" in done.stdout) == (0, True)
    advice = re.findall("`([^`]+)`", done.stdout)
    calls = [ast.parse(text, mode="eval").body for text in advice if text.endswith(")")]
    named = {}
    for call in calls:
        name = ast.unparse(call.func).rpartition(".")[2]
        given = {one.arg or "": ast.literal_eval(one.value) for one in call.keywords}
        values = [ast.literal_eval(one) for one in call.args]
        named[name] = inspect.signature(getattr(gpulint.memory, name)).bind(*values, **given).arguments
    assert named == {"clear": {"force": True}, "reset_peak": {}, "limit": {"fraction": 0.8}}
    commands = [text for text in advice if text.startswith("gpulint ")]
    assert commands == ["gpulint gpu kill PID", "gpulint run --alloc-conf auto -- ..."]


# -- ending ----------------------------------------------------------------------------------------------------


def test_kill_asks_and_ends(run, child) -> None:
    process = child(SLEEPER)
    for answer in ("n\n", "\n"):
        done = run("kill", str(process.pid), cards=[card((process.pid, GIB))], given=answer)
        assert (done.returncode, process.poll()) == (1, None)
    done = run("kill", str(process.pid), cards=[card((process.pid, GIB))], given="y\n")
    assert done.returncode == 0, done.stderr
    assert process.wait(10) == -signal.SIGTERM
    assert f"{process.pid}: ended" in done.stdout


def test_kill_comes_after_the_grace(run, child) -> None:
    process = child(STUBBORN)
    done = run("kill", "-y", "--grace", "0.5", str(process.pid), cards=[card((process.pid, GIB))])
    assert process.wait(10) == -signal.SIGKILL
    assert "did not react to TERM" in done.stdout
    assert f"{process.pid}: killed" in done.stdout


def test_who_is_left_alone(run, child) -> None:
    process = child(SLEEPER)
    pid, on_card = str(process.pid), [card((process.pid, GIB))]
    done = run("kill", "-y", pid, cards=[card()], opens=False)
    assert (done.returncode, "uses no GPU" in done.stderr) == (2, True)
    # a number of the host's is not taken for a process here
    assert run("kill", "-y", pid, cards=on_card, opens=False).returncode == 2
    assert "time.sleep" not in run(cards=on_card, opens=False).stdout
    done = run("kill", "-y", str(os.getpid()), cards=[card((os.getpid(), GIB))])
    assert (done.returncode, "one that started it" in done.stderr) == (2, True)
    assert "no such process" in run("kill", "-y", "99999999", cards=[card()]).stderr
    for nobody in ((), ("--all",), ("0",)):
        assert run("kill", *nobody, cards=[card()]).returncode == 2
    # where it may not be seen who uses a GPU, the driver is believed
    assert run("kill", "-y", pid, cards=[card()], opens=None).returncode == 2
    assert process.poll() is None
    assert run("kill", "-y", pid, cards=on_card, opens=None).returncode == 0


def test_others_processes_are_left_alone(monkeypatch, child) -> None:
    process = child(SLEEPER)
    known = gpu.describe(process.pid)
    assert known is not None
    monkeypatch.setattr(os, "getuid", lambda: known.uid + 1)
    monkeypatch.setattr(gpu, "opens_gpu", lambda pid: True)
    cards = [gpu.Card(0, "x", "u", 1, 1, 0, tenants=(gpu.Tenant(process.pid, 1),))]
    allowed, refused = gpu.candidates([process.pid], cards)
    assert not allowed
    assert "belongs to" in refused[process.pid]


def test_only_the_process_that_is_meant_is_signalled(child) -> None:
    process = child(SLEEPER)
    before, known = gpu.describe(process.pid), gpu.describe(process.pid)
    assert known is not None
    before.handle._ident = (before.pid, 1.0)  # as of one that had the number before
    assert gpu.end(before, 0.1) == "gone"
    assert process.poll() is None
    assert gpu.end(known, 5.0) == "ended"  # though nobody has waited for it
    assert gpu.describe(process.pid) is None
    process.wait()
    assert gpu.end(known, 0.1) == "gone"


# -- who else is on the cards --------------------------------------------------------------------------------


MIB = 1024**2


def cards(*first: Tenant, second: tuple[Tenant, ...] = ()) -> list[Card]:
    return [
        Card(0, "NVIDIA H200", "GPU-aa", used=900 * MIB, tenants=first),
        Card(1, "NVIDIA H200", "GPU-bb", used=3 * MIB, tenants=second),
    ]


def test_processes_on_the_visible_cards_are_others() -> None:
    seen = cards(Tenant(4_000_000, 880 * MIB))
    (one,) = gpu.others(seen, {})
    assert (one.card, one.pid, one.bytes) == ("GPU 0 (NVIDIA H200)", 4_000_000, 880 * MIB)
    assert gpu.others(seen, {"CUDA_VISIBLE_DEVICES": "1"}) == ()
    assert gpu.others(seen, {"CUDA_VISIBLE_DEVICES": "GPU-b"}) == ()
    assert gpu.others(seen, {"CUDA_VISIBLE_DEVICES": ""}) == ()
    assert len(gpu.others(seen, {"CUDA_VISIBLE_DEVICES": "1,0"})) == 1


def test_memory_that_no_listed_process_has_is_somebodys() -> None:
    """In a container the driver lists no process, and tells what is in use all the same."""
    (one,) = gpu.others(cards(), {})
    assert (one.pid, one.bytes) == (0, 900 * MIB)


def test_a_process_of_unknown_size_explains_what_is_in_use() -> None:
    (one,) = gpu.others(cards(Tenant(4_000_000, None)), {})
    assert (one.pid, one.bytes) == (4_000_000, None)


def test_after_a_card_that_is_not_there_cuda_sees_none() -> None:
    assert [card.index for card in gpu.visible(cards(), "0,7,1")] == [0]
    assert [card.index for card in gpu.visible(cards(), "MIG-GPU-aa/1/0")] == [0, 1]


def test_without_the_library_it_is_said_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert "pip install nvidia-ml-py" in gpu.look()[1]
