"""A verification as a document: how memory moved, each verdict beside its source line, what nobody predicted, limits, the run."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from gpulint.config import shown_path
from gpulint.reports import document as doc
from gpulint.reports import plural
from gpulint.reports.layout import Excerpt
from gpulint.reports.verify.chart import chart
from gpulint.reports.verify.gate import TITLE, gate_blocks, gate_headline
from gpulint.reports.verify.words import (
    SAID,
    context_text,
    movement_text,
    notes,
    peak_text,
    seen_text,
    tied_text,
    told_windows,
)
from gpulint.runtime.parent.evidence import Evidence
from gpulint.runtime.parent.growth import phases
from gpulint.runtime.parent.judging import nodes_text
from gpulint.runtime.parent.standing import host_text, idle_text
from gpulint.runtime.parent.verdict import UNSETTLED, Unpredicted, Verdict, Verification, Wasted
from gpulint.runtime.record.result import RankResult, Site
from gpulint.source.sources import Sources
from gpulint.units import format_bytes
from gpulint.version import __version__

SCHEMA: Final = 1
_STYLES: Final = {
    "confirmed": "bad",
    "confirmed, negligible on the GPU": "warn",
    "refuted": "good",
    "inconclusive": "info",
    "not reached": "mute",
}
_STATUSES: Final = ("confirmed", "refuted", "inconclusive", "not reached")
_ENVIRONMENT: Final = {
    "python": "Python",
    "torch": "torch",
    "device_name": "device",
    "cuda": "CUDA",
    "driver": "driver",
    "probe": "probe",
    "allocator": "allocator settings",
    "platform": "platform",
    "date": "date",
}
_MOST: Final = 10  # places of one kind on a terminal
_MOST_RANKS: Final = 8
_MOST_HELD: Final = 8
_MOST_ROWS: Final = 200


def as_json(verification: Verification) -> dict[str, Any]:
    """Verdicts, what was not predicted, and the whole run as it was measured. `schema` changes when a field changes its meaning."""
    data = verification.to_json()
    run = data.pop("run")
    return {
        "schema": SCHEMA,
        "version": __version__,
        "exit_code": verification.exit_code,
        "drift": verification.drift,
        "sampled_steps": verification.sampled,
        "idle": [one.to_json() for one in verification.idle],
        "tied": [one.to_json() for one in verification.tied],
        "host_growth": [one.to_json() for one in verification.host_growth],
        "phases": [phase.to_json() for phase in verification.phases],
        **data,
        "run": run,
    }


def document(verification: Verification) -> doc.Document:
    """The whole report."""
    sources = Sources()
    ranks = verification.run.ranks
    told = _telling(ranks)
    style, headline = _conclusion(verification)
    watched, several = _only_watched(verification), len(ranks) > 1
    judged: Iterable[doc.Block] = (_verdict(one, sources) for one in verification.verdicts)
    if not verification.verdicts and not watched:
        judged = [doc.Say("The linter found nothing in the script and its own modules.", "soft")]
    unpredicted, wasted = _unpredicted(verification, sources), _wasted(verification, sources)
    return doc.Document(
        f"gpulint {'run' if watched else 'verify'}: {verification.target}",
        verification.target,
        _lead(verification, told) if told is not None else "",
        style,
        headline,
        (
            *([_memory(told, several, False)] if told is not None else []),
            *(_memory(rank, True, True) for rank in ranks[:_MOST_RANKS] if rank is not told),
            doc.section("Findings, judged", judged),
            doc.section("Growth that no finding predicted", unpredicted, most=_MOST),
            doc.section("Forwards that no backward goes through", wasted, most=_MOST),
            doc.section("Growth that is not counted as drift", _accounted(verification), most=_MOST),
            doc.section("Held, and not used", _standing(verification, sources)),
            doc.section("Remarks", _remarks(verification)),
            doc.section(TITLE, gate_blocks(verification, sources)),
            doc.section("Who holds memory of earlier steps", _holders(verification), folded=True),
            doc.section("Environment", _environment(verification), folded=True),
            *(_samples(rank, watched, several) for rank in ranks[:_MOST_RANKS]),
        ),
        tuple(_figures(verification, told)) if told is not None else (),
        _closing(verification),
    )


def _telling(ranks: Sequence[RankResult]) -> RankResult | None:
    """The rank whose memory grew most, the first of equals."""

    def growth(rank: RankResult) -> int:
        kind = Evidence(rank).main_kind()
        sampled = (s.allocated for s in rank.samples if s.kind == kind and s.sampled)
        amounts = [size for size in sampled if size is not None]
        return amounts[-1] - amounts[0] if amounts else 0

    return max(ranks, key=growth) if ranks else None


def _lead(verification: Verification, rank: RankResult) -> str:
    environment = rank.environment
    if not rank.samples and environment.torch is None:
        return ""  # nothing ran of which anything could be said
    where = environment.device_name or environment.device
    if environment.device == "cpu":
        where = f"the CPU ({where})" if environment.device_name else "the CPU"
    number = len(verification.run.ranks)
    torch = f"torch {environment.torch}" if environment.torch else ""
    shown = f"{number} ranks, rank {rank.rank} shown" if number > 1 else ""
    return ", ".join(filter(None, (f"on {where}", torch, shown, f"{verification.run.seconds:.1f} s")))


def _only_watched(verification: Verification) -> bool:
    """Whether this is the timeline of `gpulint run`: samples by time, nothing judged."""
    ranks = verification.run.ranks
    return bool(ranks) and all(rank.boundary == "none" for rank in ranks) and not verification.verdicts


def _conclusion(verification: Verification) -> tuple[str, str]:
    """How the outcome is styled, and the outcome in a sentence."""
    if _only_watched(verification) and not verification.failed:
        return "good", "The program was watched while it ran; nothing was judged"
    gate = verification.gate
    if verification.failed:
        return "bad", f"The script could not be verified: {verification.trouble}"
    if gate is not None and gate.problems:
        return "bad", f"The run could not be held against its limits: {gate.problems[0]}"
    if gate is not None and gate.exceeded:
        return "bad", f"A limit on the peak was exceeded: {gate.exceeded[0].text}"
    if verification.drifting:
        subject = "Memory on the GPU" if verification.on_gpu else "Memory that would be on the GPU"
        return "bad", f"{subject} grows by {verification.said_drift}"
    if not verification.sampled:
        return "warn", "No step was sampled: nothing was measured"
    if verification.exit_code == UNSETTLED:
        return (
            "warn",
            f"Growth {verification.where} is not settled: {format_bytes(round(verification.unsettled))} a step so far",
        )
    found = (verification.unpredicted, verification.unexplained, verification.wasted)
    if verification.count("confirmed") or any(found):
        return "warn", f"No drift {verification.where} above {format_bytes(verification.max_drift)} a step"
    return "good", f"No drift {verification.where} was measured"


def _closing(verification: Verification) -> str:
    """``3 findings: 2 confirmed, 1 refuted; 1 unpredicted. Drift on the GPU: 4.61 MiB a step.``"""
    counts = [f"{number} {status}" for status in _STATUSES if (number := verification.count(status))]  # type: ignore[arg-type]
    idle = sum(one.what.bytes for one in verification.idle)
    said = [
        plural(len(verification.verdicts), "finding") + (f": {', '.join(counts)}" if counts else ""),
        f"{len(verification.unpredicted)} unpredicted" if verification.unpredicted else "",
        f"{plural(len(verification.wasted), 'forward')} for nothing" if verification.wasted else "",
        f"{format_bytes(idle)} untouched" if idle else "",
    ]
    line = "; ".join(filter(None, said))
    drift = f" Drift {verification.where}: {verification.said_drift}"
    if verification.max_drift:
        drift += f" ({format_bytes(verification.max_drift)} allowed)"
    if verification.exit_code == UNSETTLED:
        drift += f"; not settled: {format_bytes(round(verification.unsettled))} a step that grew over all that was watched (--reach goes on for longer)"
    if verification.failed:
        until = f"{drift} until then." if verification.sampled else ""
        return f"{line}. Not verified: {verification.trouble}.{until}"
    if not verification.sampled:
        return f"{line}. No step was sampled."
    headline = gate_headline(verification)
    return f"{line}.{drift}.{f' {headline}.' if headline else ''}"


def _figures(verification: Verification, rank: RankResult) -> Iterator[tuple[str, doc.Value, str]]:
    watched = _only_watched(verification)
    if watched:
        yield "samples", str(len(rank.samples)), "by time, not by step"
    else:
        ours = [phase for phase in phases(rank) if phase.sampled]
        for phase in ours:
            yield f"{phase.name} steps", str(phase.sampled), f"sampled after {phase.warmup} of warm-up"
        if not ours:
            yield "steps sampled", "0", ""
        yield "drift", verification.said_drift, verification.where
    unknown = "not measured"
    yield "peak", *(peak_text(verification.run) or (unknown, ""))
    reserved = [one.most_reserved for one in verification.run.ranks if one.most_reserved is not None]
    yield "most reserved", max(reserved, default=unknown), ""
    if not watched:
        middle = Evidence(rank).step_seconds()
        yield "step time", unknown if middle is None else f"{middle * 1000:.1f} ms", "median, watched"


# -- memory by step ------------------------------------------------------------------------------------------


def _memory(rank: RankResult, several: bool, folded: bool) -> doc.Section:
    """For each kind of step and window how many there were and how memory moved; and the chart."""
    title = f"Memory by step, rank {rank.rank}" if several else "Memory by step"
    moved = doc.Facts(tuple(_moved(rank))) if rank.boundary != "none" else None
    return doc.section(title, moved, chart(rank, title), folded=folded)


def _moved(rank: RankResult) -> Iterator[tuple[str, ...]]:
    for phase in phases(rank):
        name, _, said = phase.headline.partition(": ")
        figures = (f"{SAID.get(one.figure, one.figure):<10} {movement_text(one)}" for one in phase.figures)
        yield name, said, *figures
    for window in told_windows(rank):
        said, levels = seen_text(window)
        told = f"{said}, {site_text(window.site)}"
        yield window.name, told, *([f"{'allocated':<10} {levels}"] if levels else [])


def site_text(site: Site) -> str:
    """`model.py:12 in forward`."""
    if not site.file:
        return "no Python line (backward, or a library's thread)"
    return f"{os.path.basename(site.file)}:{site.line} in {site.function}"


# -- what was found ------------------------------------------------------------------------------------------


def _verdict(verdict: Verdict, sources: Sources) -> doc.Card:
    said = {
        "measured": verdict.text,
        "doubt": verdict.doubt,
        "holder": verdict.holder,
        "born": _born(verdict.born) if verdict.status == "confirmed" else "",
        "ran": "" if verdict.hits is None else "once" if verdict.hits == 1 else f"{verdict.hits} times",
    }
    span = verdict.line, verdict.column, verdict.end_line, verdict.end_column
    return doc.Card(
        verdict.headline,
        _STYLES[verdict.headline],
        f"{shown_path(verdict.file)}:{verdict.line}:{verdict.column}",
        verdict.message,
        tuple((name, text) for name, text in said.items() if text),
        verdict.code,
        Excerpt(sources.lines(verdict.file), *span),
    )


def _born(sites: Sequence[Site]) -> str:
    return ", ".join(map(site_text, sites))


def _unpredicted(verification: Verification, sources: Sources) -> Iterator[doc.Block]:
    for found in verification.unpredicted[:_MOST_ROWS]:
        facts = ("holder", found.text), ("born", _born(found.born))
        style, text = "bad" if found.device > 0 else "warn", growth_text(found, verification.where)
        yield doc.card_at(sources, found.file, found.line, "unpredicted", style, text, *facts)


def _wasted(verification: Verification, sources: Sources) -> Iterator[doc.Block]:
    """Forwards that build graphs for no backward, as running alone has found them."""
    for found in verification.wasted[:_MOST_ROWS]:
        where, text = (sources, found.file, found.line), wasted_title(found)
        yield doc.card_at(*where, "found by running", "warn", text, ("measured", found.text))


def wasted_title(found: Wasted) -> str:
    """What is wrong, in words."""
    evaluation = ", in eval mode" if found.mode == "eval" else ""
    said = f"`{found.module}` runs with grad enabled{evaluation}, but no backward goes through it"
    return said + ranks_text(found.ranks)


def growth_text(found: Unpredicted, where: str) -> str:
    """What grows, in words; `where` is "on the GPU", or what stands for it on a machine without one."""
    parts = []
    if found.device > 0 or not (found.nodes >= 1 or found.host >= 1):
        parts.append(f"{found.rate} {where}")
    if found.nodes >= 1:
        parts.append(f"{nodes_text(found.nodes)} a step on the host")
    if found.host >= 1:
        parts.append(f"{format_bytes(round(found.host))} a step of host memory")
    return "growth that no finding explains: " + ", ".join(parts) + ranks_text(found.ranks)


def _accounted(verification: Verification) -> Iterator[doc.Block]:
    """The growth that is no drift, and the growth of which nobody knows."""
    for growth in verification.unexplained:
        yield doc.Say(growth.text + ranks_text(growth.ranks), "warn", "unexplained")
    for one in verification.harmless[:_MOST_ROWS]:
        style = "good" if one.label == "harmless" else "warn"
        yield doc.Say(one.text + ranks_text(one.ranks), style, one.label)


# -- held ----------------------------------------------------------------------------------------------------


def _standing(verification: Verification, sources: Sources) -> Iterator[doc.Block]:
    """What is held at a line, each in a card, and what else there is to say."""
    for one in verification.idle[:_MOST_HELD]:
        facts = ("holder", one.what.text + ranks_text(one.ranks)), ("born", ", ".join(one.what.born))
        where = sources, one.what.file, one.what.line
        yield doc.card_at(*where, "untouched", "warn", idle_text(one), *facts)
    for tie in verification.tied[:_MOST_HELD]:
        cut, where = tie.what.cut, (sources, tie.what.file, tie.what.line)
        facts = ("cut", cut and cut + ranks_text(tie.ranks)), ("born", ", ".join(tie.what.born))
        yield doc.card_at(*where, "in cycles", "warn", tied_text(tie), *facts)
    if verification.unjudged:
        yield doc.Say(verification.unjudged, "bad", "not judged")
    for growth in verification.host_growth:
        yield doc.Say(host_text(growth) + ranks_text(growth.ranks), "warn", "on the host")
    for context in verification.run.contexts:
        yield doc.Say(context_text(context), "warn", "worker on the GPU")
    limited = verification.gate is not None and verification.gate.limits.untouched is not None
    doubts = dict.fromkeys(rank.besides.doubt for rank in verification.run.ranks)
    for doubt in filter(None, doubts) if verification.idle or limited else ():
        yield doc.Say(f"Of memory that nothing touches not all is known: {doubt}.", "mute", "note")


def ranks_text(ranks: tuple[int, ...]) -> str:
    return f" (rank {', '.join(map(str, ranks))})" if ranks else ""


# -- the run -------------------------------------------------------------------------------------------------


def _holders(verification: Verification) -> doc.Table:
    head = ("Holder", "Where", "Kept", "Autograd nodes", "Through the graph", "Limit")
    rows = []
    for one in [held for rank in verification.run.ranks for held in rank.holders][:_MOST_ROWS]:
        bound = "" if one.bound is None else f"at most {one.bound}"
        through = "yes" if one.through_graph else ""
        rows.append((one.text, one.place, one.bytes, str(one.nodes or ""), through, bound))
    return doc.Table(head, rows)


def _remarks(verification: Verification) -> Iterator[doc.Say]:
    for trend in verification.fragmentation:
        yield doc.Say(f"{trend.reason}. {trend.advice}.", "warn", "fragmentation")
    for said in notes(verification.run):
        yield doc.Say(said, "mute", "note")


def _environment(verification: Verification) -> Iterator[doc.Block]:
    run = verification.run
    facts = [("command", f"`{shlex.join(run.command)}`"), ("ended", run.end.message)]
    for rank in run.ranks[:1]:
        listed = ((name, getattr(rank.environment, field)) for field, name in _ENVIRONMENT.items())
        facts += [(name, str(value)) for name, value in listed if value]
    yield doc.Facts(tuple(facts))
    if run.end.traceback and verification.failed:
        yield doc.Trace(run.end.traceback)


def _samples(rank: RankResult, watched: bool, several: bool) -> doc.Section:
    what, time = ("Sample", "After") if watched else ("Step", "Time")
    name = f"Every {what.lower()}{f' of rank {rank.rank}' if several else ''}"
    head = (what, "Kind", "Allocated", "Peak", "Reserved", "Host (RSS)", time)
    rows = []
    for one in rank.samples[:_MOST_ROWS]:
        kind = "by time" if watched else one.kind if one.sampled else f"{one.kind}, warm-up"
        sizes = ("" if size is None else size for size in (one.allocated, one.peak, one.reserved, one.rss))
        took = f"{one.seconds:.1f} s" if watched else f"{one.duration * 1000:.1f} ms"
        rows.append((str(one.step), kind, *sizes, took))
    return doc.section(name, doc.Table(head, rows), folded=True)
