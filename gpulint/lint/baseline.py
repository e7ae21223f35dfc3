"""Findings that a project has accepted for now: only new ones count.

A finding is recognised by its code, its file and the text of its lines, not by its row, so code may move within its
file. An entry that is gone from its file also stands for the same text in another one, so code may move between files.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from gpulint.atomic import write_atomic
from gpulint.config import ConfigError, shown_path
from gpulint.findings import Finding
from gpulint.source.files import FileError, read_bytes
from gpulint.source.sources import Sources

DEFAULT_FILE: Final = "gpulint-baseline.json"
_FORMAT: Final = 1
# What cannot be read or parsed is never accepted: nobody knows what is in it.
_NEVER: Final = "GPU000"

Entry = tuple[str, str, str]  # code, path relative to the baseline, text of the finding's lines


@dataclass(frozen=True, slots=True)
class Sorted:
    """Findings told apart by a baseline. `gone` counts the entries that nothing matches any more."""

    new: list[Finding]
    known: list[Finding]
    gone: int


def write(path: str, findings: Iterable[Finding], sources: Sources) -> int:
    """Write a baseline that accepts `findings`; how many there are. What is there already must be a baseline. Raises `ConfigError`."""
    if os.path.isfile(path) and os.path.getsize(path):
        _check_is_one(path)
    root = os.path.dirname(os.path.abspath(path))
    counts = Counter(_entry(finding, sources, root) for finding in findings if finding.code != _NEVER)
    listed = [
        {"code": code, "path": file, "text": text, "count": number}
        for (code, file, text), number in sorted(counts.items(), key=lambda item: (item[0][1], item[0]))
    ]
    text = json.dumps({"format": _FORMAT, "findings": listed}, indent=1, ensure_ascii=False) + "\n"
    try:
        write_atomic(path, text.encode("utf-8", "surrogatepass"))
    except OSError as error:
        raise ConfigError(f"--write-baseline: {path}: {error.strerror or error}") from None
    return sum(counts.values())


def compare(path: str, findings: Iterable[Finding], sources: Sources) -> Sorted:
    """Tell new findings from those the baseline at `path` accepts. Raises `ConfigError`."""
    root = os.path.dirname(os.path.abspath(path))
    accepted = _read(path)
    moved: list[Finding] = []
    known: list[Finding] = []
    for finding in findings:
        entry = _entry(finding, sources, root)
        if accepted[entry] > 0:
            accepted[entry] -= 1
            known.append(finding)
        else:
            moved.append(finding)
    elsewhere: Counter[tuple[str, str]] = Counter()
    for (code, _, text), number in accepted.items():
        elsewhere[code, text] += number
    new: list[Finding] = []
    for finding in moved:
        code, _, text = _entry(finding, sources, root)
        if elsewhere[code, text] > 0 and code != _NEVER:
            elsewhere[code, text] -= 1
            known.append(finding)
        else:
            new.append(finding)
    return Sorted(new, known, sum(elsewhere.values()))


def _entry(finding: Finding, sources: Sources, root: str) -> Entry:
    lines = sources.of(finding)[finding.line - 1 : finding.end_line]
    relative = os.path.relpath(finding.filename, root).replace(os.sep, "/")
    return finding.code, relative, "\n".join(line.strip() for line in lines)


def _read(path: str) -> Counter[Entry]:
    if not os.path.exists(path):
        raise ConfigError(f"baseline {shown_path(path)} does not exist; --write-baseline makes it")
    try:
        data = _loaded(path)
        if data["format"] != _FORMAT:
            raise ConfigError(
                f"baseline {shown_path(path)}: written by another version of gpulint; write it again"
            )
        known = Counter(
            {(item["code"], item["path"], item["text"]): int(item["count"]) for item in data["findings"]}
        )
        if min(known.values(), default=0) < 0:
            raise ValueError("a finding less than none")
        return known
    except FileError as error:
        raise ConfigError(f"baseline {shown_path(path)}: {error.message}") from None
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        raise ConfigError(
            f"baseline {shown_path(path)}: is no baseline; delete it and write it again with --write-baseline"
        ) from None


def _check_is_one(path: str) -> None:
    """That nothing else is written over: a slip, or the file of somebody else that a configuration names."""
    try:
        _loaded(path)["format"]
    except (FileError, ValueError, KeyError, TypeError, RecursionError):
        message = "is there already and is no baseline; delete it, or name another file"
        raise ConfigError(f"--write-baseline: {shown_path(path)} {message}") from None


def _loaded(path: str) -> Any:
    return json.loads(read_bytes(path).decode("utf-8", "surrogatepass"))
