"""What a step of a GitHub job leaves for the job: a piece of its summary, and outputs that later steps read."""

from __future__ import annotations

import os
from typing import Final

from gpulint.cli._errors import say

SUMMARY: Final = "GITHUB_STEP_SUMMARY"  # the file whose Markdown GitHub shows on the job's page
_OUTPUT: Final = "GITHUB_OUTPUT"


def summarize(markdown: str) -> None:
    """Add Markdown to the page of the job, where this runs in one."""
    _append(SUMMARY, markdown)


def give(name: str, value: str) -> None:
    """Set an output of the step, where this runs in one."""
    _append(_OUTPUT, f"{name}={value}\n")


def _append(variable: str, text: str) -> None:
    path = os.environ.get(variable)
    if not path or not text:
        return
    try:
        with open(path, "a", encoding="utf-8", errors="backslashreplace", newline="\n") as out:
            out.write(text)
    except OSError as error:
        say(f"{variable}: {error.strerror or error}")
