"""A document as one self-contained page: it needs no network, no other file, and no script to be read. Charts are SVG."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from importlib.resources import files
from typing import Final

from gpulint.reports import document as doc
from gpulint.reports.layout import Excerpt
from gpulint.source.edits import unified_diff
from gpulint.units import format_bytes
from gpulint.version import __version__

WIDTH, HEIGHT = 960, 280
LEFT, RIGHT, TOP, BOTTOM = 116, 14, 12, 30
# Below; on a narrow screen, where letters are twice as large, more would run into one another
MOST_LABELS: Final = 6
_LINES: Final = 5  # at most
_ROUND: Final = (1, 2, 5, 10, 20, 50, 100, 200, 256, 512)  # of a unit, of which 1,024 are one of the next


def figure(chart: doc.Chart) -> str:
    """A figure element; an empty string where there is no curve to draw."""
    series = [one for one in chart.series if len(one.points) > 1]
    if not series:
        return ""
    low, high = _edges(chart)
    floor = y_of(low, low, high)
    drawn = [
        f'<rect class="{style}" x="{x_of(begin)}" y="{TOP}" width="{max(1.0, x_of(end) - x_of(begin)):.1f}" '
        f'height="{HEIGHT - TOP - BOTTOM}"/>'
        for begin, end, style in chart.bands
    ]
    drawn += [amounts(high, low), below(chart.below)]
    curves, keys = [], []
    for one in series:
        named, first, last = f'data-series="{one.style}"', x_of(one.points[0][0]), x_of(one.points[-1][0])
        points = " ".join(f"{x_of(at)},{y_of(value, low, high)}" for at, value in one.points)
        curves.append(f'<polyline class="s-{one.style}" {named} points="{points}"/>')
        if one.filled:
            ring = f"{first},{floor} {points} {last},{floor}"
            drawn.append(f'<polygon class="s-area" {named} points="{ring}"/>')
        keys.append(
            f'<button type="button" class="key c-{one.style}" {named} aria-pressed="true">'
            f'<span class="swatch"></span>{escape(one.name)}</button>'
        )
    drawn += curves
    if chart.limit is not None:
        y = y_of(chart.limit[0], low, high)
        drawn.append(f'<line class="s-peak" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}"/>')
        keys.append(f'<span class="key c-peak"><span class="swatch"></span>{escape(chart.limit[1])}</span>')
    keys += [f"<span>{escape(chart.note)}</span>"] if chart.note else []
    drawn += [
        f'<circle class="event" cx="{x_of(at)}" cy="{TOP + 6}" r="4"><title>{escape(said)}</title></circle>'
        for at, said in chart.marks
    ]
    drawn.append(f'<line class="cursor hidden" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>')
    drawn.append('<circle class="dot hidden" r="4.5"/>')
    tips = [{"x": x_of(one.at), "y": y_of(one.height, low, high), "text": one.lines} for one in _tips(chart)]
    label = escape(f"{chart.label}. Arrow keys move along it; the tables have every figure")
    return (
        f'<figure><svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" tabindex="0" aria-label="{label}">'
        f'{"".join(drawn)}</svg><div class="tip hidden" role="status"></div><figcaption>{"".join(keys)}</figcaption>'
        f'<script type="application/json">{as_script_json(tips)}</script></figure>'
    )


def as_script_json(data: object) -> str:
    """JSON that may stand inside a script element: no `<`, no line separators."""
    return re.sub("[<>&]", lambda sign: f"\\u{ord(sign[0]):04x}", json.dumps(data, ensure_ascii=True))


def _edges(chart: doc.Chart) -> tuple[int, int]:
    """What the lower and the upper edge stand for."""
    values = [value for one in chart.series for _, value in one.points]
    low, high = min(values), max(*values, chart.limit[0] if chart.limit is not None else 0)
    span = high - low
    low = 0 if chart.from_zero or not span or span > high / 4 else max(0, low - span // 4)
    return low, high + max(1, high - low) // 12 + 1


def _tips(chart: doc.Chart) -> Iterator[doc.Tip]:
    """Those of the chart, or the figures of all curves where the first of them has a point."""
    if chart.tips:
        yield from chart.tips
        return
    known = [(one.name, dict(one.points)) for one in chart.series]
    for at, height in chart.series[0].points:
        lines = tuple(f"{name}: {format_bytes(sizes[at])}" for name, sizes in known if at in sizes)
        yield doc.Tip(at, height, lines)


def x_of(part: float) -> float:
    """Where this part of the run, from 0 to 1, is drawn."""
    return round(LEFT + (WIDTH - LEFT - RIGHT) * min(1.0, part), 1)


def y_of(amount: float, low: int, high: int) -> float:
    """Where an amount of bytes is drawn, with `low` at the bottom and `high` at the top."""
    return round(TOP + (HEIGHT - TOP - BOTTOM) * (1 - (amount - low) / (high - low)), 1)


def amounts(high: int, low: int = 0) -> str:
    """A line and its amount at each round number of bytes from `low`, the lower edge, up to `high`."""
    steps = (number << unit for unit in range(0, 60, 10) for number in _ROUND)
    step = next(size for size in steps if (high - low) // size < _LINES)
    drawn = []
    for amount in range(-(-low // step) * step, high + 1, step):
        y = y_of(amount, low, high)
        said = format_bytes(amount).replace(".00 ", " ")
        drawn.append(f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}"/>')
        drawn.append(f'<text class="label" x="{LEFT - 10}" y="{y + 4}" text-anchor="end">{said}</text>')
    return "".join(drawn)


def below(labels: Sequence[tuple[float, str]]) -> str:
    """Words under the axis, each with the part of the run that it stands at: of many, some at equal distances."""
    every = -(-len(labels) // MOST_LABELS) or 1
    return "".join(
        f'<text class="label" x="{x_of(part)}" y="{HEIGHT - 8}" text-anchor="{_anchor(part)}">{text}</text>'
        for part, text in labels[every - 1 :: every]
    )


def _anchor(part: float) -> str:
    """At the ends a word stands inside of the drawing, not across its edge."""
    return "start" if part < 0.05 else "end" if part > 0.95 else "middle"


_CONTEXT: Final = 3  # source lines shown before and after
_LONGEST: Final = 400  # letters of a source line


def page(document: doc.Document) -> str:
    """The whole page."""
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


def _head(document: doc.Document) -> str:
    more = f"<br>{ticked(document.closing)}" if document.closing else ""
    tiles = "".join(
        f"<div><dt>{escape(name.capitalize())}</dt><dd>{_cell(value)}<small>{escape(note)}</small></dd></div>"
        for name, value, note in document.figures
    )
    return (
        f'<header><h1>{escape(document.subject)}</h1><p class="soft">{escape(document.lead)}</p>'
        f'<p class="banner {document.style}" role="status"><strong>{ticked(doc.sentence(document.headline))}</strong>{more}</p>'
        + (f'<dl class="figures">{tiles}</dl>' if tiles else "")
        + "</header>"
    )


def _section(section: doc.Section) -> str:
    inner = "\n".join(filter(None, map(_block, section.blocks)))
    if not inner:
        return ""
    if section.folded:
        return f"<section><details><summary>{ticked(section.title)}</summary>{inner}</details></section>"
    return f"<section><h2>{ticked(section.title)}</h2>\n{inner}</section>"


def _block(block: doc.Block) -> str:
    match block:
        case doc.Table():
            return _table(block)
        case doc.Card():
            return _card(block)
        case doc.Say():
            label = f'<span class="badge {block.style}">{escape(block.label)}</span> ' if block.label else ""
            style = f' class="{block.style}"' if block.style and not label else ""
            return f"<p{style}>{label}{ticked(block.text)}</p>"
        case doc.Facts():
            return _facts(block.listed)
        case doc.Chart():
            return figure(block)
        case doc.Diff():
            return f'<p class="soft mono">{escape(block.path)}</p>{_diff(block)}'
        case doc.Trace():
            return f'<pre class="trace">{escape(block.text)}</pre>'


def _facts(listed: Iterable[tuple[str, ...]]) -> str:
    inner = "".join(
        f"<dt>{ticked(name[:1].upper() + name[1:])}</dt><dd>{'<br>'.join(map(ticked, filter(None, lines)))}</dd>"
        for name, *lines in listed
    )
    return f'<dl class="facts">{inner}</dl>' if inner else ""


def _card(card: doc.Card) -> str:
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


def _diff(diff: doc.Diff) -> str:
    """Without its head, which names the file twice."""
    styles = {"+": "added", "-": "removed", "@": "n"}
    lines = unified_diff(diff.before, diff.after, diff.path).splitlines()[2:]
    shown = ((styles.get(line[:1], ""), escape(line[:_LONGEST]) or " ") for line in lines)
    rows = "".join(f'<span class="{style}">{text}</span>' for style, text in shown)
    return f'<pre class="source"><code>{rows}</code></pre>' if rows else ""


def _table(table: doc.Table) -> str:
    """A wide table with several columns of words is a list of its cells on a narrow screen; one of numbers, which are read down a
    column, is moved sideways there."""
    laid = table.laid(doc.MORE_ON_A_PAGE)
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
    rows = f"<thead><tr>{top}</tr></thead><tbody>{body}</tbody>"
    return f'<div class="scroll"><table{style}>{rows}</table></div>'


def _cell(value: str | int | doc.Cell) -> str:
    if not isinstance(value, doc.Cell):
        return ticked(value) if isinstance(value, str) else format_bytes(value)
    text = ticked(value.text)
    if value.style:
        style = value.style if value.style in ("soft", "mono") else f"badge {value.style}"
        text = f'<span class="{style}">{text}</span>'
    return text + "".join(f'<br><span class="soft mono">{ticked(line)}</span>' for line in value.more)
