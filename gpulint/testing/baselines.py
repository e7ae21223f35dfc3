"""Peaks that a project has committed: one JSON file for all its programs or tests, cards and versions of torch.

A peak is known by its `Key`. On another card, or under another minor version of torch, the same program has another peak, so
what was measured there is not compared: it gets an entry of its own. The file is read by people and changes in small
differences: entries are sorted, paths are relative to it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from gpulint.atomic import one_at_a_time, target_of, write_atomic
from gpulint.runtime.record.peaks import Check, LineAtPeak, Peak, Status
from gpulint.runtime.record.records import Record

SCHEMA: Final = 1
TOLERANCE: Final = 1.0  # percent
MOST_LINES: Final = 20  # of one peak that are written down
CPU: Final = "cpu"  # the card of figures that were measured without one; they are the same on every processor


class BadBaseline(ValueError):
    """The file cannot be read or written, or is no baseline: the message is one sentence that says so."""


@dataclass(frozen=True, slots=True, order=True)
class Key(Record):
    """Whose peak it is. `subject` is free: a program with its arguments, or a test's id. `card` is the card's name, or `CPU`;
    `torch` the minor version, such as 2.11."""

    subject: str
    card: str
    torch: str
    world_size: int = 1
    rank: int = 0

    @property
    def where(self) -> str:
        """The card, torch and the number of ranks, as they are said."""
        ranks = f" on {self.world_size} ranks" if self.world_size > 1 else ""
        return f"{'the CPU' if self.card == CPU else self.card} with torch {self.torch}{ranks}"


Peaks = Mapping[Key, Peak]  # the content of a file


def elsewhere(peaks: Peaks, key: Key) -> list[str]:
    """Three other cards, versions of torch or numbers of ranks with entries of the same subject: why `key` is missing."""
    others = sorted(one for one in peaks if one.subject == key.subject and one != key)
    return list(dict.fromkeys(one.where for one in others))[:3]


def read(path: str, missing_is_empty: bool = False) -> Peaks:
    """The peaks in a file. Raises BadBaseline; with `missing_is_empty` not where there is no such file."""
    try:
        with open(path, encoding="utf-8-sig") as source:  # some editors on Windows begin a file with a mark
            data = json.load(source)
    except FileNotFoundError:
        if missing_is_empty:
            return {}
        raise BadBaseline(f"there is no baseline {path}; write it first") from None
    except OSError as error:
        raise BadBaseline(f"the baseline {path} cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise BadBaseline(f"the baseline {path} is not JSON: {error}") from error
    if not isinstance(data, dict) or "peaks" not in data:
        raise BadBaseline(f"{path} is not a baseline of peaks: it has no entry `peaks`")
    if data.get("schema") != SCHEMA:
        raise BadBaseline(
            f"the baseline {path} has schema {data.get('schema')!r}, and this gpulint reads {SCHEMA}: write it anew"
        )
    if not isinstance(data["peaks"], list):
        raise BadBaseline(f"{path} is not a baseline of peaks: `peaks` is no list")
    peaks: dict[Key, Peak] = {}
    for item in data["peaks"]:
        try:
            key, peak = Key.from_json(item), Peak.from_json(item)
        except (TypeError, ValueError, KeyError) as error:
            raise BadBaseline(f"the baseline {path} has an entry that cannot be read: {error}") from error
        if peak.allocated < 0:
            raise BadBaseline(f"the baseline {path} has a peak of `{key.subject}` below 0")
        if key in peaks:
            raise BadBaseline(
                f"the baseline {path} has two entries of `{key.subject}` for {key.where}, as a merge leaves them: keep one"
            )
        peaks[key] = peak
    return peaks


def check_writable(path: str) -> None:
    """Whether `write` may be able to write there, asked before a long run. Raises BadBaseline."""
    try:
        folder = os.path.dirname(target_of(path))
    except OSError as error:
        raise BadBaseline(f"the baseline {path} could not be written: {error.strerror or error}") from error
    if not os.path.isdir(folder):
        raise BadBaseline(f"the folder {folder} of the baseline does not exist")
    for one in (folder, path):
        if os.path.exists(one) and not os.access(one, os.W_OK):
            raise BadBaseline(f"{one} cannot be written to, and the baseline would be")


def add(path: str, peaks: Peaks) -> Peaks:
    """Write these entries into the file, which may be new; what it has then. It is read as late as this: others may have written
    it since, and who writes now waits. Raises BadBaseline."""
    with one_at_a_time(path):
        found = {**read(path, missing_is_empty=True), **peaks}
        write(path, found)
    return found


def write(path: str, peaks: Peaks) -> None:
    """Make this the file's content, wholly or not at all: sorted, so that it is the same whoever writes it, and with a source line
    in one row. Raises BadBaseline."""
    entries = [{**key.to_json(), **_plain(peak)} for key, peak in sorted(peaks.items())]
    text = _indented({"schema": SCHEMA, "unit": "bytes", "peaks": entries}, 0) + "\n"
    try:
        write_atomic(path, text.encode("utf-8", "surrogatepass"))
    except OSError as error:
        raise BadBaseline(f"the baseline {path} could not be written: {error.strerror or error}") from error


def compare(now: Peak, before: Peak, tolerance: float = TOLERANCE) -> list[Check]:
    """The peak, then the others that both have, each against what was written down. `tolerance` is in percent of that."""
    shared = [name for name in now.others if name in before.others]
    return [
        compared(now.allocated, before.allocated, tolerance),
        *(compared(now.others[name], before.others[name], tolerance, name) for name in shared),
    ]


def compared(now: int, before: int, tolerance: float, stretch: str = "") -> Check:
    """One peak against what was written down; `tolerance` is in percent of that."""
    most = allowed(before, tolerance)
    status: Status = "exceeded" if now > most else "fell" if now < 2 * before - most else "within"
    return Check("baseline", status, 0, stretch, now, most, before, "")


def allowed(before: int, tolerance: float) -> int:
    """The most bytes that are no growth; `tolerance` is in percent."""
    return before + int(before * tolerance / 100)


def grown(now: Sequence[LineAtPeak], before: Sequence[LineAtPeak]) -> list[LineAtPeak]:
    """The lines that have more bytes than were written down, most growth first, with what they had `before`.

    A line is the same where its file, function and text are, and of several that are alike the first is the first; one whose text
    was edited, where its number still is. One that is not listed may have had as many bytes as the last of a full list.
    """
    left: dict[tuple[str, str, str], list[LineAtPeak]] = {}
    for line in sorted(before, key=lambda one: one.line):
        left.setdefault((line.file, line.function, line.code), []).append(line)
    partners: dict[int, LineAtPeak] = {}
    for index, line in sorted(enumerate(now), key=lambda one: one[1].line):
        alike = left.get((line.file, line.function, line.code))
        if alike:
            partners[index] = alike.pop(0)
    numbered = {(line.file, line.function, line.line): line for alike in left.values() for line in alike}
    unlisted = min((line.bytes for line in before), default=0) if len(before) >= MOST_LINES else 0
    found = []
    for index, line in enumerate(now):
        partner = partners.get(index) or numbered.pop((line.file, line.function, line.line), None)
        had = None if partner is None else partner.bytes
        found.append((line.bytes - (unlisted if had is None else had), had, line))
    found.sort(key=lambda one: -one[0])
    return [replace(line, before=had, grew=by) for by, had, line in found if by > 0]


def relative_to(path: str, file: str) -> str:
    """A source file as it is written into the baseline at `path`: relative to its folder, with slashes."""
    if not file or not os.path.isabs(file):
        return file
    try:
        shown = os.path.relpath(os.path.realpath(file), os.path.dirname(os.path.realpath(path)))
    except ValueError:  # on another drive
        shown = file
    return shown.replace(os.sep, "/")


def torch_minor(version: str) -> str:
    """`2.11` of `2.11.0+cu130`: the part of torch's version that an entry is for."""
    return ".".join(version.partition("+")[0].split(".")[:2])


# -- the file ------------------------------------------------------------------------------------------------


def _plain(peak: Peak) -> dict[str, Any]:
    """An entry's figures, without what it has none of."""
    data = {
        "allocated": peak.allocated,
        "reserved": peak.reserved,
        "drift": round(float(peak.drift), 1),
        "others": dict(sorted(peak.others.items())),
        "lines": _listed(peak.lines),
        "other_lines": {name: _listed(lines) for name, lines in sorted(peak.other_lines.items())},
    }
    return {name: value for name, value in data.items() if value not in ({}, [], None)}


def _listed(lines: Sequence[LineAtPeak]) -> list[dict[str, Any]]:
    names = ("file", "line", "function", "code", "bytes")
    return [{name: getattr(line, name) for name in names} for line in lines[:MOST_LINES]]


def _indented(value: Any, depth: int) -> str:
    """JSON in which what holds no other collection takes one row, unless it is at the top."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    if not any(isinstance(one, (dict, list)) for one in inner):
        return json.dumps(value, ensure_ascii=False)
    margin, end = "\n" + " " * (depth + 1), "\n" + " " * depth
    if isinstance(value, list):
        return f"[{margin}" + f",{margin}".join(_indented(one, depth + 1) for one in value) + f"{end}]"
    rows = [f"{json.dumps(name)}: {_indented(one, depth + 1)}" for name, one in value.items()]
    return f"{{{margin}" + f",{margin}".join(rows) + f"{end}}}"
