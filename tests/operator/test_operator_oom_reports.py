"""`gpulint oom` on logs in which `oom_guard` has explained the error already."""

from __future__ import annotations

import io
import logging

import pytest

from gpulint.memory.figures import MemoryStats
from gpulint.memory.guard import OomEvent
from gpulint.memory.oom import diagnose
from gpulint.memory.oom.messages import parse_message
from gpulint.memory.releasing import Cleared
from gpulint.operator.oom_log import read_log

TORCH = (
    "CUDA out of memory. Tried to allocate {size}. GPU 0 has a total capacity of 79.10 GiB of which {free} is free. Process 7 has "
    "{own} memory in use. Of the allocated memory {allocated} is allocated by PyTorch, and {cached} is reserved by PyTorch but "
    "unallocated."
)
CASES = [
    (
        "capacity",
        TORCH.format(
            size="20.00 GiB", free="1.00 GiB", own="78.00 GiB", allocated="70.00 GiB", cached="1.00 GiB"
        ),
    ),
    (
        "fragmentation",
        TORCH.format(
            size="6.00 GiB", free="1.00 GiB", own="78.00 GiB", allocated="60.00 GiB", cached="17.00 GiB"
        ),
    ),
]


def logged(text: str, recovered: bool = True, where: str = "/home/me/train.py:31 in step()") -> str:
    """What the guard writes of an error with this message; of the recovery only where there is a card."""
    message = parse_message(text)
    assert message is not None
    before = MemoryStats(0, allocated=message.allocated or 0, reserved=message.reserved or 0)
    cleared = Cleared(3, allocated=1 << 20, missing="" if recovered else "torch is built without CUDA")
    event = OomEvent(diagnose(message), where, before, cleared)
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    record = logging.LogRecord(
        "gpulint.memory", logging.ERROR, "", 0, "%s", ("\n".join(event.lines()),), None
    )
    handler.emit(record)
    return stream.getvalue()


@pytest.mark.parametrize(("kind", "text"), CASES)
def test_a_guards_report_is_an_occurrence(kind: str, text: str) -> None:
    report = read_log(io.StringIO(f"epoch 1\n{logged(text)}epoch 2\nloss 0.1\n"))
    (found,) = report.occurrences
    assert found.diagnosis.kind == kind
    assert found.where == "/home/me/train.py:31 in step"
    assert found.line == 2
    direct = diagnose(parse_message(text))  # type: ignore[arg-type]
    message, expected = found.diagnosis.message, direct.message
    assert (message.requested, message.free, message.cached, message.allocated) == (
        expected.requested,
        expected.free,
        expected.cached,
        expected.allocated,
    )


CONTAINER = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 15.77 GiB of which 514.00"
    " MiB is free. Process 4 has 15.26 GiB memory in use. Of the allocated memory 13.67 GiB is allocated by PyTorch, with 46.00 MiB"
    " allocated in private pools (e.g., CUDA Graphs), and 736.00 MiB is reserved by PyTorch but unallocated."
)


def test_a_report_of_apples_memory_is_read_back() -> None:
    text = (
        "MPS backend out of memory (MPS allocated: 17.93 GB, other allocations: 1.00 MB, max allowed: 18.13 GB)."
        " Tried to allocate 256.00 MB on private pool."
    )
    (found,) = read_log(io.StringIO(logged(text))).occurrences
    direct = diagnose(parse_message(text))  # type: ignore[arg-type]
    assert (found.diagnosis.kind, found.diagnosis.message.backend) == ("capacity", "MPS")
    assert found.diagnosis.arithmetic == direct.arithmetic
    assert found.diagnosis.advice == direct.advice


@pytest.mark.parametrize("recovered", [True, False])
def test_every_event_counts_with_and_without_a_recovery(recovered: bool) -> None:
    other = "/home/me/train.py:40 in test()"
    text = f"{logged(CONTAINER, recovered) * 3}trying again\n{logged(CONTAINER, recovered, other)}"
    report = read_log(io.StringIO(text))
    assert [(one.where, one.times) for one in report.occurrences] == [
        ("/home/me/train.py:31 in step", 3),
        ("/home/me/train.py:40 in test", 1),
    ]


@pytest.mark.parametrize("recovered", [True, False])
def test_what_lies_outside_and_in_private_pools_is_read_back(recovered: bool) -> None:
    direct = parse_message(CONTAINER)
    assert direct is not None
    (found,) = read_log(io.StringIO(logged(CONTAINER, recovered))).occurrences
    assert found.diagnosis.message.private == direct.private
    said = [line for line in diagnose(direct).arithmetic if "outside" in line or "private" in line]
    assert len(said) == 2
    assert [line for line in found.diagnosis.arithmetic if "outside" in line or "private" in line] == said


def test_the_error_that_a_guard_has_explained_is_not_counted_when_it_is_raised_again() -> None:
    traceback = 'Traceback (most recent call last):\n  File "/home/me/train.py", line 31, in step\n'
    report = read_log(io.StringIO(f"{logged(CONTAINER, False)}{traceback}{CONTAINER}\ngpulint: capacity\n"))
    (found,) = report.occurrences
    assert found.times == 1
    later = CONTAINER.replace("2.00 GiB", "3.00 GiB", 1)
    assert len(read_log(io.StringIO(f"{logged(CONTAINER, False)}{traceback}{later}\n")).occurrences) == 2


def test_errors_without_figures_count_too() -> None:
    host = "DefaultCPUAllocator: can't allocate memory: you tried to allocate 1125899906842624 bytes."
    (found,) = read_log(io.StringIO(logged(host, False) * 2)).occurrences
    assert (found.diagnosis.kind, found.times) == ("host", 2)


def test_reports_of_several_ranks_may_be_mixed() -> None:
    lines = [logged(text).splitlines() for _, text in CASES]
    mixed = [f"[rank{rank}]: {line}" for pair in zip(*lines, strict=False) for rank, line in enumerate(pair)]
    mixed += [f"[rank{rank}]: {line}" for rank in (0, 1) for line in lines[rank][min(map(len, lines)) :]]
    report = read_log([f"{line}\n" for line in mixed])
    assert [(o.rank, o.diagnosis.kind) for o in report.occurrences] == [
        ("0", "capacity"),
        ("1", "fragmentation"),
    ]


def test_what_only_sounds_like_a_report_is_none() -> None:
    assert (
        read_log(io.StringIO("out of memory in the cluster\nout of memory in a.py:3 in f()\n")).occurrences
        == []
    )
