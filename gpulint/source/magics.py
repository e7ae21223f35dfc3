"""IPython's syntax in cells: its lines give way to Python that stands for them, and come back unchanged.

`%magic`, `!command`, `?help` and `name = !command` are hidden line by line. In place of each stands Python of the same
meaning to an analysis, as far as it has one, with a numbered comment by which the line is found again.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Final

# Characters for private use: no program that is meant to be read has them.
HIDDEN: Final = "#\ue000"
_STAND_IN: Final = re.compile(r"([ \t]*)(.*)" + HIDDEN + r"([0-9]+)$")

# Cell magics whose cell is Python that runs in the notebook's own process.
_PYTHON: Final = frozenset(
    "capture debug gpu_memory heat ipytest memit memray_flamegraph mprun prun scalene time timeit wandb".split()
)
# Line magics whose argument is a statement of the notebook's.
_RUNS_ITS_LINE: Final = re.compile(r"%(?:time|timeit|prun|memit)\s+(?:-[a-z]+(?:\s*[0-9]+)?\s+)*")
# What IPython takes for a magic without its sign, where the line is no Python.
_WITHOUT_SIGN: Final = (
    "cat cd conda config cp env load_ext ls man matplotlib mkdir mv pip pip3 pwd reload_ext rm run uv".split()
)
_ARGUMENT: Final = r"[ \t]+(?:[^\s=.(\[,:+*/%&|^<>!]|\.\.?(?:/|[ \t]*(?:[\r\n]|\Z))|/[^\W\d])"
_LOADED: Final = re.compile(r"^[ \t]*%?(?:re)?load_ext[ \t]+(?:[\w.]*\.)?([^\W\d]\w*)", re.MULTILINE)
_ESCAPE: Final = re.compile(r"[ \t]*(?:[%!?]|[,;](?=[A-Za-z_])|/(?=[A-Za-z_]))")
# An assignment of anything, as no Python has it: strings aside, `=` stands before `!` or `%` nowhere.
_ASSIGNED: Final = re.compile(
    r"""[ \t]*(?:[^\W\d]|[(*\[])(?:[^=#\r\n"']|"[^"\r\n]*"|'[^'\r\n]*')*?(?<![=!<>+\-*/%&|^@:~])=[ \t]*(?=[!%])"""
)
_HELP: Final = re.compile(
    r"[ \t]*(?:[^\W\d][\w.]*[ \t]*=[ \t]*)?%{0,2}(?!\d)[\w*]+(?:\.[\w*]+|\[[^\]\r\n]*\])*\?{1,2}[ \t]*;?[ \t]*(?=[\r\n]|\Z)"
)
_CELL_MAGIC: Final = re.compile(r"%%(\w*)")
_LINE: Final = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
_PIECE: Final = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*(?:"""|\Z)|'
    r"'''(?:[^'\\]|\\.|'(?!''))*(?:'''|\Z)|"
    r'"(?:[^"\\\r\n]|\\\r\n|\\.)*"?|'
    r"'(?:[^'\\\r\n]|\\\r\n|\\.)*'?|"
    r"#[^\r\n]*|\\(?:\r\n|\r|\n)|(?P<open>[(\[{])|(?P<close>[)\]}])|(?P<end>\r\n|\r|\n)|"
    r"[^\"'#\\()\[\]{}\r\n]+|\\",
    re.DOTALL,
)


def cell_language(source: str) -> str:
    """The cell magic that makes a cell something else than Python of this notebook, such as ``bash``, or nothing."""
    for line in source.splitlines():
        found = _CELL_MAGIC.match(line.strip())
        if found is None and line.strip():
            return ""
        if found is not None and found[1] not in _PYTHON:
            return found[1] or "%%"
    return ""


def loaded_magics(source: str) -> frozenset[str]:
    """The magics that a cell loads: `%load_ext tensorboard` brings one of the extension's name."""
    return frozenset(_LOADED.findall(source))


@cache
def _automagic(loaded: frozenset[str]) -> re.Pattern[str]:
    return re.compile(rf"[ \t]*(?:{'|'.join(sorted({*_WITHOUT_SIGN, *loaded}))}){_ARGUMENT}")


@dataclass(slots=True)
class Hiding:
    """Hides IPython's lines and remembers them. `loaded` are the magics that the notebook's extensions bring."""

    loaded: frozenset[str] = frozenset()
    _lines: list[tuple[str, str]] = field(default_factory=list)  # what stands there, and what stood there

    def hide(self, source: str, automagic: bool = False) -> str:
        """A cell's `source` as Python with as many lines."""
        pieces: list[str] = []
        at = 0
        while at < len(source):
            end = _escape_end(source, at, _automagic(self.loaded) if automagic else None)
            if end:
                pieces += self._stand_ins(source[at:end])
            else:
                end = _logical_line_end(source, at)
                pieces.append(source[at:end])
            at = end
        return "".join(pieces)

    def restore(self, text: str) -> str | None:
        """The inverse of `hide`, also after changes around the hidden lines; None where one of them has changed."""
        pieces: list[str] = []
        for line in _LINE.findall(text):
            body = line.rstrip("\r\n")
            found = _STAND_IN.match(body)
            if found is None:
                if HIDDEN in body:
                    return None
                pieces.append(line)
                continue
            code, original = self._lines[int(found[3])]
            if found[2] != code:
                return None
            pieces.append(found[1] + original + line[len(body) :])
        return "".join(pieces)

    def numbers(self, text: str) -> list[int]:
        """Which hidden lines stand in a text, in order."""
        return [int(number) for number in re.findall(HIDDEN + r"([0-9]+)", text)]

    def _stand_ins(self, statement: str) -> Iterator[str]:
        lines = [line for line in _LINE.findall(statement) if line]
        for place, (line, code) in enumerate(zip(lines, _codes(lines), strict=True)):
            body = line.rstrip("\r\n")
            bare = body.lstrip(" \t") if place == 0 or body.strip() else body
            self._lines.append((code, bare))
            yield f"{body[: len(body) - len(bare)]}{code}{HIDDEN}{len(self._lines) - 1}{line[len(body) :]}"


def _codes(lines: list[str]) -> list[str]:
    """Python for each line of one escaped statement."""
    target = _ASSIGNED.match(lines[0])
    lead = target.group().lstrip(" \t") if target else ""
    value = "_magic_()" if target else "0"
    if len(lines) > 1:
        return [f"{lead}(", *[""] * (len(lines) - 2), f"{value})"]
    return [lead + value] if target else [_run_line(lines[0].strip()) or value]


def _run_line(line: str) -> str:
    """The statement that a line magic runs, at its own columns; nothing where it runs none."""
    found = _RUNS_ITS_LINE.match(line)
    if found is None:
        return ""
    code = "0;".ljust(found.end()) + line[found.end() :]
    try:
        ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    return code if "#" not in code else ""


def _escape_end(source: str, at: int, automagic: re.Pattern[str] | None) -> int:
    """Where an escaped statement that begins at `at` ends; 0 where none begins there."""
    helped = _HELP.match(source, at)
    if helped:
        line = _LINE.match(source, helped.end())
        return line.end() if line else helped.end()
    if not (
        _ESCAPE.match(source, at)
        or _ASSIGNED.match(source, at)
        or (automagic is not None and automagic.match(source, at))
    ):
        return 0
    while True:
        line = _LINE.match(source, at)
        if line is None or line.end() == at:
            return at
        at = line.end()
        if not line.group().rstrip("\r\n").endswith("\\"):
            return at


def _logical_line_end(source: str, at: int) -> int:
    depth = 0
    while at < len(source):
        piece = _PIECE.match(source, at)
        if piece is None:
            return len(source)
        at = piece.end()
        if piece["open"]:
            depth += 1
        elif piece["close"]:
            depth = max(depth - 1, 0)
        elif piece["end"] and not depth:
            return at
    return at
