"""Where one step ends and the next begins, decided from events. Knows neither torch nor memory.

A *mark* is a moment at which the probe was read. Marks are cheap and taken on suspicion; a later event
confirms one as a boundary, or not. That settles what cannot be known at once: after the discriminator's
optimizer has stepped, is the next forward a new iteration or the generator's half of this one?
"""

from __future__ import annotations

import weakref
from collections import defaultdict
from collections.abc import Callable, Hashable
from typing import Any

from gpulint.runtime.record.result import Boundary, StepKind

FEW = 4  # optimizers that step once each, and are no part of one iteration then


class Numbers:
    """What tells modules and parameters apart while a script runs. An id cannot: it is given again once its object is gone."""

    def __init__(self) -> None:
        self._known: dict[int, int] = {}  # by their ids
        self._bearers: list[weakref.ref[Any]] = []  # of each number, the last
        self._places: defaultdict[Hashable, set[int]] = defaultdict(set)

    def of(self, thing: Any, place: Hashable) -> int:
        """The number of a thing that is met in a place. One in the stead of one that is gone, a wrapper that each call makes anew,
        say, or a network for each client, has its number."""
        here = self._places[place, type(thing).__name__]
        number = self._known.get(id(thing), -1)
        if number < 0 or self._bearers[number]() is not thing:
            number = next((one for one in here if self._bearers[one]() is None), len(self._bearers))
            self._bearers[number : number + 1] = [weakref.ref(thing)]
            self._known[id(thing)] = number
        here.add(number)
        return number


class Stepper:
    """Turns events into confirmed boundaries.

    `take()` reads the probe and returns the mark's number; `confirm(kind, previous, mark)` is told that the
    stretch between two marks was one step of that kind (`previous` is -1 for the run's start).
    """

    def __init__(self, take: Callable[[], int], confirm: Callable[[StepKind, int, int], None]) -> None:
        self._take = take
        self._confirm = confirm
        self.boundary: Boundary = "none"
        self.has_optimizer = False
        self._stepped: dict[Hashable, int] = {}
        self._eager = False  # whether an optimizer has stepped since a CUDA graph was last replayed
        self._candidate: int | None = None
        self._last_train = -1
        self._last_explicit = -1
        self._forwards = 0
        # The evaluation loop under way: what is run again and again without an optimizer step
        self.phase: Hashable | None = None
        self._phase_mark = -1
        self._other: Hashable | None = None  # what ran last that is not the phase

    def optimizer_created(self) -> None:
        self.has_optimizer = True

    def optimizer(self, parameters: Hashable, identity: int) -> None:
        """An optimizer has stepped (or its GradScaler skipped). `parameters` identifies what it optimizes, so
        that an optimizer made anew in every iteration is the same one; `identity` is the object's id."""
        self.has_optimizer = True
        self._eager = True
        self._step(parameters, identity)

    def replay(self, graph: Hashable) -> None:
        """A CUDA graph is replayed: a step, unless optimizers step between replays, as they do where the graph holds
        the forward and backward alone."""
        eager, self._eager = self._eager, False
        if not eager:
            self._step(("replay", graph), 0)

    def _step(self, parameters: Hashable, identity: int) -> None:
        if self.boundary == "explicit":
            return
        self.phase = None
        self.boundary = "optimizer"
        before = self._stepped.get(parameters)
        if before is None:
            self._stepped[parameters] = identity
            self._candidate = None
            return
        if before != identity and self._candidate is None:
            return  # an optimizer that wraps another (SAM, Lookahead): one step, two hooks
        mark = self._take() if self._candidate is None else self._candidate
        previous, self._last_train = self._last_train, mark
        self._stepped = {parameters: identity}
        self._candidate = None
        self._confirm("train", previous, mark)

    def forward(self, module: Hashable, training: bool) -> None:
        """An outermost module is about to run."""
        self._forwards += 1
        if self.boundary == "explicit":
            return
        if training and self.has_optimizer:
            self.phase = None
            if self._stepped and self._candidate is None:
                self._candidate = self._take()
            elif self._last_train < 0 and not self._stepped:
                self._last_train = self._take()  # the first step begins here, and not with the run
            return
        self._repeat(("forward", module), "forward")

    def batch(self, loader: Hashable) -> None:
        """A DataLoader is about to give a batch. Counts only where neither modules nor optimizers run."""
        if self.boundary in ("none", "batch") and not self._forwards and not self.has_optimizer:
            self._repeat(("batch", loader), "batch")

    def explicit(self) -> None:
        """`gpulint.step()`: from now on nothing else counts."""
        self.boundary = "explicit"
        mark = self._take()
        previous, self._last_explicit = self._last_explicit, mark
        self._confirm("explicit", previous, mark)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is known to come again: no optimizer is there, or each has stepped but once."""
        return not self.has_optimizer or len(self._stepped) >= FEW

    @property
    def loop(self) -> Hashable:
        """What repeats now: the evaluation loop under way, or the training of certain parameters."""
        return self.phase or next(iter(self._stepped), self.boundary)

    @property
    def in_phase(self) -> bool:
        """Whether an evaluation loop is under way."""
        return self.phase is not None

    def _repeat(self, what: Hashable, boundary: Boundary) -> None:
        if self.boundary == "none" or (self.boundary == "batch" and boundary == "forward"):
            self.boundary = boundary
        if self.phase is None or (self.phase[0] == "batch" and boundary == "forward"):  # type: ignore[index]
            self.phase = what
            self._phase_mark = self._take()
        elif self.phase == what:
            mark = self._take()
            previous, self._phase_mark = self._phase_mark, mark
            self._other = None
            self._confirm("eval", previous, mark)
        elif self._other == what:  # twice, without the phase in between: that loop is over, this is another
            self.phase, self._other = what, None
            self._phase_mark = self._take()
        else:
            self._other = what
