"""What every HTML report is made of: one self-contained page, tables, facts. It needs no network, no other file, and no script to be
read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files


def page(title: str, body: Iterable[str]) -> str:
    """The whole page; parts that are empty are left out."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
        "script-src 'unsafe-inline'\">\n"
        f"<title>{escape(title)}</title>\n<style>\n{_asset('report.css')}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(part for part in body if part)
        + f"\n{_foot()}\n</main>\n<script>\n{_asset('report.js')}</script>\n</body>\n</html>\n"
    )


def _asset(name: str) -> str:
    return (files("gpulint.reports") / "assets" / name).read_text(encoding="utf-8")


def _foot() -> str:
    from gpulint.version import __version__

    return f"<footer>Written by gpulint {escape(__version__)}.</footer>"


def ticked(text: str) -> str:
    """Text with `code` between backticks, as HTML."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def fact_list(listed: Iterable[tuple[str, str]]) -> str:
    """A list of names and values; the values are HTML already."""
    inner = "".join(f"<dt>{escape(name)}</dt><dd>{value}</dd>" for name, value in listed)
    return f'<dl class="facts">{inner}</dl>'


def table(head: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[int] = ()) -> str:
    """`rows` are HTML already; the columns `numbers` stand to the right. A wide table of words is a list of its cells on a narrow
    screen; one of numbers, which are read down a column, is moved sideways there."""

    def cell(tag: str, column: int, value: str, more: str) -> str:
        style = ' class="num"' if column in numbers else ""
        return f"<{tag}{style} {more}>{value}</{tag}>"

    named = [escape(name) for name in head]
    top = "".join(cell("th", column, name, 'scope="col"') for column, name in enumerate(named))
    body = "".join(
        "<tr>"
        + "".join(cell("td", at, value, f'data-head="{named[at]}"') for at, value in enumerate(row))
        + "</tr>"
        for row in rows
    )
    style = ' class="listed"' if len(head) > 4 and len(numbers) < 4 else ""
    return (
        f'<div class="scroll"><table{style}><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'
    )
