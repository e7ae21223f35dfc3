"""Finds, in what one process measured, what belongs to a finding: by holder, by line, by birth site."""

from __future__ import annotations

import functools
import os
import statistics
from collections.abc import Callable, Container, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from gpulint.findings import Finding
from gpulint.runtime.parent import source
from gpulint.runtime.record import result
from gpulint.runtime.record.records import Record

CLEARING = ("gc.collect", "torch.cuda.empty_cache")
DEPTH = 3  # calls from a finding's line to the function that fills a holder
BORN = 0.25  # of what a holder keeps
FEWEST = 3  # blocks below which a holder may just have what the present step uses
FEWEST_OF_WINDOWS = 2
Spot = tuple[str, int]  # real path, line


@functools.lru_cache(maxsize=4096)
def real(path: str) -> str:
    """One name for each file."""
    return os.path.realpath(path)


@dataclass(frozen=True, slots=True)
class Share(Record):
    """What a set of holders and birth sites grows by: bytes per step in each place, autograd nodes per
    step. Where all of it is regular in larger windows alone, `window` is their name and `each` what one leaves on the device."""

    device: float = 0.0
    host: float = 0.0
    nodes: float = 0.0
    window: str = ""
    each: float = 0.0

    def __bool__(self) -> bool:
        return self.device > 0 or self.host > 0 or self.nodes > 0

    @classmethod
    def of(cls, shares: Iterable[Share]) -> Share:
        """The sum."""
        some = [share for share in shares if share]
        windows = {share.window for share in some}
        device, host = sum(share.device for share in some), sum(share.host for share in some)
        nodes, each = sum(share.nodes for share in some), sum(share.each for share in some)
        if len(windows) == 1:
            return cls(device, host, nodes, windows.pop(), each)
        return cls(device, host, nodes)

    @classmethod
    def of_drift(cls, drift: result.Drift, part: float = 1.0) -> Share:
        """What a site grows by, or that part of it."""
        if drift.place == "host":
            return cls(host=drift.bytes_per_step * part)
        return cls(drift.bytes_per_step * part, window=drift.window, each=drift.per_window * part)


_Sited = TypeVar("_Sited", result.CallFigures, result.ForwardFigures)
_Ranked = TypeVar("_Ranked", bound=Any)  # a frozen record with `ranks`


def over_ranks(
    seen: Iterable[tuple[int, Hashable, _Ranked]], size: Callable[[_Ranked], Any], several: bool
) -> list[_Ranked]:
    """Each thing, `seen` by a rank, once: as the rank saw it that has most of it, with all ranks that saw it where there are `several`."""
    found: dict[Hashable, _Ranked] = {}
    for rank, key, one in seen:
        known = found.get(key)
        worst, ranks = (one, ()) if known is None else (max(known, one, key=size), known.ranks)
        found[key] = replace(worst, ranks=(*ranks, rank) if several else ())
    return list(found.values())


class Evidence:
    """One rank's measurements, indexed for questions about findings."""

    def __init__(self, rank: result.RankResult) -> None:
        self.rank = rank
        self.on_device = rank.environment.device == "cuda"
        self.where = "on the GPU" if self.on_device else "of what would be on the GPU"
        self._lines = {(real(one.file), one.line, one.column): one for one in rank.lines}

    # -- lines -----------------------------------------------------------------------------------------------

    def spots(self, finding: Finding) -> list[Spot]:
        """The lines a finding speaks of: its own, then the related ones."""
        file = real(finding.filename)
        last = finding.end_line - (finding.end_column == 1 and finding.end_line > finding.line)
        own = [(file, line) for line in range(finding.line, max(finding.line, last) + 1)]
        return own + [(real(other.filename), other.position.row) for other in finding.related]

    def line(self, file: str, line: int) -> result.LineFigures | None:
        """The figures of a whole line that was asked for."""
        return self._lines.get((real(file), line, 0))

    def at(self, finding: Finding) -> result.LineFigures | None:
        """The figures of the finding's own place."""
        exact = self._lines.get((real(finding.filename), finding.line, finding.column))
        return exact or self.line(finding.filename, finding.line)

    # -- steps -----------------------------------------------------------------------------------------------

    def steps_text(self) -> str:
        """`20 sampled steps`; where there are several kinds, `20 training and 12 evaluation steps`."""
        counts = result.count_steps(self.rank.samples, sampled=True)
        said = result.said_steps(counts)
        return said if sum(map(bool, counts.values())) > 1 else said.replace(" ", " sampled ")

    def main_kind(self) -> result.StepKind:
        """Train where it was sampled well, else the kind of which most steps were sampled."""
        kinds: tuple[result.StepKind, ...] = ("train", "explicit", "eval")
        return "train" if self.rank.steps("train") >= 5 else max(kinds, key=self.rank.steps)

    def step_seconds(self) -> float | None:
        """The median duration of a sampled step of the main kind."""
        kind = self.main_kind()
        durations = [s.duration for s in self.rank.samples if s.sampled and s.kind == kind]
        return statistics.median(durations) if durations else None

    def work_seconds(self) -> float | None:
        """`step_seconds` without what clearing up takes: one such call must not hide another."""
        step = self.step_seconds()
        if step is None:
            return None
        clearing = sum(call.seconds for call in self.rank.calls if call.what in CLEARING)
        return max(step - clearing / max(1, self.rank.steps()), 0.1 * step)

    def heap_slope(self, kind: result.StepKind | None = None) -> float | None:
        """Host bytes per step that malloc did not get back, where they grow steadily, in steps of a kind."""
        kind = kind or self.main_kind()
        for figure in ("heap", "rss"):
            trend = next((t for t in self.rank.trends if t.figure == figure and t.kind == kind), None)
            if trend is not None:
                return trend.slope if trend.status == "growing" else None
        return None

    # -- holders and drift -----------------------------------------------------------------------------------

    def holders(self, finding: Finding) -> list[result.Holder]:
        """The holders a finding means: by the line that fills them, by a function that it calls and that fills them, by name in the
        same file, or else by what was born there."""
        spots = set(self.spots(finding))
        name = _base(finding.subject)
        found = [h for h in self.rank.holders if any((real(h.file), n) in spots for n in (h.line, *h.lines))]
        if found:  # a line may fill several: each finding means its own, where it names it
            return [h for h in found if _is_named(h, name)] or found
        called = self._called(spots)
        files = {spot[0] for spot in spots} | {real(h.file) for h in self.rank.holders if h.file}
        for names in (called, source.reached_from(files, called, DEPTH)):
            through = [h for h in self.rank.holders if h.scope != "local" and _is_filled_in(h, names)]
            if through:
                return through
        file = {spot[0] for spot in spots}
        named = [h for h in self.rank.holders if (real(h.file) in file or not h.line) and _is_named(h, name)]
        return named or [h for h in self.rank.holders if self._is_born(h, spots)]

    @staticmethod
    def _is_born(holder: result.Holder, spots: set[Spot]) -> bool:
        """Whether a good part of what the holder keeps was born on these lines."""
        own = sum(h.bytes for h in holder.births if (real(h.site.file), h.site.line) in spots)
        return own > 0 and own >= BORN * holder.bytes

    def born_at(self, finding: Finding) -> list[result.Drift]:
        """The drift of sites on the finding's lines."""
        spots = set(self.spots(finding))
        return [d for d in self.rank.drifts if (real(d.site.file), d.site.line) in spots]

    def drifts_of(self, holder: result.Holder) -> list[result.Drift]:
        """The drift of the sites where what the holder keeps was born."""
        sites = {held.site for held in holder.births}
        drifts = [d for d in self.rank.drifts if d.site in sites and d.place == holder.place]
        return [d for d in drifts if bool(d.released) == bool(holder.released)]

    def text_of(self, holder: result.Holder) -> str:
        """The holder in words, with what its limit amounts to where it has one that is none."""
        said = [d.reason for d in self.drifts_of(holder) if d.limited and d.status == "leak"]
        return said[0].removeprefix("kept by ") if said and holder.bound is not None else holder.text

    def kind_of(self, holder: result.Holder) -> result.StepKind:
        """The kind of steps in which the holder grows; the main kind where it holds nodes alone."""
        drifts = [drift for drift in self.drifts_of(holder) if drift.status == "leak"]
        return max(drifts, key=lambda drift: drift.total).kind if drifts else self.main_kind()

    def growth(self, holder: result.Holder) -> Share:
        """What a holder grows by, from the part of each leaking site that it keeps."""
        parts = []
        for held in () if holder.released else holder.births:
            leak = self._leak(held.site, holder.place)
            if leak is not None and leak.total and not _is_passing(held, leak):
                parts.append(Share.of_drift(leak, min(1.0, held.bytes / leak.total)))
        if holder.released or (holder.bound is not None and not parts):
            return Share()
        nodes = holder.nodes / max(1, self._judged_steps(self.kind_of(holder)))
        window = parts[0].window if parts else ""
        return Share.of([*parts, Share(nodes=nodes if nodes >= 1 else 0.0, window=window)])

    def leaks(self) -> list[result.Drift]:
        """What grows on the device, but for what an optimizer has for its parameters from step to step."""
        return [leak for leak in self.rank.leaks() if not self._is_state(leak)]

    def keepers(self, drift: result.Drift) -> list[tuple[int, result.Holder]]:
        """Who keeps how many bytes of what a site left behind."""
        holders = [holder for holder in self.rank.holders if holder.place == drift.place]
        return [(size, one) for one in holders if (size := one.kept_of(drift.site))]

    def _is_state(self, leak: result.Drift) -> bool:
        kept = sum(size for size, holder in self.keepers(leak) if holder.scope == "optimizer")
        return kept >= 0.9 * leak.total > 0 and not leak.window

    def _leak(self, site: result.Site, place: result.Place) -> result.Drift | None:
        leaks = self.leaks() if place == "device" else self.rank.leaks(place)
        return max((d for d in leaks if d.site == site), key=lambda d: d.total, default=None)

    def _judged_steps(self, kind: result.StepKind) -> int:
        judged = [d.steps for d in self.rank.drifts if d.kind == kind]
        return max(judged) if judged else max(1, self.rank.steps(kind) - 2)

    # -- forwards and calls ----------------------------------------------------------------------------------

    def forwards(self, finding: Finding) -> list[result.ForwardFigures]:
        """The forwards that the finding's lines start, directly or through a function they call."""
        return self._through(finding, self.rank.forwards)

    def calls(self, finding: Finding, what: Sequence[str]) -> list[result.CallFigures]:
        """The calls of certain functions that the finding's lines make, directly or through a function."""
        return self._through(finding, [call for call in self.rank.calls if call.what in what])

    def _through(self, finding: Finding, figures: Iterable[_Sited]) -> list[_Sited]:
        known = list(figures)
        spots = set(self.spots(finding))
        direct = [one for one in known if (real(one.site.file), one.site.line) in spots]
        if direct:
            return direct
        called = self._called(spots)
        return [one for one in known if one.site.function.rsplit(".", 1)[-1] in called]

    @staticmethod
    def _called(spots: Iterable[Spot]) -> set[str]:
        """The names of what the lines call, or hand over to be called (`register_forward_hook(self.save)`)."""
        return {name for file, line in spots for name in source.called_on(file, line)}


def _is_passing(held: result.Held, leak: result.Drift) -> bool:
    """Whether a holder has no more of a leaking site's blocks than one step makes: this batch's tensor, born on
    the line where another leaks (`x, y = x.to(device), y.to(device)`), at an address that looked old."""
    if leak.enlarged:
        return False
    if leak.window:
        return held.count < FEWEST_OF_WINDOWS and held.bytes <= leak.per_window
    return held.count < FEWEST and held.bytes <= 2 * leak.bytes_per_step


def _is_filled_in(holder: result.Holder, functions: Container[str]) -> bool:
    lines = (holder.line, *holder.lines[:1])
    return any(source.function_at(holder.file, line) in functions for line in lines)


def _is_named(holder: result.Holder, name: str) -> bool:
    return bool(name and holder.variable) and _base(holder.variable) == name


def _base(variable: str) -> str:
    """`self.history['loss'][...]` is about `history`."""
    head = variable.split("[", 1)[0]
    return head.rsplit(".", 1)[-1]
