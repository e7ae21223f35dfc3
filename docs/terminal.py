"""What a terminal shows: gpulint's coloured output as a picture (SVG), and its colours in the pages' code blocks."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

_ESCAPE: Final = re.compile(r"\x1b\[([\d;]*)m")
_LINK: Final = re.compile(r"\x1b\]8;[^\x1b\x07]*(?:\x1b\\|\x07)")

# Classes of docs/stylesheets/site.css by the terminal's codes; other codes are not used and not shown.
_CLASSES: Final[Mapping[str, str]] = {
    "1": "t-bold",
    "2": "t-dim",
    "31": "t-red",
    "32": "t-green",
    "33": "t-yellow",
    "34": "t-blue",
    "35": "t-magenta",
    "36": "t-cyan",
    **{f"9{digit}": f"t-{name}" for digit, name in enumerate(
        ("dim", "red", "green", "yellow", "blue", "magenta", "cyan", "bold"))},
}  # fmt: skip

_DARK: Final = TerminalTheme(
    (24, 28, 33),
    (222, 226, 230),
    [(24, 28, 33), (255, 123, 114), (126, 211, 133), (240, 196, 92), (121, 184, 255), (210, 168, 255), (118, 218, 218),
     (222, 226, 230)],
    [(139, 148, 158), (255, 123, 114), (126, 211, 133), (240, 196, 92), (121, 184, 255), (210, 168, 255),
     (118, 218, 218), (255, 255, 255)],
)  # fmt: skip
# rich's own template names fonts on another host.
_SVG: Final = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg" role="img">
<title>A terminal: gpulint train.py</title>
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: {char_height}px; line-height: {line_height}px; font-variant-east-asian: full-width; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/></clipPath>{lines}</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}<g class="{unique_id}-matrix">{matrix}</g>
</g>
</svg>
"""


def picture(program: str, columns: int) -> str:
    """What gpulint prints, run now, about a program that is called train.py, on a dark terminal of so many columns."""
    console = Console(record=True, width=columns, file=open(os.devnull, "w"), force_terminal=True)  # noqa: SIM115
    console.print(Text.from_ansi(f"\x1b[32m$\x1b[0m gpulint train.py\n{coloured(program, columns)}"), end="")
    return console.export_svg(title="gpulint", theme=_DARK, code_format=_SVG, unique_id=f"gpulint-{columns}")


def coloured(program: str, columns: int) -> str:
    """The report on a program as a terminal of so many columns shows it: with its colours, and wrapped by gpulint itself."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "train.py").write_text(program, encoding="utf-8")
        command = [sys.executable, "-m", "gpulint", "--no-cache", "--isolated", "train.py"]
        status, shown = _in_terminal(command, folder, columns)
    if status != 1:
        raise RuntimeError(f"{command} ended with {status}")
    return _LINK.sub("", shown.replace("\r\n", "\n"))  # a picture has no links


def _in_terminal(command: list[str], folder: str, columns: int) -> tuple[int, str]:
    """The exit status of a command, and what it writes to a terminal."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    unset = ("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "LINES")
    env = {name: value for name, value in os.environ.items() if name not in unset} | {
        "TERM": "xterm-256color"
    }
    with subprocess.Popen(command, cwd=folder, env=env, stdout=its, stderr=subprocess.DEVNULL) as process:
        os.close(its)
        shown = b""
        with contextlib.suppress(OSError), os.fdopen(ours, "rb", buffering=0) as read:  # EIO is the end
            while piece := read.read(65536):
                shown += piece
    return process.returncode, shown.decode("utf-8")


def as_html(html: str) -> str:
    """HTML in which text with a terminal's codes has become `<span class="t-…">`; codes end with their line."""
    return "\n".join(map(_line, html.split("\n"))) if "\x1b" in html else html


def _line(line: str) -> str:
    parts: list[str] = []
    done = 0
    opened = False
    for code in _ESCAPE.finditer(line):
        parts.append(line[done : code.start()])
        done = code.end()
        if opened:
            parts.append("</span>")
        classes = " ".join(_CLASSES[number] for number in code[1].split(";") if number in _CLASSES)
        opened = bool(classes)
        parts.append(f'<span class="{classes}">' if opened else "")
    return "".join([*parts, line[done:], "</span>" if opened else ""])
