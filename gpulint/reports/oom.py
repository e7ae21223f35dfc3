"""What `gpulint oom` says about a log: each kind of error once in full, with the ranks it happened on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from gpulint.memory.oom import TO_TRY
from gpulint.operator.oom_log import LogReport, Occurrence, growth
from gpulint.reports import plural
from gpulint.reports.document import Document, Facts, Say, Section, Trace, remark, section

SHOWN: Final = 5


def document(report: LogReport, found: Sequence[str] = (), all_of_them: bool = False) -> Document:
    """The whole report; `found` are lines about what is found in the files that its tracebacks name."""
    groups: dict[tuple[str, str | None], list[Occurrence]] = {}
    for each in report.occurrences:
        groups.setdefault((each.diagnosis.kind, each.where), []).append(each)
    shown = list(groups.values())[: None if all_of_them else SHOWN]
    advised: set[tuple[str, ...]] = set()
    hidden = len(groups) - len(shown)
    remarks = [f"... and {hidden} more places; --all shows them"] if hidden else []
    remarks += growth(report)
    remarks += [_killed(report)] if report.killed and groups else []
    return Document(
        "gpulint oom",
        "",
        "",
        "bad" if groups else "",
        _headline(report) if groups else _nothing(report),
        (
            *(_group(group, advised) for group in shown),
            section("", map(remark, (*remarks, *_unread(report)))),
            section("", Trace("\n".join(found))),
        ),
    )


def _headline(report: LogReport) -> str:
    total = sum(each.times for each in report.occurrences)
    text = f"{plural(total, 'out-of-memory message')} in {report.lines:,} {'line' if report.lines == 1 else 'lines'}"
    if ranks := report.ranks:
        named = ", ".join((*ranks[:8], *(["..."] if len(ranks) > 8 else [])))
        text += f", from {plural(len(ranks), 'rank')} ({named})"
    if report.retries is not None:
        text += f"; the allocator retried {plural(report.retries, 'time')}"
    return text


def _group(group: Sequence[Occurrence], advised: set[tuple[str, ...]]) -> Section:
    """The one that lacks most in full; what was advised before is not advised again."""
    first = max(group, key=lambda each: each.diagnosis.missing or 0)
    diagnosis = first.diagnosis
    title = [
        f"line {first.line}",
        f"rank {first.rank}" if first.rank is not None else "",
        f"{first.times} times" if first.times > 1 else "",
        f"raised at {first.where}" if first.where else "",
    ]
    cause = f"raised {diagnosis.cause.what}" if diagnosis.cause is not None else ""
    said = filter(None, (*diagnosis.arithmetic, diagnosis.retried, cause))
    others = (f"line {o.line}{f' (rank {o.rank})' if o.rank else ''}" for o in group if o is not first)
    advice = tuple(f"{number}. {each}" for number, each in enumerate(map(str, diagnosis.advice), 1))
    facts = [("figures", "", *said), ("the same here", ", ".join(others))]
    facts += [(TO_TRY, "", *advice)] if advice not in advised else []
    advised.add(advice)
    told = tuple(fact for fact in facts if any(fact[1:]))
    return section(", ".join(filter(None, title)), Say(diagnosis.headline, "bad"), Facts(told))


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
        said = f"{plural(len(numbers), 'message')} of {name} ({lines} {listed})"
        yield f"{said}: not supported, gpulint reads those of torch"


def _nothing(report: LogReport) -> str:
    whose = " of torch's" if report.unread else ""
    text = f"no out-of-memory message{whose} in {plural(report.lines, 'line')}"
    return f"{text}; {_killed(report)}" if report.killed else text
