"""`gpulint oom` on logs in which `oom_guard` has explained the error already."""

from __future__ import annotations

import io
import logging

import pytest

from gpulint.memory.cleaning import Cleared
from gpulint.memory.figures import MemoryStats
from gpulint.memory.guard import OomEvent
from gpulint.memory.oom.diagnosis import diagnose
from gpulint.memory.oom.messages import parse_message
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


def logged(text: str) -> str:
    """What the guard writes of an error with this message."""
    message = parse_message(text)
    assert message is not None
    before = MemoryStats(0, allocated=message.allocated or 0, reserved=message.reserved or 0)
    event = OomEvent(
        diagnose(message), "/home/me/train.py:31 in step()", before, Cleared(3, allocated=1 << 20)
    )
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
