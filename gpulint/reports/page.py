"""A document as one self-contained page: it needs no network, no other file, and no script to be read."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from importlib.resources import files
from typing import Final

from gpulint.reports.document import (
    MORE_ON_A_PAGE,
    Block,
    Card,
    Cell,
    Chart,
    Diff,
    Document,
    Excerpt,
    Facts,
    Say,
    Section,
    Table,
    Trace,
    sentence,
)
from gpulint.reports.svg import figure
from gpulint.source.edits import unified_diff
from gpulint.units import format_bytes

_CONTEXT: Final = 3  # source lines shown before and after
_LONGEST: Final = 400  # letters of a source line


def page(document: Document) -> str:
    """The whole page."""
    from gpulint.version import __version__

    body = [_head(document), *map(_section, document.sections)]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
        "script-src 'unsafe-inline'\">\n"
        f"<title>{escape(document.title)}</title>\n<style>\n{_asset('report.css')}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(part for part in body if part)
        + f"\n<footer>Written by gpulint {escape(__version__)}.</footer>\n</main>\n<script>\n{_asset('report.js')}</script>\n"
        "</body>\n</html>\n"
    )


def _asset(name: str) -> str:
    return (files("gpulint.reports") / "assets" / name).read_text(encoding="utf-8")


def ticked(text: str) -> str:
    """Text with `code` between backticks, as HTML."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def _head(document: Document) -> str:
    more = f"<br>{ticked(document.closing)}" if document.closing else ""
    tiles = "".join(
        f"<div><dt>{escape(name.capitalize())}</dt><dd>{_cell(value)}<small>{escape(note)}</small></dd></div>"
        for name, value, note in document.figures
    )
    return (
        f'<header><h1>{escape(document.subject)}</h1><p class="soft">{escape(document.lead)}</p>'
        f'<p class="banner {document.style}" role="status"><strong>{ticked(sentence(document.headline))}</strong>{more}</p>'
        + (f'<dl class="figures">{tiles}</dl>' if tiles else "")
        + "</header>"
    )


def _section(section: Section) -> str:
    inner = "\n".join(filter(None, map(_block, section.blocks)))
    if not inner:
        return ""
    if section.folded:
        return f"<section><details><summary>{ticked(section.title)}</summary>{inner}</details></section>"
    return f"<section><h2>{ticked(section.title)}</h2>\n{inner}</section>"


def _block(block: Block) -> str:
    match block:
        case Table():
            return _table(block)
        case Card():
            return _card(block)
        case Say():
            label = f'<span class="badge {block.style}">{escape(block.label)}</span> ' if block.label else ""
            style = f' class="{block.style}"' if block.style and not label else ""
            return f"<p{style}>{label}{ticked(block.text)}</p>"
        case Facts():
            return _facts(block.listed)
        case Chart():
            return figure(block)
        case Diff():
            return f'<p class="soft mono">{escape(block.path)}</p>{_diff(block)}'
        case Trace():
            return f'<pre class="trace">{escape(block.text)}</pre>'


def _facts(listed: Iterable[tuple[str, ...]]) -> str:
    inner = "".join(
        f"<dt>{ticked(name[:1].upper() + name[1:])}</dt><dd>{'<br>'.join(map(ticked, filter(None, lines)))}</dd>"
        for name, *lines in listed
    )
    return f'<dl class="facts">{inner}</dl>' if inner else ""


def _card(card: Card) -> str:
    code = f"<code>{escape(card.code)}</code> " if card.code else ""
    return (
        f'<article><header><span class="badge {card.style}">{escape(card.badge)}</span>'
        f'<span class="place mono">{escape(card.place)}</span><h3>{code}{ticked(card.text)}</h3></header>'
        f"{_source(card.excerpt) if card.excerpt is not None else ''}{_diff(card.diff) if card.diff is not None else ''}"
        f"{_facts(card.facts)}</article>"
    )


def _source(excerpt: Excerpt) -> str:
    """The lines of the excerpt, marked, with some around them."""
    lines, first = excerpt.source, excerpt.line
    if not 1 <= first <= len(lines):
        return ""
    last = max(first, min(excerpt.end_line, first + 8))
    begin, end = max(1, first - _CONTEXT), min(len(lines), last + _CONTEXT)
    width = len(str(end))
    rows = []
    for number in range(begin, end + 1):
        marked = ' class="hit"' if first <= number <= last else ""
        code = escape(lines[number - 1][:_LONGEST]) or " "
        rows.append(f'<span{marked}><span class="n">{number:>{width}}</span>{code}</span>')
    return f'<pre class="source"><code>{"".join(rows)}</code></pre>'


def _diff(diff: Diff) -> str:
    """Without its head, which names the file twice."""
    styles = {"+": "added", "-": "removed", "@": "n"}
    lines = unified_diff(diff.before, diff.after, diff.path).splitlines()[2:]
    rows = "".join(
        f'<span class="{styles.get(line[:1], "")}">{escape(line[:_LONGEST]) or " "}</span>' for line in lines
    )
    return f'<pre class="source"><code>{rows}</code></pre>' if rows else ""


def _table(table: Table) -> str:
    """A wide table with several columns of words is a list of its cells on a narrow screen; one of numbers, which are read down a
    column, is moved sideways there."""
    laid = table.laid(MORE_ON_A_PAGE)
    if not laid.rows:
        return ""

    def cell(tag: str, at: int, value: str, more: str) -> str:
        style = ' class="num"' if at in laid.numbers else ""
        return f"<{tag}{style} {more}>{value}</{tag}>"

    named = [escape(name) for name in laid.head]
    top = "".join(cell("th", at, name, 'scope="col"') for at, name in enumerate(named))
    body = "".join(
        "<tr>"
        + "".join(cell("td", at, _cell(value), f'data-head="{named[at]}"') for at, value in enumerate(row))
        + "</tr>"
        for row in laid.rows
    )
    style = ' class="listed"' if len(named) > 3 and len(named) - len(laid.numbers) > 1 else ""
    return (
        f'<div class="scroll"><table{style}><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def _cell(value: str | int | Cell) -> str:
    if not isinstance(value, Cell):
        return ticked(value) if isinstance(value, str) else format_bytes(value)
    text = ticked(value.text)
    if value.style:
        style = value.style if value.style in ("soft", "mono") else f"badge {value.style}"
        text = f'<span class="{style}">{text}</span>'
    return text + "".join(f'<br><span class="soft mono">{ticked(line)}</span>' for line in value.more)
