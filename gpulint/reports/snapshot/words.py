"""What is said of a snapshot, in words."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Final

from gpulint.reports import plural
from gpulint.snapshot.lines import Line
from gpulint.snapshot.recording import Frame
from gpulint.snapshot.summary import DeviceSummary, Summary
from gpulint.snapshot.usage import Usage
from gpulint.snapshot.whatif import Outcome, WhatIf
from gpulint.units import format_bytes

UNKNOWN: Final = "no Python stack (a backward's own thread, or recorded without stacks)"
OLDER: Final = "older than the trace"
STRANGERS: Final = "no line of the program has anything alive in both: are these snapshots of one program?"


class Paths:
    """File names without the folder that all of the program's files have in common."""

    def __init__(self, lines: Iterable[Line]) -> None:
        files = {frame.file for line in lines if line.kind in ("", "backward") for frame in line.frames}
        folders = {os.path.dirname(file) for file in files if os.path.isabs(file)}
        try:
            self.folder = os.path.commonpath(folders) if folders else ""
        except ValueError:  # of two drives
            self.folder = ""
        if self.folder == os.sep:
            self.folder = ""

    def frame(self, frame: Frame) -> str:
        file = frame.file
        if self.folder and file.startswith(self.folder + os.sep):
            file = file[len(self.folder) + 1 :]
        elif "-packages" + os.sep in file:
            file = file.rpartition("-packages" + os.sep)[2]
        return f"{file}:{frame.line} {frame.name}"

    def line(self, line: Line) -> list[str]:
        """The frames, the innermost first; what stands in place of one."""
        if line.kind == "older":
            return [OLDER]
        if line.kind == "unknown":
            return [UNKNOWN]
        if line.kind == "node":
            return [f"{line.frames[0].name}, a backward without Python in its stack"]
        frames = [self.frame(frame) for frame in line.frames]
        if line.kind == "backward":
            frames[0] = f"backward of {frames[0]}"
        elif line.kind == "library":
            frames[0] = f"{frames[0]} (no line of the program's own in its stack)"
        return frames


def paths_of(summaries: Iterable[Summary]) -> Paths:
    return Paths(line for summary in summaries for alive in _lines(summary) for line in alive)


def _lines(summary: Summary) -> Iterable[Iterable[Line]]:
    for device in summary.devices:
        yield (share.line for share in device.usage.at_peak)
        yield (share.line for share in device.usage.at_end)
        yield (oom.line for oom in device.usage.ooms)


def has_trace(usage: Usage) -> bool:
    """Whether there is more than the state at the end: with enabled="state" torch keeps the last event."""
    return usage.events > 1


def covered(usage: Usage) -> str:
    """What the trace covers."""
    if not has_trace(usage):
        return (
            'no trace: only what was there when the snapshot was taken (record with enabled="all" for more)'
        )
    began = (
        ""
        if not usage.start_allocated
        else f", which begins with {format_bytes(usage.start_allocated)} allocated"
    )
    return f"{usage.events:,} events over {usage.seconds:.1f} s{began}"


def doubts(usage: Usage) -> list[str]:
    """What is not known, or not certain, in what is said of a device."""
    said = []
    if usage.older and has_trace(usage):
        said.append(
            f"{format_bytes(usage.older)} of the peak are older than the trace; only those still there at its end have a stack, and"
            " a peak before it is not seen"
        )
    if usage.unsplit:
        said.append(
            f"the blocks that are left are {format_bytes(usage.unsplit)} larger than what they were asked for, rounded: torch's"
            " memory_allocated counts that too, and over the trace it is not known"
        )
    if usage.astray:
        said.append(
            f"trace and segments do not agree about {format_bytes(usage.astray)}: the recording ended before the snapshot was taken"
        )
    return said


def fragmentation(device: DeviceSummary) -> list[str]:
    """Where the bytes are that are reserved and not allocated."""
    found = device.fragmentation
    free = found.reserved - found.allocated
    if not free:
        return ["all that is reserved is allocated"]
    said = [
        f"{format_bytes(free)} are reserved and not allocated, the largest free block {format_bytes(found.largest_free)}"
    ]
    if found.whole:
        said.append(
            f"{format_bytes(found.whole)} in segments without any block: empty_cache() gives these back"
        )
    if found.split:
        said.append(f"{format_bytes(found.split)} in pieces between blocks that live")
    if found.pending:
        said.append(f"{format_bytes(found.pending)} are freed and wait for another stream (record_stream)")
    return said


def recommendation(tried: WhatIf) -> str:
    """What the outcomes speak for, and how far."""
    best = tried.outcomes[0]
    under = next((one for one in tried.outcomes if one.setting == tried.recorded), tried.as_recorded)
    if not best.fits:
        return "none of these settings has room for all that the trace asks for"
    saved = under.peak_reserved - best.peak_reserved
    if best.setting == tried.recorded or (under.fits and saved == 0):
        return "the recorded settings reserve as little as any of these"
    name = f"`{best.setting}`" if best.setting else "the default"
    if not under.fits:
        return f"{name} fits, and the recorded settings do not"
    doubt = unsure(best, tried) + unsure(under, tried)
    if saved <= max(doubt, 0.01 * tried.recorded_reserved):
        return f"{name} would reserve {format_bytes(saved)} less, which is within what the model may be wrong by: no choice can be based on it"
    return f"{name} would reserve {format_bytes(saved)} less ({saved / max(1, under.peak_reserved):.0%})"


def error(tried: WhatIf) -> str:
    """How far the model is from the GPU on this trace."""
    return (
        f"under the recorded settings ({tried.recorded or 'the default'}) the model reserves {format_bytes(tried.as_recorded.peak_reserved)} at most,"
        f" the GPU did {format_bytes(tried.recorded_reserved)}: its error on this trace is {tried.error:+.1%}"
    )


def room(tried: WhatIf) -> str:
    """What there is to fit into."""
    if tried.capacity is None:
        return ""
    most = ", the most room that the trace leaves open" if tried.inferred else ""
    return f"what has to fit into {format_bytes(tried.capacity)}{most}"


def unsure(one: Outcome, tried: WhatIf) -> int:
    """What the model may be wrong by: its error on this trace, or what the driver's choice of addresses changes if that is more."""
    return max(round(abs(tried.error) * one.peak_reserved), one.unsure)


def outcome(one: Outcome, tried: WhatIf) -> tuple[str, str, str, str]:
    """Setting, whether it fits, reserved at most with the model's error, and against what was recorded."""
    name = (one.setting or "default") + (" (recorded)" if one.setting == tried.recorded else "")
    if not one.fits:
        return name, "out of memory", f"no room for {format_bytes(one.failed or 0)}", ""
    against = (one.peak_reserved - tried.recorded_reserved) / max(1, tried.recorded_reserved)
    wide = f" ± {unsure(one, tried) / max(1, one.peak_reserved):.1%}"
    fits = "fits" if tried.capacity is not None else ""
    retried = f", {plural(one.retries, 'retry')}".replace("retrys", "retries") if one.retries else ""
    return name, fits + retried, format_bytes(one.peak_reserved) + wide, f"{against:+.1%}"
