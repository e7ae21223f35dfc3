"""Allocator settings in shell scripts, Dockerfiles and `.env` files, read line by line."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

SUFFIXES: Final = (".sh", ".bash", ".zsh", ".ksh", ".bats", ".env", ".dockerfile")
_NAMES: Final = re.compile(
    r"(?:Dockerfile|Containerfile)(?:\..+)?$|\.env(?:\..+)?$|\.envrc$|\.(?:bash_profile|bashrc|profile|zprofile|zshenv|zshrc)$"
)
_SHEBANG: Final = re.compile(r"#![^\n]*[/ ](?:a|ba|da|k|z)?sh\b")
# Without these bytes a file has nothing to say.
MARKER: Final = b"ALLOC_CONF"

_SETTING: Final = re.compile(
    r"(?<![\w${])(?P<name>PYTORCH_(?:CUDA_|HIP_)?ALLOC_CONF)(?:=|(?P<space>[ \t]+))"
    r"(?P<value>\"[^\"]*\"|'[^']*'|[^\s;&|\"'\\]*)"
)
# What only prints, or searches for, a setting.
_TALKS: Final = re.compile(r"\s*(?:echo|printf|print|grep|sed|cat|log\w*|unset)\b")
_DOCKER: Final = re.compile(r"\s*(?:ENV|ARG)\s", re.IGNORECASE)
_DEFAULT: Final = re.compile(r"\$\{\w+:?-([^}]*)\}")
_EXPANSION: Final = re.compile(r"\$\{[^}]*\}|\$\([^)]*\)|`[^`]*`|\$\w+")


@dataclass(frozen=True, slots=True)
class TextSetting:
    """A setting in a line of text. Columns count from 1, `end` is exclusive; they span the value without its quotes.

    `text` has `{}` for what the shell puts in.
    """

    variable: str
    text: str
    row: int
    start: int
    value_start: int
    end: int
    literal: bool


def is_settings_file(path: str) -> bool:
    """Whether a path is that of a shell script, a Dockerfile or a `.env` file."""
    name = os.path.basename(path)
    return name.endswith(SUFFIXES) or _NAMES.match(name) is not None


def is_settings_text(path: str, text: str) -> bool:
    """Whether a file is one of settings by its name or, where that says nothing, by its first line."""
    return is_settings_file(path) or (not path.endswith(".py") and _SHEBANG.match(text) is not None)


def text_settings(text: str) -> Iterator[TextSetting]:
    """Every allocator setting in a file's text, comments and printed advice left out."""
    for row, line in enumerate(re.split(r"\r\n|\r|\n", text), start=1):
        if "ALLOC_CONF" not in line or _TALKS.match(line):
            continue
        code = line[: _comment_start(line)]
        for match in _SETTING.finditer(code):
            if match["space"] is not None and not _DOCKER.match(line):
                continue
            value = match["value"]
            quoted = value[:1] in ("'", '"')
            start = match.start("value") + quoted
            end = match.end("value") - quoted
            inner = line[start:end]
            filled = inner if value[:1] == "'" else _EXPANSION.sub("{}", _DEFAULT.sub(r"\1", inner))
            yield TextSetting(
                match["name"], filled, row, match.start() + 1, start + 1, end + 1, filled == inner
            )


def _comment_start(line: str) -> int:
    """Where a comment begins: at a `#` outside quotes at the line's start or after a space."""
    quote = ""
    for position, letter in enumerate(line):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter == "#" and (position == 0 or line[position - 1].isspace()):
            return position
    return len(line)
