"""One look at a window of steps: survivors, garbage, judgement, holders. Joins a probe, `drift` and
`holders`."""

from __future__ import annotations

import bisect
from typing import Any

from gpulint.runtime.holding import cycles, holders
from gpulint.runtime.observing.calls import collect
from gpulint.runtime.probes.base import Block
from gpulint.runtime.probes.frames import Frames
from gpulint.runtime.record import drift
from gpulint.runtime.record.besides import Cycle
from gpulint.runtime.record.result import Drift, Holder, Place
from gpulint.runtime.record.series import View

_Cell = tuple[int, Place]  # site, place


def look(
    probe: Any, frames: Frames, view: View, nodes: range, tied: list[Cycle] | None = None
) -> tuple[list[Drift], list[Holder]]:
    """Judge what `view` is at. `nodes` are the autograd sequence numbers that belong to what is judged. What ties the garbage that was
    found goes into `tied`."""
    boundaries, passing = list(view.boundaries), view.passing
    start, judged_until = boundaries[0], view.judged_until
    probe.settle()
    before = probe.blocks(start)
    marks = probe.resolution(boundaries)
    if len(marks) < 2:
        return [], []
    if marks[-1] != boundaries[-1]:
        marks.append(boundaries[-1])
    edges = [boundaries.index(mark) for mark in marks]

    def judged(after: list[Block]) -> list[Drift]:
        births = _births(probe, frames, before, after, marks, boundaries)
        return [d for one in births if (d := drift.judge(one, edges, view.kind, view.age, view.window))]

    drifts = judged(before)
    # A full collection takes as long as many a step, and the walk to the holders as long as some.
    if any(d.status == "leak" for d in drifts) or (
        not passing and _lasting(probe, before, judged_until, marks)
    ):
        if tied is None:
            collect()
        else:
            tied += cycles.collected(probe.keys(start), probe.key, frames, collect)
        probe.settle()
        drifts = judged(probe.blocks(start))
    leaks = {(d.site, d.place) for d in drifts if d.status == "leak"}
    if passing and not leaks:
        return drifts, []
    suspects = {
        (d.site, d.place) for d in drifts if view.last and d.status in ("occasional", "bounded")
    } | leaks
    enlarged = {(d.site, d.place) for d in drifts if d.enlarged}
    targets = {}
    for key, block in probe.keys(start).items():
        cell = (frames.sites[block.site], block.place)
        if cell in enlarged or (cell in suspects and block.epoch < judged_until):
            # What one of the windows has made is gathered by what holds several of them.
            epoch = bisect.bisect_right(boundaries, block.epoch) if view.window else block.epoch
            targets[key] = block._replace(epoch=epoch)
    if not targets and not nodes:
        return drifts, []
    urgent = {key for key, block in targets.items() if (frames.sites[block.site], block.place) in leaks}
    found = holders.find(targets, probe.key, nodes, frames, view.frames, urgent)
    drifts, found = drift.less_set_up(drifts, found)
    drifts = drift.settle(drifts, found, probe.capacity())
    leaking = {(d.site, d.place) for d in drifts if d.status == "leak"}
    found.sort(key=lambda holder: _rank(holder, leaking))
    return sorted(drifts, key=lambda d: (d.status != "leak", -d.bytes_per_step)), found


def _lasting(probe: Any, blocks: list[Block], judged_until: int, marks: list[int]) -> bool:
    """Whether memory of several steps has survived at one site, be it kept or garbage. Where a site has held the same
    bytes all along, only addresses were exchanged: gradients that each step makes anew, say."""
    epochs: dict[_Cell, set[int]] = {}
    for block in blocks:
        if block.epoch < judged_until:
            epochs.setdefault((block.site, block.place), set()).add(block.epoch)
    recorded = probe.resolution(marks)[1:]
    return any(
        len(found) >= drift.FEWEST and len(set(probe.series(site, place, recorded) or (0, 1))) > 1
        for (site, place), found in epochs.items()
    )


def _rank(holder: Holder, leaking: set[tuple[Any, Place]]) -> tuple[int, bool, int]:
    """What explains most of the growth comes first, and an optimizer's state last."""
    grown = sum(held.bytes for held in holder.births if (held.site, holder.place) in leaking)
    return -grown, holder.scope == "optimizer", -holder.nodes


def _births(
    probe: Any,
    frames: Frames,
    before: list[Block],
    after: list[Block],
    marks: list[int],
    boundaries: list[int],
) -> list[drift.Births]:
    sizes = [_by_interval(before, marks), _by_interval(after, marks)]
    now: dict[_Cell, int] = {}
    for block in after:
        now[block.site, block.place] = now.get((block.site, block.place), 0) + block.size
    cells: list[_Cell] = list(dict.fromkeys([*sizes[0], *sizes[1], *now]))
    found = []
    for cell in cells:
        had, has = sizes[0].get(cell, {}), sizes[1].get(cell, {})
        garbage = {i: had[i][0] - has.get(i, [0, 0])[0] for i in had if had[i][0] > has.get(i, [0, 0])[0]}
        site, place = cell
        found.append(
            drift.Births(
                frames.sites[site],
                place,
                {i: size for i, (size, _) in has.items()},
                {i: count for i, (_, count) in has.items()},
                garbage,
                _levels(probe, site, place, boundaries),
                now.get(cell, 0),
            )
        )
    return found


def _levels(probe: Any, site: int, place: Place, boundaries: list[int]) -> list[tuple[int, int]] | None:
    """The site's live bytes after those steps of the window at which they were recorded."""
    marks = probe.resolution(boundaries)
    live = probe.series(site, place, marks)
    return None if live is None else [(boundaries.index(m), b) for m, b in zip(marks, live, strict=True)]


def _by_interval(blocks: list[Block], marks: list[int]) -> dict[_Cell, dict[int, list[int]]]:
    """(site, place) -> interval number -> [bytes, count]. A block belongs to the interval in which its epoch
    lies."""
    sums: dict[_Cell, dict[int, list[int]]] = {}
    for block in blocks:
        interval = next((i for i in range(len(marks) - 1) if marks[i] <= block.epoch < marks[i + 1]), None)
        if interval is None:
            continue
        total = sums.setdefault((block.site, block.place), {}).setdefault(interval, [0, 0])
        total[0] += block.size
        total[1] += block.number
    return sums
