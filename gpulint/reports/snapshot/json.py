"""Snapshots as JSON. Sizes are bytes; a line is a list of frames, the innermost first, and `kind` says what it is if it is not the
program's own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Any, TextIO

from gpulint.snapshot.lines import Line
from gpulint.snapshot.recording import Frame
from gpulint.snapshot.summary import Difference, Summary


def write(summaries: Sequence[Summary], differences: Sequence[Difference], out: TextIO) -> None:
    """One object: `snapshots`, and `growth` from each to the next."""
    data = {"snapshots": [_plain(one) for one in summaries], "growth": [_plain(one) for one in differences]}
    json.dump(data, out, indent=2)
    out.write("\n")


def _plain(value: Any) -> Any:
    if isinstance(value, Line):
        return {"kind": value.kind, "frames": [_plain(frame) for frame in value.frames]}
    if isinstance(value, Frame):
        return {"file": value.file, "line": value.line, "name": value.name}
    if is_dataclass(value):
        return {one.name: _plain(getattr(value, one.name)) for one in fields(value) if one.name != "alive"}
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return value
