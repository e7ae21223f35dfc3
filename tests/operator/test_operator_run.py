"""`gpulint run` with real programs: status, signals, streams, environment, timeline."""

import errno
import json
import os
import shlex
import signal
import subprocess
import sys
import time

import pytest
from support import run_command

from gpulint.operator import launcher, timeline
from gpulint.runtime.record.result import RunResult

RUN = [sys.executable, "-m", "gpulint", "run"]
COUNTING = """
import signal, sys, time
got = []
after = AFTER
for name in ("SIGTERM", "SIGINT", "SIGUSR1", "SIGHUP"):
    signal.signal(getattr(signal, name), lambda number, _: got.append(signal.Signals(number).name))
print("up", flush=True)
end = time.time() + 10
while time.time() < end:
    time.sleep(0.05)
    if got and after:
        end, after = time.time() + after, 0
print(" ".join(got), flush=True)
sys.exit(7)
"""


def counting(seconds: float) -> str:
    """A program that tells which signals have come, these seconds after the first."""
    return COUNTING.replace("AFTER", str(seconds))


def run(*program: str, options: tuple[str, ...] = (), status: int | None = None, **more):
    if "--report" not in options and "-q" not in options:
        options = (*options, "--report", "gpulint-run.json")
    return run_command(*RUN, *options, "--", *program, status=status, timeout=120, **more)


def python(code: str, **more) -> subprocess.CompletedProcess[str]:
    return run(sys.executable, "-c", code, **more)


@pytest.fixture
def started(tmp_path):
    """Starts the launcher with a program that says "up"; ends both."""
    running = []

    def start(code: str, **more) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [*RUN, "--", sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            cwd=tmp_path, **more,
        )  # fmt: skip
        running.append(process)
        assert process.stdout.readline() == "up\n"
        return process

    yield start
    for process in running:
        if process.poll() is None:
            process.kill()
        process.communicate()


# -- the status is the program's, and the program runs, whatever becomes of our own words -------------------------


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", ">&- 2>&- <&-", "2>/dev/full", "2> >(true)"])
def test_closed_streams(closed, tmp_path) -> None:
    words = [*RUN, "--", sys.executable, "-c", "import os; os._exit(7)"]
    done = subprocess.run(["bash", "-c", f"{shlex.join(words)} {closed}"], cwd=tmp_path, timeout=60)
    assert done.returncode == 7


def test_no_room_for_the_agent(monkeypatch) -> None:
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(launcher.shutil, "copyfile", full)
    ended = launcher.launch([sys.executable, "-c", "import sys; sys.exit(5)"], None)
    assert (ended.code, ended.folder) == (5, None)
    (said,) = timeline.summary(ended, timeline.read_notes(ended.folder), None)
    assert said.endswith("No space left on device")


def test_exit_statuses(tmp_path) -> None:
    for status in (0, 3, 120, 255):
        assert python(f"import sys; sys.exit({status})", cwd=tmp_path).returncode == status
    for number in (signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGTERM):
        done = python(f"import os; os.kill(os.getpid(), {int(number)})", cwd=tmp_path, status=-number)
    done = python("raise KeyError('x')", cwd=tmp_path)
    assert (done.returncode, "KeyError: 'x'" in done.stderr) == (1, True)
    done = run("sh", "-c", "echo out; echo err >&2; exit 5", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (5, "out\n")
    assert done.stderr.startswith("err\n")


def test_what_is_no_program(tmp_path) -> None:
    (tmp_path / "train.py").write_text("")
    for program, status, said in (
        ("no-such-program-here", 127, "command not found"),
        ("train.py", 127, "gpulint run python train.py"),
        ("./train.py", 126, "cannot be started"),
    ):
        done = run(program, cwd=tmp_path)
        assert (done.returncode, said in done.stderr) == (status, True), done.stderr


def test_a_report_that_cannot_be_written_takes_nothing_else_away(tmp_path) -> None:
    (tmp_path / "gone").mkdir()
    code = "import os, torch; os.rmdir('gone'); torch.empty(1 << 50, dtype=torch.uint8)"
    done = python(code, options=("--report", "gone/report.json"), cwd=tmp_path, status=1)
    assert "what to try" in done.stderr
    assert "no report could be written" in done.stderr
    done = run("sh", "-c", "echo ran", options=("--report", "no/such.json"), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")  # that the folder is not there is told before
    assert "--report: there is no folder" in done.stderr


def test_streams_and_arguments_are_the_programs(tmp_path) -> None:
    done = python("import sys; sys.stdout.write(sys.stdin.read().upper())", cwd=tmp_path, input="a\nb")
    assert done.stdout == "A\nB"
    code = "import sys; sys.stdout.buffer.write(bytes(range(256)))"
    raw = subprocess.run([*RUN, "--", sys.executable, "-c", code], capture_output=True, cwd=tmp_path)
    assert raw.stdout == bytes(range(256))
    given = ["--lr", "3e-4", "--report", "-q", "", "a b", "--"]
    done = run(sys.executable, "-c", "import sys; print(sys.argv[1:])", *given, cwd=tmp_path)
    assert done.stdout.strip() == repr(given)
    assert python("import torch", cwd=tmp_path, options=("-q",)).stderr == ""


# -- signals ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGUSR1", "SIGHUP"])
def test_passed_on_once(started, name) -> None:
    process = started(counting(0.6))
    process.send_signal(getattr(signal, name))
    assert process.communicate(timeout=20)[0] == f"{name}\n"
    assert process.returncode == 7


def test_signals_to_the_group_are_not_doubled(started) -> None:
    process = started(counting(1.3), start_new_session=True)
    os.killpg(process.pid, signal.SIGUSR1)
    os.killpg(process.pid, signal.SIGTERM)
    time.sleep(0.3)
    os.killpg(process.pid, signal.SIGTERM)
    os.killpg(process.pid, signal.SIGUSR1)
    assert sorted(process.communicate(timeout=20)[0].split()) == ["SIGTERM"] * 2 + ["SIGUSR1"] * 2


@pytest.mark.parametrize("later", [0.5, 1.0])
def test_a_signal_to_the_group_is_no_reason_to_keep_one_back_that_comes_later(started, later) -> None:
    """Ctrl-C at the terminal, say, and then `kill -INT` to the launcher alone."""
    process = started(counting(1 + later), start_new_session=True)
    os.killpg(process.pid, signal.SIGUSR1)
    time.sleep(later)
    process.send_signal(signal.SIGUSR1)
    assert process.communicate(timeout=20)[0] == "SIGUSR1 SIGUSR1\n"


def test_blocked_signals_are_the_programs_own(started, tmp_path) -> None:
    """Threads that the program did not start must not take what it blocks."""
    process = started(
        "import signal, time; signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1]); print('up', flush=True)\n"
        "time.sleep(1); print(signal.sigwait([signal.SIGUSR1]).name)"
    )
    time.sleep(0.3)
    process.send_signal(signal.SIGUSR1)
    assert process.communicate(timeout=20)[0] == "SIGUSR1\n"
    assert process.returncode == 0
    code = "import signal; print(sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])))"
    assert python(code, cwd=tmp_path).stdout.strip() == "[]"


@pytest.mark.skipif(sys.platform != "linux", reason="needs prctl")
def test_the_program_does_not_outlive_a_killed_launcher(started) -> None:
    process = started(
        "import os, time; print('up', flush=True); print(os.getpid(), flush=True); time.sleep(60)"
    )
    pid = int(process.stdout.readline())
    process.kill()
    process.wait()
    limit = time.time() + 10
    while time.time() < limit and _alive(pid):
        time.sleep(0.05)
    assert not _alive(pid)


def _alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


# -- the environment -------------------------------------------------------------------------------------------


def test_settings_are_set_under_one_name_as_the_programs_torch_reads_it(tmp_path) -> None:
    torch = pytest.importorskip("torch")
    name = "PYTORCH_ALLOC_CONF" if torch.__version__ >= "2.12" else "PYTORCH_CUDA_ALLOC_CONF"
    code = "import json, os; print(json.dumps({k: v for k, v in os.environ.items() if 'ALLOC_CONF' in k}))"
    for wanted, value in (
        ("auto", "expandable_segments:True"),
        ("max_split_size_mb:64", "max_split_size_mb:64"),
    ):
        before = {} if wanted == "auto" else {"PYTORCH_CUDA_ALLOC_CONF": "x:1"}
        done = python(code, cwd=tmp_path, options=("--alloc-conf", wanted), env={**os.environ, **before})
        assert json.loads(done.stdout) == {name: value}


@pytest.mark.parametrize(
    ("version", "environment", "expected"),
    [
        ("2.4.1", {}, ("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")),
        ("1.13.0", {}, None),
        (
            "2.4.1",
            {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:False,garbage_collection_threshold:0.8"},
            ("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:False,garbage_collection_threshold:0.8"),
        ),
    ],
)
def test_what_auto_sets(version, environment, expected, monkeypatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    assert launcher.allocator_environment("auto", version, environment) == expected


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ("expandable_segment:True", "expandable_segments"),
        ("expandable_segments:true", "GPU604"),
        ("nonsense", "--alloc-conf: "),
    ],
)
def test_settings_that_torch_refuses_are_refused_before_the_program_starts(settings, said, tmp_path) -> None:
    done = python("print('started')", options=("--alloc-conf", settings), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("gpulint: --alloc-conf: ")
    assert said in line


def test_what_is_doubtful_is_told_before_the_program_starts(tmp_path) -> None:
    started = "import sys; print('started', file=sys.stderr)"
    settings = ("--alloc-conf", "expandable_segments:True,max_split_size_mb:128")
    told, line, *_ = python(started, options=settings, cwd=tmp_path).stderr.splitlines()
    assert line == "started"
    assert "(GPU601)" in told
    for visible, is_said in (("0.8", True), ("80%", True), ("0", False), ("", False)):
        done = python(started, cwd=tmp_path, env={**os.environ, "CUDA_VISIBLE_DEVICES": visible})
        assert (f"`CUDA_VISIBLE_DEVICES={visible}` is no list of cards" in done.stderr) == is_said


def test_interpreters_are_found(tmp_path) -> None:
    script = tmp_path / "torchrun"
    script.write_text(f"#!{sys.executable}\n")
    script.chmod(0o755)
    for command in ([sys.executable, "x.py"], ["env", "A=1", sys.executable, "x.py"], [str(script), "x.py"]):
        assert launcher.interpreter_of(command) == sys.executable
    assert launcher.interpreter_of(["sh", "-c", "true"]) is None


def test_the_path_and_sitecustomize_are_as_without_us(tmp_path) -> None:
    code = "import sys; print(sys.path)"
    plain = run_command(sys.executable, "-c", code, cwd=tmp_path)
    assert python(code, cwd=tmp_path).stdout == plain.stdout
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.mine = 'mine'\n")
    code = "import sys, sitecustomize; print(sys.mine, sitecustomize.__file__)"
    done = python(code, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert done.stdout.split() == ["mine", str(tmp_path / "sitecustomize.py")]


# -- the timeline ----------------------------------------------------------------------------------------------

TRAINING = """
import torch, time
model = torch.nn.Linear(64, 64)
for _ in range(8):
    model(torch.randn(8, 64)).sum().backward()
    time.sleep(0.05)
"""


def read(folder) -> RunResult:
    return RunResult.from_json(json.loads((folder / "gpulint-run.json").read_text()))


def test_samples_and_no_folder_is_left(tmp_path) -> None:
    place = tmp_path / "temporary"
    place.mkdir()
    environment = {**os.environ, "TMPDIR": str(place)}
    done = python(TRAINING, cwd=tmp_path, options=("--interval", "0.05"), env=environment, status=0)
    assert os.listdir(place) == []
    result = read(tmp_path)
    (rank,) = result.ranks
    assert result.end.reason == "finished"
    assert rank.environment.torch is not None
    assert rank.samples
    assert all(sample.rss for sample in rank.samples)
    assert "report: gpulint-run.json" in done.stderr


def test_samples_of_two_threads_are_in_order(tmp_path) -> None:
    notes = [{"kind": "process", "pid": 1}, *({"kind": "sample", "seconds": at} for at in (0.2, 0.101, 0.1))]
    (tmp_path / "1.jsonl").write_text("\n".join(map(json.dumps, notes)))
    (notes_read,) = timeline.read_notes(tmp_path)
    assert [sample["seconds"] for sample in notes_read.samples] == [0.1, 0.101, 0.2]


def test_the_page_speaks_of_samples_and_not_of_steps(tmp_path) -> None:
    python(TRAINING, cwd=tmp_path, options=("--interval", "0.05", "--report", "run.html"), status=0)
    page = (tmp_path / "run.html").read_text()
    assert "by time, not by step" in page
    assert "Step time" not in page
    assert "Every sample" in page


def test_without_torch_or_without_asking_there_is_no_report(tmp_path) -> None:
    done = python("print(1)", cwd=tmp_path)
    assert os.listdir(tmp_path) == []
    assert "imported torch" in done.stderr
    code = "import threading, torch; t = threading.Thread(target=lambda: torch.empty(1 << 50)); t.start(); t.join()"
    done = run_command(*RUN, "--", sys.executable, "-c", code, cwd=tmp_path)
    assert (done.returncode, os.listdir(tmp_path)) == (0, [])
    assert "host's memory" in done.stderr  # the error of a thread is explained too
    assert "host memory up to" in done.stderr


def test_uncaught_oom_is_explained_after_the_traceback(tmp_path) -> None:
    (tmp_path / "train.py").write_text(
        "import torch\ndef step():\n    return torch.empty(1 << 50, dtype=torch.uint8)\nstep()\n"
    )
    done = run(sys.executable, "train.py", cwd=tmp_path, status=1)
    assert "DefaultCPUAllocator" in done.stderr
    assert "train.py:3 in step" in done.stderr.partition("gpulint: out of memory at")[2]
    assert "the host's memory is exhausted" in done.stderr
    assert read(tmp_path).ranks[0].end.reason == "raised"


def test_a_killed_program_leaves_what_was_noted(tmp_path) -> None:
    code = TRAINING + "\ntime.sleep(1.5)\nimport os; os.kill(os.getpid(), 9)"
    python(code, cwd=tmp_path, options=("--interval", "0.05"), status=-9)
    result = read(tmp_path)
    assert (result.end.reason, result.end.signal) == ("killed", 9)
    assert result.ranks[0].samples


def test_ranks_and_loader_workers_which_are_none(tmp_path) -> None:
    (tmp_path / "train.py").write_text(
        "import torch, time\n"
        "if __name__ == '__main__':\n"
        "    loader = torch.utils.data.DataLoader(range(8), num_workers=2, multiprocessing_context='fork')\n"
        "    print(sum(int(x) for x in loader)); time.sleep(0.3)\n"
    )
    done = run(sys.executable, "train.py", cwd=tmp_path, options=("--interval", "0.05"))
    assert done.stdout == "28\n"
    assert len(read(tmp_path).ranks) == 1
    script = "for r in 0 1; do RANK=$r WORLD_SIZE=2 " + sys.executable + " train.py & done; wait"
    run("sh", "-c", script, cwd=tmp_path, options=("--interval", "0.05"))
    assert [(rank.rank, rank.world_size) for rank in read(tmp_path).ranks] == [(0, 2), (1, 2)]
