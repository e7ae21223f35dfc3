"""What is alive and touched by nothing: the operators of an early step of each training are followed, and what they leave alone
is looked for once. A step that comes later, of evaluations too, may take it back."""

from __future__ import annotations

import sys
import weakref
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

from gpulint.runtime.child.session import Session
from gpulint.runtime.probes.plain import attribute, elements_of, modules_within
from gpulint.runtime.record.besides import Untouched
from gpulint.runtime.record.result import StepKind

# The operators of one step are followed, whose own take three times as long then, after so many steps of a loop: in training an odd
# and an even one, because some do other things in turns.
TRAINING, EVALUATION = (4, 9), (1,)
LEAST = 64 * 1024  # bytes, or a hundredth of what the live tensors have, below which nothing is told

GRAPHS = "a CUDA graph was replayed, and what it reads and writes cannot be seen"
KERNELS = "what compiled code and kernels of Triton's touch is not seen: weights of the networks that ran were left out"
MOST_LOOPS = 8  # that are followed: a search for parameters may make a new one hundreds of times
UNREAD = "operators could not be followed, because the script follows them itself or a step ended on another thread"


class Touching:
    """Told of each step of the script, and of what ran in it."""

    def __init__(self, session: Session) -> None:
        self.watched: Counter[StepKind] = Counter()
        self.doubt = ""
        self._session = session
        self._trace: Any = None
        self._counts: Counter[Hashable] = Counter()
        self._due: dict[Hashable, tuple[int, ...]] = {}
        self._loop: Hashable = None  # that is followed
        self._end = 0  # the count of its steps at which that ends
        # By their ids: a set would ask a class of the user's for a hash.
        self._ran: dict[int, weakref.ref[Any]] = {}
        self._stepped: dict[int, weakref.ref[Any]] = {}
        self._found: list[tuple[Untouched, list[tuple[weakref.ref[Any], int]]]] = []

    @property
    def untouched(self) -> tuple[Untouched, ...]:
        """What was found and not taken back, largest first; nothing where it cannot be known."""
        if self.doubt == GRAPHS:
            return ()
        return tuple(sorted((one for one, _ in self._found), key=lambda one: -one.bytes))

    # -- what happens ----------------------------------------------------------------------------------------

    def forward(self, module: Any) -> None:
        """An outermost module runs."""
        if self._is_on:
            self._ran[id(module)] = weakref.ref(module)

    def stepped(self, optimizer: Any) -> None:
        """An optimizer has stepped."""
        if self._is_on:
            self._stepped[id(optimizer)] = weakref.ref(optimizer)

    def replayed(self) -> None:
        """A CUDA graph was replayed."""
        self.doubt = GRAPHS
        self.stop()

    def step(self, kind: StepKind) -> None:
        """A step is over."""
        session = self._session
        unwatched = session.options.trial is not None or session.endless or not session.measures
        if unwatched or self.doubt in (GRAPHS, UNREAD):
            return
        loop = session.stepper.loop
        self._counts[loop] = count = self._counts[loop] + 1
        later = () if len(self._due) >= MOST_LOOPS else EVALUATION if kind == "eval" else TRAINING
        due = self._due.setdefault(loop, later)
        with session.aside():
            try:
                if self._is_on and loop != self._loop:
                    self._trace.drop()  # another loop has come between
                elif self._is_on and count >= self._end:
                    self._due[loop] = due[1:]
                    self._judge(kind)
                if due and due == self._due[loop] and count >= due[0] and not self._is_on:
                    self._begin(loop, count)
            except Exception as error:
                self.doubt = f"it could not be looked for: {type(error).__name__}: {error}"
                self.stop()

    def stop(self) -> None:
        """Follow no more."""
        if self._is_on:
            self._trace.drop()

    # -- what comes of it ------------------------------------------------------------------------------------

    @property
    def _is_on(self) -> bool:
        return self._trace is not None and bool(self._trace.on)

    def _begin(self, loop: Hashable, count: int) -> None:
        from gpulint.runtime.probes.dispatch import Trace

        if self._trace is None:
            self._trace = Trace()
        self._ran.clear()
        self._stepped.clear()
        if self._trace.begin():
            self._loop, self._end = loop, count + 1
        else:
            self.doubt, self._due[loop] = UNREAD, ()

    def _judge(self, kind: StepKind) -> None:
        """The step that was followed is over. The first one of a training, or of anything that has no optimizer, is looked at for
        what it left alone."""
        session = self._session
        trains = kind != "eval" or not session.stepper.has_optimizer
        try:
            if trains and len(self._due[self._loop]) == len(TRAINING if kind != "eval" else EVALUATION) - 1:
                self._look()
            else:
                self._touched(())
            self.watched[kind] += 1
        finally:
            self._trace.drop()

    def _look(self) -> None:
        from gpulint.runtime.holding.idle import idle, tensors_of

        session, probe = self._session, self._session.probe
        probe.settle()
        alive = probe.alive()
        tensors = tensors_of(alive, probe.key)
        flags = self._touched(list(tensors.values()))
        unused = {key for key, used in zip(tensors, flags or (), strict=False) if not used}
        least = max(LEAST, sum(alive[key].size for key in tensors) // 100)
        if sum(alive[key].size for key in unused) < least:
            return
        found = idle(alive, unused, probe.key, session.frames, least)
        known = {one.text for one, _ in self._found}
        fresh = ((one, parts) for one, parts in found if one.text not in known)
        self._found += [(one, [(weakref.ref(part), size) for part, size in parts]) for one, parts in fresh]

    def _touched(self, tensors: Sequence[Any]) -> list[bool] | None:
        """Ends the trace: which of these tensors were used. What was found earlier and is used after all is taken back."""
        held = ((at, *part) for at, (_, parts) in enumerate(self._found) for part in parts)
        earlier = [(at, one, size) for at, reference, size in held if (one := reference()) is not None]
        flags = self._trace.end([*(tensor for _, tensor, _ in earlier), *tensors])
        if flags is None:
            self.doubt = UNREAD
            return None
        used: Counter[int] = Counter()
        for (number, _, size), flag in zip(earlier, flags, strict=False):
            used[number] += size * flag
        found, self._found = self._found, []
        for number, (one, parts) in enumerate(found):
            left = one.bytes - used[number]
            if left >= LEAST:
                freed = one.freed and max(0, one.freed - used[number])
                self._found.append((replace(one, bytes=left, freed=freed), parts))
        hidden = self._hidden()
        key = self._session.probe.key
        theirs = zip(flags[len(earlier) :], tensors, strict=True)
        return [flag or key(tensor) in hidden for flag, tensor in theirs]

    def _hidden(self) -> set[Hashable]:
        """Storages that may have been used out of sight: the states of optimizers that stepped, as some have kernels of their own,
        and where code was compiled the weights of what ran."""
        key = self._session.probe.key
        seen: set[Hashable] = set()
        for optimizer in self._stepped.values():
            for state in elements_of(attribute(optimizer(), "state")):
                seen.update(key(one) for one in elements_of(state) if self._is_tensor(one))
        if _compiles():
            self.doubt = KERNELS
            parts = [one for module in self._ran.values() for one in modules_within(module())]
            for weights in (part.get(name) for part in parts for name in ("_parameters", "_buffers")):
                seen.update(key(one) for one in elements_of(weights) if self._is_tensor(one))
        return seen - {None}

    def _is_tensor(self, value: Any) -> bool:
        return issubclass(type(value), self._session.torch.Tensor)


def _compiles() -> bool:
    """Whether kernels run that no operator stands for."""
    dynamo = sys.modules.get("torch._dynamo.utils")
    frames = dynamo.counters.get("frames", {}) if dynamo is not None else {}
    return "triton" in sys.modules or any(frames.values())
