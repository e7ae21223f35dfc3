"""Lines of styled text, painted plain or, through rich, in colour; and how wide text is on a terminal.

A format builds its lines once; the plain way imports nothing.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterable
from typing import Final, TextIO

Span = tuple[str, str]  # text, name of a style below or ""
Line = list[Span]

TAB: Final = 4
STYLES: Final = {
    "error": "bold red",
    "warning": "bold yellow",
    "info": "bold cyan",
    "path": "bold",
    "strong": "bold",
    "faint": "dim",
    "gutter": "blue",
    "label": "bold blue",
    "code": "bold cyan",
    "quoted": "bold",
    "fix": "green",
    "removed": "red",
    "added": "green",
    "good": "bold green",
}


def colour_wanted(stream: TextIO, choice: str = "auto") -> bool:
    """Whether to write colours to `stream`: NO_COLOR and FORCE_COLOR first, then whether it is a terminal."""
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def paint(lines: Iterable[Line], out: TextIO, colour: bool) -> None:
    """Write the lines. Colour goes through rich."""
    if not colour:
        for line in lines:
            out.write("".join(text for text, _ in line) + "\n")
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(file=out, force_terminal=True, highlight=False, soft_wrap=True, legacy_windows=False)
    for line in lines:
        console.print(Text.assemble(*((part, STYLES.get(style, "")) for part, style in line)))


def quoted(message: str, style: str = "") -> Line:
    """A message whose `code` between backticks stands out."""
    parts = message.split("`")
    if len(parts) % 2 == 0:
        return [(message, style)]
    return [
        (f"`{part}`", "quoted") if number % 2 else (part, style) for number, part in enumerate(parts) if part
    ]


def printable(text: str) -> str:
    """`text` without anything that would move a terminal's cursor or change its state; tabs become blanks."""
    if text.isprintable():
        return text
    return "".join(map(_visible, text))


def _visible(letter: str) -> str:
    if letter == "\t":
        return " " * TAB
    if letter.isprintable() or letter == "\N{NO-BREAK SPACE}":
        return letter
    code = ord(letter)
    if code < 0x20:
        return chr(0x2400 + code)  # the control pictures
    if code == 0x7F:
        return "\N{SYMBOL FOR DELETE}"
    return (
        letter
        if unicodedata.category(letter) in ("Zs", "Co") or _is_joiner(letter)
        else "\N{REPLACEMENT CHARACTER}"
    )


def _is_joiner(letter: str) -> bool:
    return letter == "\N{ZERO WIDTH JOINER}" or letter == "\N{VARIATION SELECTOR-16}"


def width(text: str) -> int:
    """The columns that printable `text` takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(map(_letter_width, text))


def _letter_width(letter: str) -> int:
    if letter.isascii():
        return 1
    if unicodedata.combining(letter) or unicodedata.category(letter) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in ("W", "F") else 1
