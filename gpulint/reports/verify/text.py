"""The verifier's summary for people: what ran, how memory moved, and each verdict beside its source line.

::

    train.py: on NVIDIA H200, torch 2.11.0, 9.2 s
      training: 20 steps sampled after 3 of warm-up
        allocated  1.20 GiB → 1.29 GiB, +4.61 MiB a step

    train.py:49:9: confirmed GPU101 `total` adds up `loss` …
       |
    49 |         total += loss
       |         ^^^^^^^^^^^^^
       |
       = measured: …
       = holder:   …
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TextIO

from gpulint.config import shown_path
from gpulint.reports import plural
from gpulint.reports.document import Excerpt
from gpulint.reports.excerpts import excerpt_lines
from gpulint.reports.layout import STYLES, Line, paint, printable, quoted
from gpulint.reports.verify.gate import gate_headline, gate_lines
from gpulint.reports.verify.notes import note, remark, site_text, source_line
from gpulint.reports.verify.plot import memory_plot
from gpulint.reports.verify.standing import standing_lines, standing_words
from gpulint.runtime.parent.evidence import Evidence
from gpulint.runtime.parent.growth import (
    SAID,
    Phase,
    movement_text,
    notes,
    parts_text,
    peak_text,
    phases,
    seen_text,
    told_windows,
)
from gpulint.runtime.parent.judging import nodes_text
from gpulint.runtime.parent.verdict import Unpredicted, Verdict, Verification, Wasted
from gpulint.runtime.record.result import RankResult, Sample, WindowFigures
from gpulint.source.sources import Sources
from gpulint.units import format_bytes

STYLES.setdefault("allocated", "cyan")
STYLES.setdefault("reserved", "magenta")

_STATUS = {
    "confirmed": "error",
    "confirmed, negligible on the GPU": "warning",
    "refuted": "good",
    "inconclusive": "info",
    "not reached": "faint",
}
_MOST_UNPREDICTED = 10
_MOST_WASTED = 10
_MOST_HARMLESS = 8
_MOST_PARTS = 25  # of a step, so that each has its own columns


def write(verification: Verification, out: TextIO, colour: bool = False, columns: int | None = None) -> None:
    """Write the summary. `columns` is the terminal's width, None in a pipe, where nothing is wrapped."""
    encoding = (getattr(out, "encoding", None) or "utf-8").lower().replace("-", "")
    lines = summary_lines(verification, columns, dots=encoding.startswith("utf"))
    paint(lines, out, colour)


def summary_lines(verification: Verification, columns: int | None = None, dots: bool = True) -> list[Line]:
    """Everything, as styled lines. `dots` allows characters beyond ASCII in the plot."""
    sources = Sources()
    lines: list[Line] = []
    for rank in _telling(verification.run.ranks):
        lines += _opening(verification, rank)
        for phase in phases(rank):
            lines += _phase_lines(phase, rank, columns, dots)
        for window in told_windows(rank):
            lines += _window_lines(window, "→" if dots else "->")
    if lines and not lines[-1]:
        lines.pop()
    for verdict in verification.verdicts:
        lines += [[], *verdict_lines(verdict, sources, columns)]
    lines += _unpredicted(verification, sources, columns)
    lines += _wasted(verification, sources, columns)
    for trend in verification.fragmentation:
        lines += [[], *remark("fragmentation", "warning", trend.reason, columns)]
        lines += note("advice", trend.advice, columns)
    lines += _accounted(verification, columns)
    lines += standing_lines(verification, sources, columns)
    told = notes(verification.run)
    lines += [[]] if told else []
    for said in told:
        lines += remark("note", "faint", said, columns, "faint")
    lines += gate_lines(verification, sources, columns)
    return [*lines, *([[]] if lines else []), closing(verification)]


# -- the run -------------------------------------------------------------------------------------------------


def _opening(verification: Verification, rank: RankResult) -> list[Line]:
    environment = rank.environment
    if not rank.samples and environment.torch is None:
        return []  # nothing ran of which anything could be said
    where = environment.device_name or environment.device
    if environment.device == "cpu":
        where = f"the CPU ({where})" if environment.device_name else "the CPU"
    number = len(verification.run.ranks)
    parts = [
        f"on {where}",
        f"torch {environment.torch}" if environment.torch else "",
        f"{number} ranks, rank {rank.rank} shown" if number > 1 else "",
        f"{verification.run.seconds:.1f} s",
    ]
    said = ": " + ", ".join(part for part in parts if part)
    lines: list[Line] = [[(printable(verification.target), "path"), (said, "")]]
    peak = peak_text(verification.run)
    if peak is not None:
        lines.append([("  ", ""), ("peak", "strong"), (f": {peak[0]} ({peak[1]})", "")])
    return lines


def _telling(ranks: Sequence[RankResult]) -> list[RankResult]:
    """The rank whose memory grew most, the first of equals; none where no rank reported."""

    def growth(rank: RankResult) -> int:
        kind = Evidence(rank).main_kind()
        amounts = [
            s.allocated for s in rank.samples if s.kind == kind and s.sampled and s.allocated is not None
        ]
        return amounts[-1] - amounts[0] if amounts else 0

    return [max(ranks, key=growth)] if ranks else []


def _phase_lines(phase: Phase, rank: RankResult, columns: int | None, dots: bool) -> list[Line]:
    """A header, a line for each figure, and a plot where there is something to be seen in one."""
    name, colon, said = phase.headline.partition(":")
    lines: list[Line] = [[("  ", ""), (name, "strong"), (colon + said, "")]]
    for moved in phase.figures:
        shown = SAID.get(moved.figure, moved.figure)
        style = moved.figure if moved.figure in STYLES else ""
        text = f" {movement_text(moved, '→' if dots else '->')}"
        lines.append([("    ", ""), (f"{shown:<10}", style), (text, "")])
    samples = [sample for sample in rank.samples if sample.kind == phase.kind]
    allocated = [s.allocated for s in samples if s.allocated is not None]
    reserved = [s.reserved for s in samples if s.reserved is not None]
    moves = len(set(allocated)) > 1 or len(set(reserved)) > 1
    plot = memory_plot(allocated, reserved or None, min(columns or 72, 80)) if dots and moves else []
    if plot:
        last = f"{phase.name} step {samples[-1].step}"
        lines += [[], *plot, _axis(plot, f"{samples[0].step}", last), []]
    return [*lines, *(_parts_lines(samples, phase, columns) if dots else [])]


def _parts_lines(samples: Sequence[Sample], phase: Phase, columns: int | None) -> list[Line]:
    """Memory through the step with the highest peak, of those in which several backwards are."""
    parted = [sample for sample in samples if sample.sampled and sample.parts]
    if not parted:
        return []
    step = max(parted, key=lambda sample: (sample.peak or 0, sample.step))
    shown = step.parts[-_MOST_PARTS:]
    plot = memory_plot(
        [size for part in shown for size in (part.peak, part.allocated)], None, min(columns or 72, 80)
    )
    of = f"the last {len(shown) - 1} of " if len(shown) < len(step.parts) else ""
    said = f"{phase.name} step {step.step}, through {of}{parts_text(step.parts)}"
    return [[], *plot, _axis(plot, said), []]


def _window_lines(window: WindowFigures, arrow: str) -> list[Line]:
    """How often a window has ended, and how memory stood then."""
    said, levels = seen_text(window, arrow)
    lines: list[Line] = [
        [("  ", ""), (window.name, "strong"), (f": {said}, {site_text(window.site)}", "")],
    ]
    if levels:
        lines.append([("    ", ""), (f"{'allocated':<10}", "allocated"), (f" {levels}", "")])
    return lines


def _axis(plot: Sequence[Line], first: str, last: str = "") -> Line:
    """What stands below the ends of a plot."""
    margin = len(plot[0][0][0])
    width = sum(len(text) for text, _ in plot[0]) - margin - 1
    gap = " " * max(1, width - len(first) - len(last)) if last else ""
    return [(" " * (margin + 1) + first + gap + last, "faint")]


# -- verdicts ------------------------------------------------------------------------------------------------


def verdict_lines(verdict: Verdict, sources: Sources, columns: int | None = None) -> list[Line]:
    """One verdict: place, status, source line with the span underlined, and what was measured."""
    place = f":{verdict.line}:{verdict.column}: "
    lines: list[Line] = [
        [
            (printable(shown_path(verdict.file)), "path"),
            (place, "faint"),
            (verdict.headline, _STATUS[verdict.headline]),
            (f" {verdict.code} ", "code"),
            *quoted(printable(verdict.message)),
        ]
    ]
    margin = len(str(max(verdict.line, verdict.end_line)))
    gutter: Line = [(" " * (margin + 1) + "|", "gutter")]
    span = Excerpt(
        sources.lines(verdict.file), verdict.line, verdict.column, verdict.end_line, verdict.end_column
    )
    shown = excerpt_lines(span, margin, columns, "info")
    if shown:
        lines += [gutter, *shown, gutter]
    lines += note("measured", verdict.text, columns, margin)
    if verdict.doubt:
        lines += note("doubt", verdict.doubt, columns, margin)
    if verdict.holder:
        lines += note("holder", verdict.holder, columns, margin)
    if verdict.born and verdict.status == "confirmed":
        lines += note("born", ", ".join(site_text(site) for site in verdict.born[:3]), columns, margin)
    return lines


def _accounted(verification: Verification, columns: int | None) -> Iterator[Line]:
    """The growth that is no drift, a line for each, and the growth of which nobody knows."""
    if verification.harmless or verification.unexplained:
        yield []
    for growth in verification.unexplained:
        yield from remark("unexplained", "warning", growth.text + ranks_text(growth.ranks), columns)
    for harmless in verification.harmless[:_MOST_HARMLESS]:
        style = "good" if harmless.label == "harmless" else "warning"
        yield from remark(harmless.label, style, harmless.text + ranks_text(harmless.ranks), columns)
    left = len(verification.harmless) - _MOST_HARMLESS
    if left > 0:
        yield [
            (f"… and {left} more places of growth that is none (--output-format json has them all)", "faint")
        ]


def ranks_text(ranks: Sequence[int]) -> str:
    return f" (rank {', '.join(map(str, ranks))})" if ranks else ""


def _unpredicted(verification: Verification, sources: Sources, columns: int | None) -> Iterator[Line]:
    for found in verification.unpredicted[:_MOST_UNPREDICTED]:
        yield []
        yield from _unpredicted_lines(found, verification.where, sources, columns)
    left = len(verification.unpredicted) - _MOST_UNPREDICTED
    if left > 0:
        yield [(f"… and {left} more places of unpredicted growth", "faint")]


def _unpredicted_lines(found: Unpredicted, on_gpu: str, sources: Sources, columns: int | None) -> list[Line]:
    where = f"{shown_path(found.file)}:{found.line}: " if found.file and found.line else ""
    style = "error" if found.device > 0 else "warning"
    lines: list[Line] = [
        [(printable(where), "path"), ("unpredicted ", style), *quoted(growth_text(found, on_gpu))]
    ]
    lines += source_line(found.file, found.line, sources)
    margin = len(str(found.line))
    lines += note("holder", found.text, columns, margin)
    if found.born:
        lines += note("born", ", ".join(site_text(site) for site in found.born[:3]), columns, margin)
    return lines


def _wasted(verification: Verification, sources: Sources, columns: int | None) -> Iterator[Line]:
    """Forwards that build graphs for no backward, as running alone has found them."""
    for found in verification.wasted[:_MOST_WASTED]:
        where = f"{printable(shown_path(found.file))}:{found.line}: "
        yield []
        yield [(where, "path"), ("found by running ", "warning"), *quoted(wasted_title(found))]
        yield from source_line(found.file, found.line, sources)
        yield from note("measured", found.text, columns, len(str(found.line)))
    left = len(verification.wasted) - _MOST_WASTED
    if left > 0:
        yield [(f"… and {left} more forwards that no backward goes through", "faint")]


def wasted_title(found: Wasted) -> str:
    """What is wrong, in words."""
    ranks = f" (rank {', '.join(map(str, found.ranks))})" if found.ranks else ""
    evaluation = ", in eval mode" if found.mode == "eval" else ""
    return f"`{found.module}` runs with grad enabled{evaluation}, but no backward goes through it{ranks}"


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


def closing(verification: Verification) -> Line:
    """``3 findings: 2 confirmed, 1 refuted. 1 unpredicted. Drift: 4.61 MiB a step.``"""
    counts = []
    for status in ("confirmed", "refuted", "inconclusive", "not reached"):
        number = verification.count(status)
        if number:
            counts.append(f"{number} {status}")
    line: Line = [(plural(len(verification.verdicts), "finding"), "strong")]
    line.append((": " + ", ".join(counts) if counts else "", ""))
    if verification.unpredicted:
        line.append((f"; {len(verification.unpredicted)} unpredicted", "warning"))
    if verification.wasted:
        line.append((f"; {plural(len(verification.wasted), 'forward')} for nothing", "warning"))
    for word in standing_words(verification):
        line.append((f"; {word}", "warning"))
    text = f"Drift {verification.where}: {verification.said_drift}"
    if verification.max_drift:
        text += f" ({format_bytes(verification.max_drift)} allowed)"
    sampled = verification.sampled > 0
    if verification.failed:
        line.append((f". Not verified: {printable(verification.trouble)}", "warning"))
        return [*line, (f". {text} until then." if sampled else ".", "")]
    if not sampled:
        return [*line, (". No step was sampled.", "warning")]
    line = [*line, (". ", ""), (text, "error" if verification.drifting else "good"), (".", "")]
    headline = gate_headline(verification)
    return [*line, (" ", ""), headline, (".", "")] if headline is not None else line
