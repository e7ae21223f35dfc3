"""The verifier's report as one self-contained page: it needs no network, no other file, and no script to be
read."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from html import escape

from gpulint.config import shown_path
from gpulint.reports import plural
from gpulint.reports.verify.gatepage import gate_section
from gpulint.reports.verify.notes import site_text
from gpulint.reports.verify.page import fact_list, page, table, ticked
from gpulint.reports.verify.standing import standing_section
from gpulint.reports.verify.text import growth_text, ranks_text, wasted_title
from gpulint.reports.verify.timeline import timeline
from gpulint.runtime.parent.evidence import Evidence
from gpulint.runtime.parent.growth import (
    SAID,
    movement_text,
    notes,
    peak_text,
    phases,
    seen_text,
    told_windows,
)
from gpulint.runtime.parent.verdict import Unpredicted, Verdict, Verification, Wasted
from gpulint.runtime.record.result import RankResult, Sample
from gpulint.source.sources import Sources
from gpulint.units import format_bytes

_CLASSES = {
    "confirmed": "bad",
    "confirmed, negligible on the GPU": "warn",
    "refuted": "good",
    "inconclusive": "info",
    "not reached": "mute",
}
_CONTEXT = 3  # source lines shown before and after
_MOST_RANKS = 8
_MOST_ROWS = 200


def write_page(verification: Verification) -> str:
    """The whole page."""
    sources = Sources()
    title = f"gpulint {'run' if _only_watched(verification) else 'verify'}: {verification.target}"
    body = [
        _head(verification),
        gate_section(verification),
        _timelines(verification),
        _verdicts(verification, sources),
        _unpredicted(verification, sources),
        _wasted(verification, sources),
        _accounted(verification),
        standing_section(verification),
        _holders(verification),
        _remarks(verification),
        _environment(verification),
        _samples(verification),
    ]
    return page(title, body)


# -- head ----------------------------------------------------------------------------------------------------


def _head(verification: Verification) -> str:
    rank = verification.run.ranks[0] if verification.run.ranks else None
    lines = [f"<h1>{escape(verification.target)}</h1>"]
    if rank is not None:
        environment = rank.environment
        where = environment.device_name or environment.device
        on = f"the CPU ({where})" if environment.device == "cpu" else where
        torch = f", torch {environment.torch}" if environment.torch else ""
        lines.append(f'<p class="soft">On {escape(on)}{escape(torch)}, {escape(environment.date)}</p>')
    style, headline, more = _conclusion(verification)
    lines.append(
        f'<p class="banner {style}" role="status"><strong>{escape(headline)}</strong><br>{escape(more)}</p>'
    )
    return "\n".join(["<header>", *lines, _figures(verification, rank), "</header>"])


def _only_watched(verification: Verification) -> bool:
    """Whether this is the timeline of `gpulint run`: samples by time, nothing judged."""
    ranks = verification.run.ranks
    return bool(ranks) and all(rank.boundary == "none" for rank in ranks) and not verification.verdicts


def _conclusion(verification: Verification) -> tuple[str, str, str]:
    if _only_watched(verification) and not verification.failed:
        return (
            "good",
            "The program was watched while it ran",
            f"{verification.trouble}. Nothing was judged.",
        )
    counts = [
        f"{number} {status}"
        for status in ("confirmed", "refuted", "inconclusive", "not reached")
        if (number := verification.count(status))  # type: ignore[arg-type]
    ]
    found = plural(len(verification.verdicts), "finding")
    more = f"; {len(verification.unpredicted)} unpredicted" if verification.unpredicted else ""
    if verification.wasted:
        more += f"; {plural(len(verification.wasted), 'forward')} for nothing"
    summary = f"{found}{': ' + ', '.join(counts) if counts else ''}{more}."
    drift = verification.said_drift
    gate = verification.gate
    if gate is not None and not verification.failed:
        if gate.problems:
            return "bad", "The run could not be held against its limits", f"{gate.problems[0]}. {summary}"
        if gate.exceeded:
            return "bad", "A limit on the peak was exceeded", f"{gate.exceeded[0].text}. {summary}"
    if verification.failed:
        return "bad", "The script could not be verified", f"{verification.trouble}. {summary}"
    if verification.drifting:
        subject = "Memory on the GPU" if verification.on_gpu else "Memory that would be on the GPU"
        return "bad", f"{subject} grows by {drift}", summary
    if not verification.sampled:
        return "warn", "No step was sampled: nothing was measured", summary
    told = verification.unpredicted or verification.unexplained or verification.wasted
    if verification.count("confirmed") or told:
        allowed = format_bytes(verification.max_drift)
        return "warn", f"No drift {verification.where} above {allowed} a step", summary
    return "good", f"No drift {verification.where} was measured", summary


def _figures(verification: Verification, rank: RankResult | None) -> str:
    if rank is None:
        return ""
    peak, of = peak_text(verification.run) or ("not measured", "")
    reserved = max(
        (r.most_reserved for r in verification.run.ranks if r.most_reserved is not None), default=None
    )
    middle = Evidence(rank).step_seconds()
    ours = [phase for phase in phases(rank) if phase.sampled]
    steps = [
        (f"{phase.name.capitalize()} steps", str(phase.sampled), f"sampled after {phase.warmup} of warm-up")
        for phase in ours
    ]
    judged = [
        *(steps or [("Steps sampled", "0", "")]),
        ("Drift", verification.said_drift, verification.where),
    ]
    spent = [
        ("Step time", f"{middle * 1000:.1f} ms" if middle is not None else "not measured", "median, watched")
    ]
    if _only_watched(verification):  # samples by time know nothing of steps
        judged, spent = [("Samples", str(len(rank.samples)), "by time, not by step")], []
    cells = [
        *judged,
        ("Peak", peak, of),
        ("Most reserved", format_bytes(reserved) if reserved is not None else "not measured", ""),
        *spent,
    ]
    inner = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}<small>{escape(note)}</small></dd></div>"
        for name, value, note in cells
    )
    return f'<dl class="figures">{inner}</dl>'


def _timelines(verification: Verification) -> str:
    ranks = verification.run.ranks[:_MOST_RANKS]
    several = len(verification.run.ranks) > 1
    drawn = []
    for rank in ranks:
        title = f"Memory by step, rank {rank.rank}" if several else "Memory by step"
        figure = timeline(rank, title)
        if figure:
            said = "" if _only_watched(verification) else _phases(rank)
            drawn.append((f"<h3>Rank {rank.rank}</h3>" if several else "") + said + figure)
    return "<section><h2>Memory by step</h2>\n" + "\n".join(drawn) + "</section>" if drawn else ""


def _phases(rank: RankResult) -> str:
    """What the terminal says above its plots: for each kind of step and window how many there were, and how memory moved."""
    items = []
    for phase in phases(rank):
        name, _, said = phase.headline.partition(": ")
        moved = "".join(
            f"<br>{SAID.get(one.figure, one.figure)} {escape(movement_text(one))}" for one in phase.figures
        )
        items.append(f"<dt>{escape(name.capitalize())}</dt><dd>{escape(said)}{moved}</dd>")
    for window in told_windows(rank):
        said, levels = seen_text(window)
        moved = f"<br>allocated {escape(levels)}" if levels else ""
        name = ticked(window.name[0].upper() + window.name[1:])
        items.append(f"<dt>{name}</dt><dd>{escape(said)}, {escape(site_text(window.site))}{moved}</dd>")
    return f'<dl class="facts">{"".join(items)}</dl>'


# -- verdicts ------------------------------------------------------------------------------------------------


def _verdicts(verification: Verification, sources: Sources) -> str:
    if _only_watched(verification):
        return ""
    if not verification.verdicts:
        return "<section><h2>Findings</h2><p>The linter found nothing in the script and its own modules.</p></section>"
    cards = "\n".join(_verdict(verdict, sources) for verdict in verification.verdicts)
    return f"<section><h2>Findings, judged</h2>\n{cards}</section>"


def _verdict(verdict: Verdict, sources: Sources) -> str:
    style = _CLASSES[verdict.headline]
    place = f"{shown_path(verdict.file)}:{verdict.line}"
    facts = [("Measured", ticked(verdict.text))]
    if verdict.doubt:
        facts.append(("Doubt", ticked(verdict.doubt)))
    if verdict.holder:
        facts.append(("Held by", ticked(verdict.holder)))
    if verdict.born and verdict.status == "confirmed":
        facts.append(("Born at", escape(", ".join(site_text(site) for site in verdict.born))))
    if verdict.hits is not None:
        facts.append(("Ran", escape("once" if verdict.hits == 1 else f"{verdict.hits} times")))
    last = max(verdict.line, min(verdict.end_line, verdict.line + 8))
    return (
        f'<article><header><span class="badge {style}">{escape(verdict.headline)}</span>'
        f'<span class="place mono">{escape(place)}</span>'
        f"<h3><code>{escape(verdict.code)}</code> {ticked(verdict.message)}</h3></header>"
        f"{_source(sources.lines(verdict.file), verdict.line, last)}{fact_list(facts)}</article>"
    )


def _source(lines: Sequence[str], first: int, last: int) -> str:
    """The lines first..last, marked, with some around them."""
    if not 1 <= first <= len(lines):
        return ""
    begin, end = max(1, first - _CONTEXT), min(len(lines), last + _CONTEXT)
    width = len(str(end))
    rows = []
    for number in range(begin, end + 1):
        marked = ' class="hit"' if first <= number <= last else ""
        code = escape(lines[number - 1][:400]) or " "
        rows.append(f'<span{marked}><span class="n">{number:>{width}}</span>{code}</span>')
    return f'<pre class="source"><code>{"".join(rows)}</code></pre>'


def _unpredicted(verification: Verification, sources: Sources) -> str:
    if not verification.unpredicted:
        return ""
    cards = "\n".join(
        _surprise(found, verification.where, sources) for found in verification.unpredicted[:50]
    )
    return f"<section><h2>Growth that no finding predicted</h2>\n{cards}</section>"


def _surprise(found: Unpredicted, where: str, sources: Sources) -> str:
    style = "bad" if found.device > 0 else "warn"
    place = f"{shown_path(found.file)}:{found.line}" if found.file and found.line else ""
    facts = [("Held by", ticked(found.text))]
    if found.born:
        facts.append(("Born at", escape(", ".join(site_text(site) for site in found.born))))
    return (
        f'<article><header><span class="badge {style}">unpredicted</span>'
        f'<span class="place mono">{escape(place)}</span><h3>{ticked(growth_text(found, where))}</h3></header>'
        f"{_source(sources.lines(found.file) if found.file else [], found.line, found.line)}{fact_list(facts)}</article>"
    )


def _wasted(verification: Verification, sources: Sources) -> str:
    if not verification.wasted:
        return ""
    cards = "\n".join(_wasted_card(found, sources) for found in verification.wasted[:50])
    return f"<section><h2>Forwards that no backward goes through</h2>\n{cards}</section>"


def _wasted_card(found: Wasted, sources: Sources) -> str:
    place = f"{shown_path(found.file)}:{found.line}"
    return (
        f'<article><header><span class="badge warn">found by running</span>'
        f'<span class="place mono">{escape(place)}</span><h3>{ticked(wasted_title(found))}</h3></header>'
        f"{_source(sources.lines(found.file), found.line, found.line)}"
        f"{fact_list([('Measured', ticked(found.text))])}</article>"
    )


def _accounted(verification: Verification) -> str:
    """The growth that is no drift, and the growth of which nobody knows."""
    listed = [("unexplained", "warn", one.text, one.ranks) for one in verification.unexplained]
    listed += [
        (one.label, "good" if one.label == "harmless" else "warn", one.text, one.ranks)
        for one in verification.harmless[:_MOST_ROWS]
    ]
    if not listed:
        return ""
    rows = [
        [f'<span class="badge {style}">{name}</span>', ticked(text + ranks_text(ranks))]
        for name, style, text, ranks in listed
    ]
    return f"<section><h2>Growth that is not counted as drift</h2>{table(('', 'What grows, and why'), rows)}</section>"


# -- tables --------------------------------------------------------------------------------------------------


def _holders(verification: Verification) -> str:
    rows = [
        [
            ticked(holder.text),
            escape(holder.place),
            format_bytes(holder.bytes),
            str(holder.nodes or ""),
            "yes" if holder.through_graph else "",
            f"at most {holder.bound}" if holder.bound is not None else "",
        ]
        for rank in verification.run.ranks
        for holder in rank.holders
    ][:_MOST_ROWS]
    if not rows:
        return ""
    head = ("Holder", "Where", "Kept", "Autograd nodes", "Through the graph", "Limit")
    return f"<section><h2>Who holds memory of earlier steps</h2>{table(head, rows, (2, 3))}</section>"


def _remarks(verification: Verification) -> str:
    said = [f"<p>{escape(t.reason)}. {escape(t.advice)}.</p>" for t in verification.fragmentation]
    said += [f'<p class="soft">{ticked(note)}</p>' for note in notes(verification.run)]
    end = verification.run.end
    if end.traceback and verification.failed:
        said.append(f'<pre class="trace">{escape(end.traceback)}</pre>')
    return "<section><h2>Remarks</h2>" + "\n".join(said) + "</section>" if said else ""


def _environment(verification: Verification) -> str:
    facts = [("Command", f"<code>{escape(shlex.join(verification.run.command))}</code>")]
    facts.append(("Ended", escape(verification.run.end.message)))
    if verification.run.ranks:
        environment = verification.run.ranks[0].environment
        names = {
            "python": "Python",
            "torch": "torch",
            "device_name": "Device",
            "cuda": "CUDA",
            "driver": "Driver",
            "probe": "Probe",
            "allocator": "Allocator settings",
            "platform": "Platform",
            "date": "Date",
        }
        for field, name in names.items():
            value = getattr(environment, field)
            if value:
                facts.append((name, escape(str(value))))
    return f"<section><h2>Environment</h2>{fact_list(facts)}</section>"


def _samples(verification: Verification) -> str:
    parts = []
    watched = _only_watched(verification)
    what, time = ("Sample", "After") if watched else ("Step", "Time")
    for rank in verification.run.ranks[:_MOST_RANKS]:
        rows = [_sample_row(sample, watched) for sample in rank.samples[:_MOST_ROWS]]
        head = (what, "Kind", "Allocated", "Peak", "Reserved", "Host (RSS)", time)
        name = f"Every {what.lower()}"
        name += f" of rank {rank.rank}" if len(verification.run.ranks) > 1 else ""
        if rows:
            parts.append(
                f"<details><summary>{name}</summary>{table(head, rows, (0, 2, 3, 4, 5, 6))}</details>"
            )
    return "<section>" + "\n".join(parts) + "</section>" if parts else ""


def _sample_row(sample: Sample, watched: bool) -> list[str]:
    sizes = [sample.allocated, sample.peak, sample.reserved, sample.rss]
    kind = sample.kind if sample.sampled else f"{sample.kind}, warm-up"
    shown = [format_bytes(size) if size is not None else "" for size in sizes]
    if watched:
        return [str(sample.step), "by time", *shown, f"{sample.seconds:.1f} s"]
    return [str(sample.step), kind, *shown, f"{sample.duration * 1000:.1f} ms"]
