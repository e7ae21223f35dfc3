"""Lines of styled text, painted plain or, through rich, in colour; and how wide text is on a terminal.

A format builds its lines once; the plain way imports nothing.
"""

from __future__ import annotations

import os
import textwrap
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Final, TextIO

Span = tuple[str, str]  # text, name of a style below or ""
Line = list[Span]

TAB: Final = 4
STYLES: Final = {
    "error": "bold bright_red",
    "warning": "bold yellow",
    "info": "bold cyan",
    "path": "bold",
    "mono": "bold",
    "strong": "bold",
    "faint": "dim",
    "gutter": "bright_blue",
    "label": "bold bright_blue",
    "quoted": "bold",
    "fix": "green",
    "removed": "red",
    "added": "green",
    "good": "bold green",
    "bad": "bold bright_red",
    "warn": "bold yellow",
    "mute": "dim",
    "soft": "dim",
    "code": "bold cyan",
    "allocated": "cyan",
    "reserved": "magenta",
}


def colour_wanted(stream: TextIO, choice: str = "auto") -> bool:
    """Whether to write colours to `stream`: NO_COLOR first, then FORCE_COLOR and CLICOLOR_FORCE, then CLICOLOR=0 and
    whether it is a terminal."""
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if any(os.environ.get(name, "0") not in ("", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb" and os.environ.get("CLICOLOR") != "0"


def links_wanted(stream: TextIO) -> bool:
    """Whether to write links (OSC 8) to `stream`: terminals that do not know them leave them out, bar the oldest."""
    return stream.isatty() and os.environ.get("TERM") not in ("dumb", "linux", None)


def linked(style: str, url: str) -> str:
    """A style of text that leads to an address."""
    return f"{style} link {url}"


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
        console.print(Text.assemble(*((part, _in_rich(style)) for part, style in line)))


def _in_rich(style: str) -> str:
    name, _, url = style.partition(" link ")
    return f"{STYLES.get(name, '')} link {url}".strip() if url else STYLES.get(name, "")


def quoted(message: str, style: str = "") -> Line:
    """A message whose `code` between backticks stands out."""
    parts = message.split("`")
    if len(parts) % 2 == 0:
        return [(message, style)]
    return [
        (f"`{part}`", "quoted") if number % 2 else (part, style) for number, part in enumerate(parts) if part
    ]


def hanging(lead: Line, said: str, columns: int | None) -> Iterator[Line]:
    """Text behind `lead`, its further lines below its first; `columns` are the terminal's, None for no wrapping."""
    indent = sum(width(text) for text, _ in lead)
    text = printable(said)
    wrapped = textwrap.wrap(text, max(columns - indent, 40), break_on_hyphens=False) if columns else []
    for number, line in enumerate(wrapped or [text]):
        yield [*(lead if number == 0 else [(" " * indent, "")]), *quoted(line)]


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
