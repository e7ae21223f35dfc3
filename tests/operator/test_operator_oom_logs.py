"""`gpulint oom`: out-of-memory messages in logs, those that `oom_guard` has explained already, and what is told of them."""

import io
import json
import logging
import re
import subprocess
import sys
import tracemalloc
from pathlib import Path

import oom_messages as said
import pytest
import support
from support import run_command

from gpulint.memory.figures import MemoryStats
from gpulint.memory.guard import OomEvent
from gpulint.memory.oom import diagnose
from gpulint.memory.oom.messages import parse_message
from gpulint.memory.releasing import Cleared
from gpulint.operator.oom_log import LogReport, read_log
from gpulint.reports.oom import document
from gpulint.reports.terminal import write

HERE = "/home/ann/train.py:61 in train_step"
TRACE = said.TRACE.splitlines()


def render(report: LogReport) -> str:
    out = io.StringIO()
    write(document(report), out)
    return out.getvalue()


def log(*lines: str) -> LogReport:
    return read_log(io.StringIO("\n".join(lines) + "\n"))


# -- where a message stands ------------------------------------------------------------------------------------


def test_the_users_line_and_the_libraries_cause_are_named() -> None:
    (found,) = log("epoch 1", *TRACE, said.TORCH_2_9).occurrences
    assert (found.where, found.line) == (HERE, 9)
    (found,) = log(f"ERROR: {said.TORCH_2_9}", *TRACE, said.TORCH_2_9).occurrences
    assert (found.where, found.line, found.times) == (HERE, 1, 2)
    frame = (
        '  File "/opt/venv/lib/python3.11/site-packages/torch/serialization.py", line 1500, in load_tensor'
    )
    text = render(log(*TRACE, frame, said.TORCH_2_9))
    assert "raised while a checkpoint is loaded" in text
    assert '1. `torch.load(path, map_location="cpu")`' in text


@pytest.mark.parametrize(
    ("lines", "where"),
    [
        (["Cell In[7], line 4", "      2 x = 1", "----> 4 train()"], "Cell In[7]:4"),
        (["File ~/proj/train.py:33, in Trainer.fit(self, data)"], "~/proj/train.py:33 in Trainer.fit"),
        (["│ /home/ann/train.py:176 in <module>      │"], "/home/ann/train.py:176 in <module>"),
    ],
)
def test_tracebacks_of_notebooks_and_of_rich_are_read(lines: list[str], where: str) -> None:
    foreign = (
        "File /v/lib/python3.11/site-packages/torch/nn/modules/linear.py:125, in Linear.forward(self, input)"
    )
    head = "OutOfMemoryError                          Traceback (most recent call last)"
    (found,) = log(head, *lines, foreign, said.TORCH_2_9).occurrences
    assert found.where == where


def test_ranks_are_told_apart() -> None:
    one, two = ([f"[rank{n}]: {line}" for line in (*TRACE, said.TORCH_2_1)] for n in (0, 1))
    two = [line.replace("line 61", "line 70") for line in two]
    report = log(*[line for pair in zip(one, two, strict=True) for line in pair])
    assert [(o.rank, o.where) for o in report.occurrences] == [("0", HERE), ("1", HERE.replace("61", "70"))]
    prefixes = {
        "3": ("[rank3]: ", "[default3]:", "3: ", "2026-01-05T10:11:12.123Z [rank3]: "),
        "pid 771": ("(RayTrainWorker pid=771, ip=10.0.0.4) ",),
    }
    for rank, written in prefixes.items():
        for prefix in written:
            (found,) = log(prefix + said.TORCH_2_4_CONTAINER).occurrences
            assert found.rank == rank


def test_how_a_message_may_be_written() -> None:
    (found,) = log(f"  3%|▎| 3/100 [00:01<?]\r\x1b[31m{said.TORCH_2_9}\x1b[0m").occurrences
    assert found.diagnosis.kind == "capacity"
    (found,) = log(*said.TORCH_2_2_SHARED.replace(". ", ".\n").splitlines(), "next").occurrences
    assert found.diagnosis.kind == "other-processes"
    (found,) = log(json.dumps({"message": said.TRACE + said.TORCH_2_9})).occurrences
    assert (found.diagnosis.message.device, found.where) == (3, HERE)
    (found,) = log("step 1", *said.ASYNC.splitlines(), "step 2").occurrences
    assert found.diagnosis.message.requested == 640 * 1024**2
    assert read_log(io.StringIO("CUDA out of memory. Tried to allocate 2.00 GiB.")).occurrences


def test_what_several_messages_say_together() -> None:
    report = log(said.TORCH_2_9, "retrying", said.TORCH_2_9, said.TORCH_2_1)
    assert [(o.line, o.times) for o in report.occurrences] == [(1, 2), (4, 1)]
    assert render(report).splitlines()[-1].startswith("3 out-of-memory messages")
    retries = "|            CUDA OOMs: 1            |        cudaMalloc retries: 17        |"
    report = log(retries, said.TORCH_2_0_FRAGMENTED)
    assert report.retries == 17
    assert "retried 17 times" in render(report)
    sizes = (said.TORCH_2_9.replace("133.60 GiB is all", f"{size}.00 GiB is all") for size in (90, 110, 130))
    assert "grew from one error to the next" in render(log(*sizes))


def test_logs_without_a_message() -> None:
    assert render(log()) == "No out-of-memory message in 1 line.\n"
    text = render(log("torch.distributed.elastic: Signal 9 (SIGKILL) received by PID 77"))
    assert "No out-of-memory message" in text
    assert "killed from outside" in text
    assert log("out of memory in the cluster", "out of memory in a.py:3 in f()").occurrences == []


def test_memory_does_not_grow_with_the_log() -> None:
    def lines():
        for number in range(60_000):
            yield f"step {number} loss 0.1\n"
            if number % 1000 == 0:
                yield said.TORCH_2_9 + "\n"

    tracemalloc.start()
    report = read_log(lines())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert report.occurrences[0].times == 60
    assert peak < 2 * 1024**2


@pytest.mark.parametrize("filling", ["1", "x.py", "a", "-1 "])
def test_a_long_line_is_read_once(filling: str) -> None:
    """Every pattern is linear: a quadratic one would take minutes here."""
    found = log(f"{said.TORCH_2_9[:70]} {filling * (60_000 // len(filling))} memory .py")
    assert found.occurrences[0].diagnosis.message.requested == round(7.81 * 1024**3)
    assert read_log(io.StringIO("x" * 300_000 + " " + said.TORCH_2_9)).lines > 1  # one without an end


# -- what a guard has explained --------------------------------------------------------------------------------

CASES = {"capacity": said.TORCH_2_1, "fragmentation": said.TORCH_2_0_FRAGMENTED}
CONTAINER = said.TORCH_2_4_CONTAINER


def logged(text: str, recovered: bool = True, where: str = "/home/me/train.py:31 in step()") -> str:
    """What the guard writes of an error with this message; of the recovery only where there is a card."""
    message = parse_message(text)
    before = MemoryStats(0, allocated=message.allocated or 0, reserved=message.reserved or 0)
    cleared = Cleared(3, allocated=1 << 20, missing="" if recovered else "torch is built without CUDA")
    event = OomEvent(diagnose(message), where, before, cleared)
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    said = "\n".join(event.lines())
    handler.emit(logging.LogRecord("gpulint.memory", logging.ERROR, "", 0, "%s", (said,), None))
    return stream.getvalue()


@pytest.mark.parametrize("recovered", [True, False])
def test_a_guards_report_is_an_occurrence(recovered: bool) -> None:
    host = "DefaultCPUAllocator: can't allocate memory: you tried to allocate 1125899906842624 bytes."
    for text in (*CASES.values(), CONTAINER, said.MPS, said.TORCH_2_2_SHARED, host):
        log_text = f"epoch 1\n{logged(text, recovered)}epoch 2\nloss 0.1\n"
        (found,) = read_log(io.StringIO(log_text)).occurrences
        assert (found.where, found.line) == ("/home/me/train.py:31 in step", 2)
        assert found.diagnosis == diagnose(parse_message(text))  # type: ignore[arg-type]


@pytest.mark.parametrize("recovered", [True, False])
def test_every_event_counts_with_and_without_a_recovery(recovered: bool) -> None:
    other = "/home/me/train.py:40 in test()"
    text = f"{logged(CONTAINER, recovered) * 3}trying again\n{logged(CONTAINER, recovered, other)}"
    report = read_log(io.StringIO(text))
    assert [(one.where, one.times) for one in report.occurrences] == [
        ("/home/me/train.py:31 in step", 3),
        ("/home/me/train.py:40 in test", 1),
    ]


def test_the_error_that_a_guard_has_explained_is_not_counted_when_it_is_raised_again() -> None:
    traceback = 'Traceback (most recent call last):\n  File "/home/me/train.py", line 31, in step\n'
    first = f"{logged(CONTAINER, False)}{traceback}"
    (found,) = read_log(io.StringIO(f"{first}{CONTAINER}\ngpulint: capacity\n")).occurrences
    assert found.times == 1
    later = CONTAINER.replace("546.00 MiB", "646.00 MiB", 1)
    assert len(read_log(io.StringIO(f"{first}{later}\n")).occurrences) == 2


def test_reports_of_several_ranks_may_be_mixed() -> None:
    lines = [logged(text).splitlines() for text in CASES.values()]
    mixed = [f"[rank{rank}]: {line}" for pair in zip(*lines, strict=False) for rank, line in enumerate(pair)]
    mixed += [f"[rank{rank}]: {line}" for rank in (0, 1) for line in lines[rank][min(map(len, lines)) :]]
    report = read_log([f"{line}\n" for line in mixed])
    assert [(o.rank, o.diagnosis.kind) for o in report.occurrences] == [*zip("01", CASES, strict=True)]


# -- the command -----------------------------------------------------------------------------------------------


def oom(*arguments: str | Path, given: str | bytes = "") -> subprocess.CompletedProcess[bytes]:
    data = given.encode() if isinstance(given, str) else given
    return support.gpulint("oom", *arguments, cwd=Path.cwd(), stdin=data)


def test_a_log_is_a_file_or_standard_input(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(said.TRACE + said.TORCH_2_0_FRAGMENTED)
    done = oom(tmp_path / "a.log")
    assert done.returncode == 1
    assert b"fragmentation: there is enough memory" in done.stdout
    assert b"train.py:61 in train_step" in done.stdout
    assert (
        json.loads(oom("--json", given=said.TORCH_2_2_SHARED).stdout)["occurrences"][0]["kind"]
        == "other-processes"
    )
    for encoding in ("utf-16", "utf-8-sig"):  # as Windows' shells write
        (tmp_path / "b.log").write_bytes(("step 1\n" + said.TORCH_2_9).encode(encoding))
        for done in (oom(tmp_path / "b.log"), oom(given=(tmp_path / "b.log").read_bytes())):
            assert (done.returncode, b"capacity" in done.stdout) == (1, True)
    done = oom(given=b"\xff\xfe\x00 broken\n" + said.TORCH_2_9.encode())
    assert (done.returncode, b"capacity" in done.stdout) == (1, True)
    assert oom(given="all fine\n").returncode == 0


def test_what_is_no_log(tmp_path: Path) -> None:
    assert b"directory" in oom(tmp_path).stderr
    done = oom("no-such.log")
    assert (done.returncode, b"no-such.log" in done.stderr) == (2, True)
    closed = run_command("bash", "-c", f"{sys.executable} -m gpulint oom <&-", status=2)
    assert "internal error" not in closed.stderr


def test_what_is_not_supported_is_named() -> None:
    line = "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 9 bytes.\n"
    done = oom(given=line)
    assert done.returncode == 1
    assert b"1 message of JAX (XLA) (line 1): not supported" in done.stdout
    assert json.loads(oom("--json", given=line).stdout)["unread"] == {"JAX (XLA)": [1]}


def test_in_colour_where_it_is_asked_for() -> None:
    plain, coloured = (
        oom("--color", when, given=said.TORCH_2_0_FRAGMENTED).stdout.decode() for when in ("never", "always")
    )
    assert "\x1b[" in coloured
    assert "\x1b[" not in plain
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain


def test_the_files_of_the_traceback_are_checked_where_they_are_at_hand(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(support.HELD)
    frame = f'  File "{tmp_path}/train.py", line {support.HELD_ROW}, in train\n  File "/nowhere/a.py", line 3, in f\n'
    given = f"Traceback (most recent call last):\n{frame}{said.TORCH_2_1}\n"
    text = oom(given=given).stdout.decode()
    assert "gpulint has 1 finding:" in text
    assert f"train.py:{support.HELD_ROW}:9: GPU101" in text
    assert "(a line of the traceback)" in text
    (finding,) = json.loads(oom("--json", given=given).stdout)["findings"]
    assert finding["code"] == "GPU101"
    assert b"GPU101" not in oom("--no-lint", given=given).stdout
