"""Pieces of the verifier's text: a labelled remark, a source line, a place."""

from __future__ import annotations

import os
import textwrap

from gpulint.reports.layout import Line, printable, quoted
from gpulint.runtime.record.result import Site
from gpulint.source.sources import Sources


def site_text(site: Site) -> str:
    """`model.py:12 in forward`."""
    if not site.file:
        return "no Python line (backward, or a library's thread)"
    return f"{os.path.basename(site.file)}:{site.line} in {site.function}"


def note(label: str, text: str, columns: int | None, margin: int = 2) -> list[Line]:
    lead = " " * (margin + 1)
    indent = len(lead) + len("= measured: ")
    text = printable(text.replace("\n", " "))
    wrapped = textwrap.wrap(text, max(columns - indent, 40), break_on_hyphens=False) if columns else [text]
    first: Line = [
        (lead + "= ", "gutter"),
        (f"{label}:".ljust(10), "label"),
        *quoted(wrapped[0] if wrapped else ""),
    ]
    return [first, *([(" " * indent, ""), *quoted(more)] for more in wrapped[1:])]


def remark(label: str, style: str, text: str, columns: int | None, body: str = "") -> list[Line]:
    """`harmless: …`, wrapped at the terminal's width."""
    said = printable(" ".join(text.split()))
    if columns is None:
        return [[(f"{label}: ", style), *quoted(said, body)]]
    first, *more = textwrap.wrap(
        f"{label}: {said}", max(columns, 40), subsequent_indent="  ", break_on_hyphens=False
    )
    return [
        [(f"{label}: ", style), *quoted(first[len(label) + 2 :], body)],
        *(quoted(line, body) for line in more),
    ]


def source_line(file: str, line: int, sources: Sources) -> list[Line]:
    source = sources.lines(file) if file else []
    if not 1 <= line <= len(source):
        return []
    gutter: Line = [(" " * (len(str(line)) + 1) + "|", "gutter")]
    code: Line = [(f"{line} | ", "gutter"), (printable(source[line - 1]).rstrip()[:160], "")]
    return [gutter, code, gutter]
