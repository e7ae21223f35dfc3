"""What the processes of a `gpulint run` noted, as the verifier's result, and in words."""

from __future__ import annotations

import json
import platform
import signal as signals
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from gpulint.memory.oom import Diagnosis, diagnose
from gpulint.memory.oom.messages import parse_message
from gpulint.operator.launcher import Ended
from gpulint.operator.oom_log import read_log
from gpulint.runtime.record.peaks import StretchPeak
from gpulint.runtime.record.result import End, Environment, RankResult, RunResult, Sample
from gpulint.units import format_bytes


@dataclass(slots=True)
class ProcessNotes:
    """The notes of one process, as its agent wrote them."""

    about: dict[str, Any] = field(default_factory=dict)
    cuda: dict[str, Any] = field(default_factory=dict)
    samples: list[dict[str, Any]] = field(default_factory=list)
    ooms: list[dict[str, Any]] = field(default_factory=list)
    error: dict[str, Any] | None = None

    @property
    def rank(self) -> int:
        return int(self.about.get("rank") or 0)

    @property
    def who(self) -> str:
        """How a sentence about it begins."""
        return f"rank {self.rank}: " if self.about.get("rank") is not None else ""

    def most(self, figure: str) -> int:
        """The highest value of a figure in its samples."""
        return max((sample.get(figure) or 0 for sample in self.samples), default=0)

    @property
    def used_cuda(self) -> bool:
        return bool(self.cuda) or any("allocated" in sample for sample in self.samples)


def read_notes(folder: Path | None) -> list[ProcessNotes]:
    """The processes that had torch, by rank and start. Half-written last lines (a killed process) are left out."""
    if folder is None:
        return []
    found = [notes for path in sorted(folder.glob("*.jsonl")) if (notes := _read(path)).about]
    return sorted(found, key=lambda notes: (notes.rank, notes.about.get("began", 0.0)))


def _read(path: Path) -> ProcessNotes:
    notes = ProcessNotes()
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue
        kind = record.pop("kind", None)
        if kind == "process":
            notes = ProcessNotes(about=record)  # exec() replaced the program: only the last one counts
        elif kind in ("cuda", "error"):
            setattr(notes, kind, record)
        elif kind in ("sample", "oom"):
            getattr(notes, f"{kind}s").append(record)
    # A program that ends or fails is sampled by its own thread too, which may write first what was read last.
    notes.samples.sort(key=lambda sample: sample["seconds"])
    return notes


def main_processes(processes: Sequence[ProcessNotes]) -> list[ProcessNotes]:
    """The processes whose memory is of interest: those that used CUDA; without CUDA the first of each rank (the
    others are loader workers and launchers)."""
    on_card = [notes for notes in processes if notes.used_cuda]
    if on_card:
        return on_card
    ranked = [notes for notes in processes if notes.about.get("rank") is not None] or list(processes)
    first: dict[int, ProcessNotes] = {}
    for notes in ranked:
        first.setdefault(notes.rank, notes)
    return list(first.values())


# -- the verifier's form -----------------------------------------------------------------------------------------


def to_result(command: Sequence[str], ended: Ended, processes: Sequence[ProcessNotes]) -> RunResult:
    """The run in the schema of the verifier's results: time samples stand where it has steps."""
    end = _end(ended, None)
    ranks = tuple(_rank(notes, ended, number) for number, notes in enumerate(main_processes(processes)))
    return RunResult(command=tuple(command), end=end, seconds=ended.seconds, ranks=ranks)


def _rank(notes: ProcessNotes, ended: Ended, number: int) -> RankResult:
    about = notes.about
    world = about.get("world")
    samples = tuple(_samples(notes))
    tops = [sample.peak for sample in samples if sample.peak is not None]
    reserved = max((sample.reserved for sample in samples if sample.reserved is not None), default=None)
    return RankResult(
        rank=notes.rank if about.get("rank") is not None else number,
        world_size=int(world) if world else 1,
        environment=Environment(
            python=about.get("python", ""),
            executable=about.get("executable", ""),
            platform=platform.platform(),
            date=datetime.fromtimestamp(about.get("began", ended.began), timezone.utc).isoformat(
                timespec="seconds"
            ),
            torch=about.get("torch"),
            device="cuda" if notes.used_cuda else "cpu",
            device_name=notes.cuda.get("name"),
            cuda=notes.cuda.get("version"),
            probe="cuda-allocator" if notes.used_cuda else "none",
            allocator=_settings(notes),
        ),
        end=_end(ended, notes.error),
        boundary="none",
        samples=samples,
        peaks=(StretchPeak("steps", max(tops), reserved),) if tops else (),
        notes=tuple(_remarks(notes, ended)),
    )


def _settings(notes: ProcessNotes) -> str | None:
    settings = notes.cuda.get("settings")
    if not settings:
        return None
    return ",".join(f"{key}:{value}" for key, value in sorted(settings.items()))


def _samples(notes: ProcessNotes) -> Iterable[Sample]:
    before, peak = 0.0, 0
    for number, sample in enumerate(notes.samples, 1):
        allocated = sample.get("allocated")
        highest = sample.get("peak")
        # The program may reset the counter; ours only says what rose since the last look.
        rose = highest if highest is not None and highest > peak else allocated
        peak = highest or 0
        told = {"step": number, "kind": "explicit", "sampled": True, "duration": sample["seconds"] - before}
        yield Sample.from_json({**sample, **told, "peak": rose})
        before = sample["seconds"]


def _remarks(notes: ProcessNotes, ended: Ended) -> Iterable[str]:
    if ended.allocator is not None:
        yield f"started with {'='.join(ended.allocator)}"
    for oom in notes.ooms:
        size = format_bytes(oom["size"])
        yield f"out of memory after {oom['seconds']:.1f} s on GPU {oom['device']}: {size} requested"
    if (found := _diagnosis(notes)) is not None:
        yield from found.lines()


def _end(ended: Ended, error: dict[str, Any] | None) -> End:
    if error is not None:
        message = f"{error['type']}: {error['message']}".splitlines()[0]
        return End("raised", message, traceback=error["traceback"], code=ended.code, signal=ended.signal)
    if ended.signal is not None:
        return End("killed", f"killed by {_signal_name(ended.signal)}", signal=ended.signal)
    if ended.code:
        return End("exit", f"exit status {ended.code}", code=ended.code)
    return End("finished", "ended by itself", code=0)


def _signal_name(number: int) -> str:
    known = {one.value: one.name for one in signals.Signals}
    return known.get(number, f"signal {number}")


# -- in words ----------------------------------------------------------------------------------------------------


def _diagnosis(notes: ProcessNotes) -> Diagnosis | None:
    message = parse_message(notes.error["message"]) if notes.error is not None else None
    return None if message is None else diagnose(message, notes.most("retries") or None)


def summary(ended: Ended, processes: Sequence[ProcessNotes], report: Path | None) -> list[str]:
    """What to say on standard error when the program has ended: the diagnosis of an out-of-memory error, the
    peaks, and where the report lies."""
    lines: list[str] = []
    told: set[str] = set()
    for notes in processes:
        found = _diagnosis(notes)
        if found is None or notes.error is None or str(found) in told:
            continue
        told.add(str(found))
        places = read_log(notes.error["traceback"].splitlines()).occurrences
        where = places[0].where if places else None
        lines.append(f"{notes.who}out of memory{f' at {where}' if where else ''}")
        lines += found.lines()
    lines += [line for notes in main_processes(processes) if (line := _peaks(notes))]
    if ended.trouble:
        lines.append(f"no timeline could be recorded: {ended.trouble}")
    elif not processes:
        lines.append("no process of the program imported torch, so there is no timeline")
    if report is not None:
        lines.append(f"report: {report}")
    return lines


def _peaks(notes: ProcessNotes) -> str:
    seconds = notes.samples[-1]["seconds"] if notes.samples else 0.0
    text = f"{notes.who}{seconds:.1f} s, "
    if not notes.used_cuda:
        return f"{text}no CUDA in use; host memory up to {format_bytes(notes.most('rss'))}"
    peak, reserved = format_bytes(notes.most("peak")), format_bytes(notes.most("reserved"))
    text += (
        f"peak allocated {peak}, reserved {reserved}, {notes.most('retries')} retries, {len(notes.ooms)} OOMs"
    )
    settings = notes.cuda.get("settings") or {}
    if settings.get("expandable_segments") is not None:
        text += f"; expandable_segments read back as {settings['expandable_segments']}"
    return text
