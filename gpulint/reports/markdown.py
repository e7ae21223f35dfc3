"""A document as Markdown, for a pull request or a job's page. What is folded can be opened; charts are left out."""

from __future__ import annotations

from collections.abc import Iterator

from gpulint.reports.document import Block, Card, Cell, Diff, Document, Facts, Say, Table, Trace, sentence
from gpulint.source.edits import unified_diff


def markdown(document: Document) -> str:
    """The whole text."""
    return "\n".join(_lines(document)) + "\n"


def _lines(document: Document) -> Iterator[str]:
    yield from (f"### {_escaped(document.title).replace(document.subject, f'`{document.subject}`')}", "")
    yield from (f"**{_escaped(sentence(document.headline))}** {_escaped(document.lead)}".rstrip(), "")
    for section in document.sections:
        inner = [line for block in section.blocks for line in _block(block)]
        if section.folded and inner:
            summary = f"<details><summary>{_escaped(section.title)}</summary>"
            yield from (summary, "", *inner, "</details>", "")
        elif inner:
            yield from inner


def _block(block: Block) -> Iterator[str]:
    match block:
        case Table():
            yield from table(block)
        case Card():
            place = f"`{block.place}` " if block.place else ""
            said = f"{block.code}: {block.text}" if block.code else block.text
            yield f"- **{block.badge}** {place}{_escaped(said)}"
            if (shown := block.excerpt) and shown.line <= len(shown.source):
                yield f"  - `{shown.source[shown.line - 1].strip().replace('`', '')}`"
            yield from (f"  - {name}: {_escaped(text)}" for name, text in block.facts)
            yield ""
        case Say():
            yield from (f"**{block.label}** {_escaped(block.text)}".removeprefix("**** "), "")
        case Facts():
            yield from (
                f"- {name}: {_escaped('; '.join(filter(None, lines)))}" for name, *lines in block.listed
            )
            yield ""
        case Diff():
            text = unified_diff(block.before, block.after, block.path)
            fence = "```" if "```" not in text else "~~~~"
            yield from (f"{fence}diff", text.rstrip(), fence, "")
        case Trace():
            yield from ("```", block.text, "```", "")


def table(shown: Table) -> Iterator[str]:
    """A table, with an empty line after it."""
    laid = shown.laid()
    if laid.rows:
        yield f"| {' | '.join(map(_escaped, laid.head))} |"
        yield f"| {' | '.join('---:' if at in laid.numbers else '---' for at in range(len(laid.head)))} |"
        for row in laid.rows:
            yield f"| {' | '.join(_cell(one) for one in row)} |"
        yield ""


def _cell(cell: Cell) -> str:
    """What is bad stands out."""
    first, *others = map(_escaped, (cell.text, *cell.more))
    return "<br>".join((f"**{first}**" if cell.style == "bad" else first, *others))


def _escaped(text: str) -> str:
    """Text that stays one cell of a table, and is no HTML."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
