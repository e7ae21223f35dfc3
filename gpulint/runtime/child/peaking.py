"""The highest `allocated` of each stretch of a run: the start, the sampled steps, evaluations, and what comes later."""

from __future__ import annotations

import gc
import sys
from typing import Any

from gpulint.runtime.child.session import Session
from gpulint.runtime.probes.crests import by_site
from gpulint.runtime.record.peaks import PeakLine, Stretch, StretchPeak
from gpulint.runtime.record.result import Holder, Part

MOST_LINES = 30  # of one peak that are told
MOST_PARTS = 1000  # of one step; what comes then is of the last


class Peaking:
    """Every reading says how high memory was since the one before; here it is known which stretch that belongs to.

    With `lines` the probe keeps what the highest moments are made of: a reading between a step's end and an evaluation's first forward
    would part them wrongly then."""

    def __init__(self, session: Session, lines: bool) -> None:
        self._session = session
        self.lines = lines
        self._stretch: Stretch = "start"
        self._sampling = False
        self._backwards = 0  # under way
        self._parts: list[Part] = []  # those since the last reading, which ended with a backward
        self._at_step: int | None = None  # how high it was between the last reading and the end of a step
        self._turned: int | None = None  # the same, where an evaluation has begun since
        self._passed_over = False  # whether steps went by without a reading
        self._highest: dict[Stretch, tuple[int, int | None]] = {}
        # Site -> its bytes after the sampled steps, and who keeps them
        self._kept: dict[int, tuple[int, str]] = {}

    def settle(self) -> None:
        """The sampled steps are near: what is garbage by now, and what the card has not finished, is no part of them."""
        if not self.lines:
            return
        gc.collect()
        if self._session.on_gpu and self._session.torch.cuda.is_initialized():
            self._session.torch.cuda.synchronize()

    def stepped(self) -> None:
        """A step of training is over: what comes before the next reading may be an evaluation's already."""
        probe = self._session.probe
        if self.lines:
            self._at_step = probe.peak()
            probe.crests.split()

    def backward_begins(self, *_: Any, **__: Any) -> None:
        """What autograd allocates in a thread of its own is the line's that asks for it."""
        self._backwards += 1  # one may call another: checkpoints do
        probe = self._session.probe
        if self.lines and self._backwards == 1 and probe.crests is not None:
            probe.crests.backward(self._session.frames.index(sys._getframe()))

    def backward_ended(self) -> None:
        """However it ended."""
        self._backwards -= 1
        probe = self._session.probe
        if self._backwards:
            return
        if self._session.lingering is None and len(self._parts) < MOST_PARTS:
            self._parts.append(self._part())
        if self.lines and probe.crests is not None:
            probe.crests.backward(0)

    def _part(self) -> Part:
        """The part that ends here; the next one begins."""
        probe = self._session.probe
        return Part(probe.peak("part"), probe.begin_peak("part"))

    def parted(self) -> tuple[Part, ...]:
        """The parts since the last reading; the next one is about to be taken."""
        if not self._session.measures:
            return ()
        parts = (*self._parts, self._part())
        self._parts.clear()
        return parts

    def turn(self) -> None:
        """A reading will be taken. Where it finds an evaluation, that began when the last step had ended."""
        if self._evaluates and self._stretch != "evaluation" and self._at_step is not None:
            self._turned = self._at_step
            self._add(self._turned, None)
            self._enter("evaluation")

    @property
    def _evaluates(self) -> bool:
        stepper = self._session.stepper
        return stepper.in_phase and stepper.boundary != "explicit"

    def account(self, figures: Any) -> None:
        """A reading was taken."""
        if figures.peak is None:
            return
        if self._turned is None or figures.peak > self._turned:
            self._add(figures.peak, figures.reserved)
        self._at_step = self._turned = None
        session = self._session
        if self._evaluates:
            self._enter("evaluation")
        elif session.lingering is not None or self._passed_over:
            self._enter("later")
        else:
            self._enter("steps" if self._sampling else "start")

    def pass_over(self) -> None:
        """A reading was not taken, because nothing new comes: what it would have told counts as later."""
        self._passed_over = True
        if self._session.lingering is not None and not self._session.stepper.in_phase:
            self._enter("later")

    def begin_sampling(self) -> None:
        """What comes since the last reading is sampled, and no longer the start."""
        self._sampling = True
        if self._stretch == "start":
            self._enter("steps")

    def end_sampling(self) -> None:
        """The steps are sampled, up to the last reading, and the script goes on."""
        self._enter("later")
        self._look_for_holders()

    def _look_for_holders(self) -> None:
        """Who keeps what is alive now; asked once, while the variables of the script are there."""
        if self.lines and not self._kept and self._session.measures:
            with self._session.aside():
                try:
                    self._kept = self._holders()
                except Exception as error:
                    said = f"who keeps memory could not be looked for: {type(error).__name__}: {error}"
                    self._session.note(said)

    def _enter(self, stretch: Stretch) -> None:
        self._stretch = stretch
        probe = self._session.probe
        if probe.crests is not None:
            probe.crests.begin(stretch)

    def _add(self, peak: int | None, reserved: int | None) -> None:
        if peak is None:
            return
        known, most = self._highest.get(self._stretch, (0, None))
        both = [size for size in (most, reserved) if size is not None]
        self._highest[self._stretch] = (max(known, peak), max(both, default=None))

    def result(self, orderly: bool) -> tuple[StretchPeak, ...]:
        """The peaks of all stretches. Not `orderly`: the main thread may still be at it, and nothing is looked into."""
        session = self._session
        self._add(session.probe.peak(), session.reserved())
        if orderly:
            self._look_for_holders()
        made = session.probe.peaks() if orderly and self.lines else {}
        found = []
        for stretch, (allocated, reserved) in self._highest.items():
            traced, sites = made.get(stretch, (None, {}))
            lines = tuple(self._line(site, sites[site]) for site in _largest(sites) if sites[site] > 0)
            found.append(StretchPeak(stretch, allocated, reserved, traced, lines))
        return tuple(found)

    def _line(self, number: int, size: int) -> PeakLine:
        site = self._session.frames.sites[number]
        kept, holder = self._kept.get(number, (0, ""))
        return PeakLine(**site.by_name(), bytes=size, kept=min(kept, size), holder=holder if kept else "")

    def _holders(self) -> dict[int, tuple[int, str]]:
        from gpulint.runtime.holding import holders

        session = self._session
        sites = {site for _, made in session.probe.peaks().values() for site in _largest(made)}
        session.probe.settle()
        alive = {key: block for key, block in session.probe.alive().items() if block.site in sites}
        kept = by_site((block.size, block.site) for block in alive.values())
        found = holders.find(alive, session.probe.key, range(0), session.frames) if alive else []
        return {site: (size, self._keeper(site, found)) for site, size in kept.items()}

    def _keeper(self, number: int, found: list[Holder]) -> str:
        """Who keeps most of what was born at a site."""
        site = self._session.frames.sites[number]
        holder = max(found, key=lambda one: one.kept_of(site), default=None)
        if holder is None or not holder.kept_of(site):
            return ""
        # An optimizer's state is looked for with its parameters, and leads to their gradients.
        return f"parameters, gradients and {holder.text}" if holder.scope == "optimizer" else holder.text


def _largest(made: dict[int, int]) -> list[int]:
    return sorted(made, key=lambda site: -made[site])[:MOST_LINES]
