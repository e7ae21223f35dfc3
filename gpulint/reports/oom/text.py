"""What `gpulint oom` says about a log: each kind of error once in full, with the ranks it happened on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TextIO

from gpulint.memory.oom.diagnosis import TO_TRY
from gpulint.operator.oom_log import LogReport, Occurrence, growth
from gpulint.reports import plural
from gpulint.reports.layout import Line, hanging, paint, printable, quoted

SHOWN = 5


def write(
    report: LogReport,
    found: Sequence[str],
    out: TextIO,
    all_of_them: bool = False,
    colour: bool = False,
    columns: int | None = None,
) -> None:
    """Write the report, and lines about what is found in the files that its tracebacks name."""
    paint([*render(report, all_of_them, columns), *(quoted(printable(line)) for line in found)], out, colour)


def render(report: LogReport, all_of_them: bool = False, columns: int | None = None) -> Iterator[Line]:
    """The report as lines; `columns` are the terminal's, None for no wrapping."""
    remarks = list(_unread(report))
    if not report.occurrences:
        yield from _plain([_nothing(report), *remarks], columns)
        return
    yield [(_headline(report), "strong")]
    groups: dict[tuple[str, str | None], list[Occurrence]] = {}
    for each in report.occurrences:
        groups.setdefault((each.diagnosis.kind, each.where), []).append(each)
    shown = list(groups.values()) if all_of_them else list(groups.values())[:SHOWN]
    advised: set[tuple[str, ...]] = set()
    for group in shown:
        yield []
        yield from _group(group, advised, columns)
    hidden = len(groups) - len(shown)
    more = [f"... and {hidden} more places; --all shows them"] if hidden else []
    killed = [_killed(report)] if report.killed else []
    remarks = [*more, *growth(report), *killed, *remarks]
    if remarks:
        yield []
        yield from _plain(remarks, columns)


def _plain(lines: Iterable[str], columns: int | None) -> Iterator[Line]:
    for line in lines:
        yield from hanging([], line, columns)


def _headline(report: LogReport) -> str:
    total = sum(each.times for each in report.occurrences)
    text = f"{plural(total, 'out-of-memory message')} in {report.lines:,} {'line' if report.lines == 1 else 'lines'}"
    ranks = report.ranks
    if ranks:
        text += (
            f", from {plural(len(ranks), 'rank')} ({', '.join(ranks[:8])}{', ...' if len(ranks) > 8 else ''})"
        )
    if report.retries is not None:
        text += f"; the allocator retried {plural(report.retries, 'time')}"
    return text


def _group(group: Sequence[Occurrence], advised: set[tuple[str, ...]], columns: int | None) -> Iterator[Line]:
    first = max(group, key=lambda each: each.diagnosis.missing or 0)
    diagnosis = first.diagnosis
    title = f"line {first.line}" + (f", rank {first.rank}" if first.rank is not None else "")
    yield [
        (title, "path"),
        (f", {first.times} times" if first.times > 1 else "", ""),
        (f", raised at {printable(first.where)}" if first.where else "", ""),
    ]
    yield from hanging([("  ", "")], diagnosis.headline, columns)
    said = [*diagnosis.arithmetic, *([diagnosis.retried] if diagnosis.retries else [])]
    said += [f"raised {diagnosis.cause.what}"] if diagnosis.cause is not None else []
    for line in said:
        yield from hanging([("    ", "")], line, columns)
    if len(group) > 1:
        others = (
            f"line {one.line}" + (f" (rank {one.rank})" if one.rank else "")
            for one in group
            if one is not first
        )
        yield from hanging([("  the same here: ", "label")], ", ".join(others), columns)
    advice = tuple(map(str, diagnosis.advice))
    if advice not in advised:
        advised.add(advice)
        yield [(f"  {TO_TRY}:", "label")]
        for number, each in enumerate(advice, 1):
            yield from hanging([(f"    {number}. ", "gutter")], each, columns)


def _killed(report: LogReport) -> str:
    places = ", ".join(str(number) for number in report.killed[:SHOWN])
    say = "says" if len(report.killed) == 1 else "say"
    return (
        f"{plural(len(report.killed), 'line')} ({places}) {say} that a process was killed from outside: often the host's"
        " memory ran out, which torch cannot report"
    )


def _unread(report: LogReport) -> Iterator[str]:
    for name, numbers in report.unread.items():
        listed = ", ".join(map(str, numbers[:SHOWN])) + (", ..." if len(numbers) > SHOWN else "")
        lines = "line" if len(numbers) == 1 else "lines"
        yield (
            f"{plural(len(numbers), 'message')} of {name} ({lines} {listed}): not supported, gpulint reads those of torch"
        )


def _nothing(report: LogReport) -> str:
    whose = " of torch's" if report.unread else ""
    text = f"no out-of-memory message{whose} in {plural(report.lines, 'line')}"
    return f"{text}; {_killed(report)}" if report.killed else text
