"""Out-of-memory messages in logs of any size: which rank, which line of the user's code, capacity or fragmentation.

The log is read once, line by line, and only a few lines are kept; lines of several ranks may be mixed.
"""

from __future__ import annotations

import codecs
import errno
import io
import itertools
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import IO, Any, Final

from gpulint.memory.oom import BEGIN, END, Diagnosis, diagnose, is_again, parse_report, raised_at
from gpulint.memory.oom.messages import START, OomMessage, parse_message
from gpulint.runtime.record.records import Record
from gpulint.units import format_bytes

LONGEST_LINE: Final = 1 << 16
FOLLOWING: Final = 8  # lines over which a message may be broken
REPORTED: Final = 30  # lines that a report of `oom_guard` may take
_MOST_FRAMES: Final = 100  # of a traceback, the innermost

_ANSI = re.compile(r"\x1b\[[0-9;?]{0,64}[ -/]{0,8}[@-~]|\x1b\][^\x07\x1b]{0,512}\x07|\r")
# torchrun "[rank3]:" and "[default3]:", srun -l "3: ", Ray "(Trainer pid=12, ip=..., rank=3)"; with a time before.
_RANK = re.compile(
    r"^(?:\d{4}-\d\d-\d\d[T ][\d:.,+Z-]+ *)?(?:\[(?:rank|default)(?P<a>\d{1,15})\]: ?|(?P<b>\d{1,5}): |"
    r"\((?P<actor>\w+ pid=(?P<pid>\d+)[^)]*)\) ?)"
)
# As Python prints a frame, IPython (its cells have no file, and before 8 calls no line), and rich in a box.
_FRAMES: Final = tuple(
    re.compile(pattern)
    for pattern in (
        r'File "(?P<file>[^"]+)", line (?P<line>\d{1,9})(?:, in (?P<function>[^\s\\]+))?',
        r"(?:\bFile |[│|] )(?P<file>[^\s\"│]+\.py):(?P<line>\d{1,9}),? in (?P<function>[\w.<>]+)",
        r"(?:^|\s)(?P<file>[^\s\"│]+\.py) in (?P<function>\w+)\(",
        r"(?P<file>Cell In ?\[\d+\]), line (?P<line>\d{1,9})(?P<function>\Z)?",
    )
)
_FOREIGN = re.compile(r"site-packages|dist-packages|/lib/python3|\\lib\\python|<frozen |importlib|/torch/")
_RETRIES = re.compile(
    r"cudaMalloc retries: *(?P<a>\d{1,15})|num_alloc_retries['\"]?: *(?P<b>\d{1,15})|retries (?P<c>\d{1,15}), OOMs \d+"
)
_COMPLETE = re.compile(
    r"reserved in total by PyTorch|reserved by PyTorch but unallocated|you tried to allocate \d+ bytes"
)
# What a line must have to be looked at, as plain words, which are found ten times as fast as patterns. Escape
# sequences may stand inside the words.
_TELLING: Final = (
    "emory", "EMORY", "ALLOC", "Alloc", "alloc", 'File "', ".py", "Cell In", "Traceback", "retries", "137",
    "ill", "ILL", "exitcode", "\x1b", '\\"',
)  # fmt: skip
# Out-of-memory messages of others, which are named and not explained.
_UNREAD: Final = {"JAX (XLA)": re.compile(r"RESOURCE_EXHAUSTED: Out of memory")}
_KILLED = re.compile(
    r"exitcode *: *-9\b|Signal 9 \(SIGKILL\)|killed by signal: Killed|Out of memory: Killed process|oom-kill"
    r"|Bus error.*shared memory|returned non-zero exit status 137|Exit code 137|OOMKilled"
)


@dataclass(slots=True)
class Occurrence(Record):
    """One out-of-memory error of one rank. `line` is where in the log it stands first, `times` how often its very
    message is repeated, `where` the innermost line of the user's code from the traceback before it, `frames` all of them,
    outermost first."""

    diagnosis: Diagnosis
    line: int
    rank: str | None = None
    where: str | None = None
    times: int = 1
    frames: tuple[tuple[str, int], ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "line": self.line,
            "rank": self.rank,
            "where": self.where,
            "times": self.times,
            "frames": [{"file": file, "line": line} for file, line in self.frames],
            **self.diagnosis.to_json(),
        }


# A rank, what its message says, and the place that a guard's report names.
_Key = tuple[str | None, OomMessage, str | None]


@dataclass(slots=True)
class LogReport(Record):
    """What a log says. `killed` are line numbers of signs that the host's OOM killer ended a process, `unread` those of
    messages that are none of torch's on CUDA, by whose they are."""

    lines: int = 0
    retries: int | None = None
    killed: list[int] = field(default_factory=list)
    unread: dict[str, list[int]] = field(default_factory=dict)
    occurrences: list[Occurrence] = field(default_factory=list)

    @property
    def ranks(self) -> list[str]:
        return list(dict.fromkeys(each.rank for each in self.occurrences if each.rank is not None))


@dataclass(slots=True)
class _Stream:
    """The state of one rank's part of the log."""

    where: str | None = None
    frames: list[tuple[str, int]] = field(default_factory=list)
    passed: list[tuple[str, str]] = field(default_factory=list)  # files and functions, libraries' too
    explained: Occurrence | None = None  # by a guard, last
    pending: list[str] = field(default_factory=list)
    began: int = 0
    following: int = 0


def read_log(file: IO[str] | Iterable[str]) -> LogReport:
    """Read a log from an open text file or any lines. Raises nothing for what stands in it."""
    report = LogReport()
    streams: dict[str | None, _Stream] = {}
    found: dict[_Key, Occurrence] = {}
    unfinished = 0
    for number, raw in enumerate(_lines(file), 1):
        report.lines = number
        if not unfinished and not any(word in raw for word in _TELLING):
            continue
        rank, line = _split(raw)
        stream = streams.setdefault(rank, _Stream())
        _note(report, line, number)
        if START.search(line) is not None and not _goes_on(stream, line):
            _finish(report, found, stream, rank)
            stream.pending, stream.began, stream.following = [line], number, 0
        elif stream.pending:
            stream.pending.append(line)
            stream.following += 1
        if stream.pending and _is_over(stream):
            _finish(report, found, stream, rank)
        _note_frame(stream, line)
        if unfinished or stream.pending:
            unfinished = sum(bool(each.pending) for each in streams.values())
    for rank, stream in streams.items():
        _finish(report, found, stream, rank)
    report.occurrences.sort(key=lambda each: each.line)
    return report


def open_log(path: str) -> IO[str]:
    """A log as text, "-" for standard input. What is no text is replaced; Windows shells write UTF-16, with a mark.
    Raises OSError."""
    if path == "-" and sys.stdin is None:
        raise OSError(errno.EBADF, "standard input is closed")
    raw = sys.stdin.buffer if path == "-" else open(path, "rb")  # noqa: SIM115
    assert isinstance(raw, io.BufferedReader)
    start = raw.peek(512)[:512]
    marked = start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    wide = marked and start.count(0) > len(start) // 3
    return io.TextIOWrapper(raw, encoding="utf-16" if wide else "utf-8-sig", errors="replace")


def _lines(file: IO[str] | Iterable[str]) -> Iterator[str]:
    """Lines; one without an end, however long, comes in pieces."""
    readline = getattr(file, "readline", None)
    if readline is None:
        yield from file
        return
    while line := readline(LONGEST_LINE):
        yield line


def _split(raw: str) -> tuple[str | None, str]:
    line = _ANSI.sub("", raw).rstrip("\n")
    if "\\n" in line:  # a string of a JSON log
        line = line.replace("\\n", "\n").replace('\\"', '"')
    match = _RANK.match(line)
    if match is None:
        return None, line
    rank = match["a"] or match["b"] or f"pid {match['pid']}"
    return rank, line[match.end() :]


def _goes_on(stream: _Stream, line: str) -> bool:
    """Whether a line with a message's words belongs to the message that is being read."""
    return bool(stream.pending) and parse_message(line) is None and BEGIN.search(line) is None


def _is_over(stream: _Stream) -> bool:
    """Whether the message that is being read has all its lines."""
    if BEGIN.search(stream.pending[0]) is not None:
        ended = is_again(stream.pending[0]) or END.search(stream.pending[-1]) is not None
        return ended or stream.following >= REPORTED
    text = " ".join(" ".join(stream.pending).split())
    return _COMPLETE.search(text) is not None or stream.following >= FOLLOWING


def _note(report: LogReport, line: str, number: int) -> None:
    match = _RETRIES.search(line)
    if match is not None:
        count = int(next(group for group in match.groups() if group is not None))
        report.retries = max(report.retries or 0, count)
    if _KILLED.search(line) is not None:
        report.killed.append(number)
    for name, pattern in _UNREAD.items():
        if pattern.search(line) is not None:
            report.unread.setdefault(name, []).append(number)


def _note_frame(stream: _Stream, line: str) -> None:
    if "Traceback (most recent call last)" in line:
        stream.where = None
        stream.frames, stream.passed = [], []
    for match in itertools.chain.from_iterable(pattern.finditer(line) for pattern in _FRAMES):
        known = match.groupdict()
        file, number, function = known["file"], known.get("line"), known["function"]
        stream.passed = [*stream.passed[1 - _MOST_FRAMES :], (file, function or "")]
        if number is not None and _FOREIGN.search(file) is None:
            stream.frames = [*stream.frames[1 - _MOST_FRAMES :], (file, int(number))]
            stream.where = f"{file}:{number}" + (f" in {function}" if function else "")


def _finish(report: LogReport, found: dict[_Key, Occurrence], stream: _Stream, rank: str | None) -> None:
    if not stream.pending:
        return
    text, began = "\n".join(stream.pending), stream.began
    stream.pending = []
    _note_frame(stream, text)
    if is_again(text) and stream.explained is not None:
        stream.explained.times += 1
        return
    told = parse_report(text)
    message = told or parse_message(text)
    if message is None:
        return
    if told is None and stream.explained is not None and _is_same(stream.explained, message):
        return  # the error that a guard has explained, raised again
    diagnosis = diagnose(message, report.retries, stream.passed)
    key, where = (rank, message, raised_at(text)), raised_at(text) or stream.where
    known = found.get(key)
    if known is None:
        known = found[key] = Occurrence(diagnosis, began, rank, where, 0)
        report.occurrences.append(known)
    elif known.where is None:  # a log may have the message first, and then the traceback
        known.where, known.diagnosis = where, diagnosis
    known.times += 1
    known.frames = known.frames or tuple(dict.fromkeys(stream.frames))
    stream.explained = known if told is not None else None


def _is_same(explained: Occurrence, message: OomMessage) -> bool:
    before = explained.diagnosis.message
    return (before.requested, before.free, before.cached) == (message.requested, message.free, message.cached)


def growth(report: LogReport) -> list[str]:
    """More allocated from one error to the next on a rank: recovered, and leaking."""
    lines = []
    for rank in dict.fromkeys(each.rank for each in report.occurrences):
        figures = [
            each.diagnosis.message.allocated
            for each in report.occurrences
            if each.rank == rank and each.diagnosis.message.allocated is not None
        ]
        rising = len(figures) >= 3 and all(a < b for a, b in itertools.pairwise(figures))
        if rising and figures[-1] > 1.1 * figures[0]:
            who = f"rank {rank}: " if rank is not None else ""
            lines.append(
                f"{who}allocated memory grew from one error to the next ({format_bytes(figures[0])} to"
                f" {format_bytes(figures[-1])}): something is held across steps; `gpulint verify` names it"
            )
    return lines
