"""In place of `gpulint/runtime/child/child.py`: the same, with a clock around each part of gpulint that works in the loop.

Compiled under a name that no file has, so that gpulint takes none of its frames for the script's. Each part's time
is without that of the parts it calls, and without the script's own modules, which run inside `Forwards._watch`.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import sys
import time
import timeit
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SCRIPT = "the script"  # what is called from within a part and is none of its work
PARTS = {
    "gpulint.runtime.child.harness.Harness": (
        "_forward _batch _loading _pass_ended _backward _replayed _optimizer_stepped".split()
    ),
    "gpulint.runtime.probes.frames.Frames": ["stack", "index"],
    "gpulint.runtime.observing.stepping.Stepper": ["forward", "optimizer"],
    "gpulint.runtime.child.steps.Steps": "mark forward_comes optimizer_stepped _record _tell _is_warm _begin_phase check_evaluation".split(),
    "gpulint.runtime.child.stopping.Stopping": ["stop_if_enough", "_linger"],
    "gpulint.runtime.child.looks.Looks": ["look"],
    "gpulint.runtime.child.session.Session": ["watch_more", "read_relatives"],
    "gpulint.runtime.child.touching.Touching": ["step", "forward", "stepped"],
    "gpulint.runtime.observing.calls.Collector": ["_told"],
    "gpulint.runtime.observing.lines.LineCounter": ["_enter", "_leave", "judge"],
    "gpulint.runtime.observing.calls.Calls": ["_count"],
    "gpulint.runtime.observing.hostmemory.HostMemory": ["rss", "heap"],
    "gpulint.runtime.record.channel.Channel": ["send"],
}
WITH_TORCH = {
    "gpulint.runtime.observing.forwards.Forwards": ["_watch", "_pass", "_note"],
    "gpulint.runtime.observing.forwards": ["_follow"],
    "gpulint.runtime.probes.cuda.CudaProbe": (
        "mark _snapshot _record settle blocks keys series allocated peak begin_peak".split()
    ),
    "gpulint.runtime.holding.holders": ["find", "explore", "follow_graphs", "_group", "running_frames"],
}
RECORDING = "OWN_TIME_RECORDING"
TURN = 10  # steps after which recording is turned on or off, where that is what is measured
FUNCTIONS = {"gpulint.runtime.child.steps": ["collect"], "gpulint.runtime.child.looks": ["collect"]}


class Clock:
    """Seconds and calls by part, from the script's first step on, and as they stood at its last."""

    def __init__(self) -> None:
        self.totals: dict[str, list[float]] = {}
        self.steps: list[float] = []  # when each ended
        self.at_last: dict[str, list[float]] = {}
        self.calls = 0  # of modules, where they are counted
        self._within: list[float] = []  # of each part under way: seconds of the parts it has called

    def step(self) -> None:
        """The script has taken a step."""
        if not self.steps:
            self.totals.clear()
            self.calls = 0
        self.steps.append(time.perf_counter())
        if RECORDING in os.environ:
            self._turn(len(self.steps))
        self.at_last = {name: list(total) for name, total in self.totals.items()}

    def _turn(self, step: int) -> None:
        """After the sampled steps, record allocations in every other stretch of steps."""
        from gpulint.runtime.probes.cuda import CudaProbe
        from gpulint.runtime.probes.frames import Frames

        if step >= 4 * TURN and step % TURN == 0:
            CudaProbe(Frames(""))._record(step % (2 * TURN) == 0)

    def around(self, name: str, original: Any) -> Any:
        """The function with a clock around it."""
        within = self._within

        @functools.wraps(original)
        def timed(*args: Any, **kwargs: Any) -> Any:
            begin = time.perf_counter()
            within.append(0.0)
            try:
                return original(*args, **kwargs)
            finally:
                took = time.perf_counter() - begin
                total = self.totals.setdefault(name, [0.0, 0])
                total[0] += took - within.pop()
                total[1] += 1
                if within:
                    within[-1] += took

        return timed


def attend(clock: Clock, parts: dict[str, list[str]]) -> None:
    """Put clocks around the named functions and methods."""
    for place, names in parts.items():
        module, _, last = place.rpartition(".")
        is_module = last[0].islower()
        owner: Any = importlib.import_module(place if is_module else module)
        owner = owner if is_module else getattr(owner, last)
        for name in names:
            setattr(owner, name, clock.around(f"{last}.{name}", getattr(owner, name)))


def attend_torch(clock: Clock) -> None:
    """Once the script imports torch, the parts that need it; what calls the script's modules is not counted."""
    from gpulint.runtime.child.harness import Harness

    original = Harness._watch_torch

    def _watch_torch(self: Any, torch: Any) -> None:
        attend(clock, WITH_TORCH)
        if RECORDING in os.environ:
            count_calls(clock)
        original(self, torch)
        forwards = self._session.forwards
        forwards._original = clock.around(SCRIPT, forwards._original)

    Harness._watch_torch = _watch_torch  # type: ignore[method-assign]


def count_calls(clock: Clock) -> None:
    """Count the calls of modules: those within others pass through gpulint's `__call__` without a clock."""
    from gpulint.runtime.observing.forwards import Forwards

    start = Forwards.start

    def counting(self: Any) -> None:
        import torch

        original = torch.nn.Module.__call__

        def __call__(module: Any, *args: Any, **kwargs: Any) -> Any:
            clock.calls += 1
            return original(module, *args, **kwargs)

        torch.nn.Module.__call__ = __call__  # type: ignore[method-assign]
        start(self)

    Forwards.start = counting  # type: ignore[method-assign]


def price_of_call() -> float:
    """Seconds that gpulint's `__call__` adds to a module's within another."""
    import torch

    from gpulint.runtime.observing.forwards import Forwards
    from gpulint.runtime.probes.frames import Frames

    identity, forwards = torch.nn.Identity(), Forwards(Frames("/"), lambda module: None, lambda: 0)
    plain = fastest(lambda: identity(1))
    forwards.start()
    forwards._state.depth, forwards._state.training = 1, True
    dearer = fastest(lambda: identity(1))
    forwards.stop()
    return dearer - plain


def price_of_clock() -> float:
    """Seconds that a clock adds to what it is put around."""
    return fastest(Clock().around("nothing", int)) - fastest(int)


def fastest(what: Any) -> float:
    return min(timeit.repeat(what, number=2000, repeat=20)) / 2000


def attend_steps(clock: Clock) -> None:
    """The script's steps are its optimizer's, or its backwards where it updates by hand."""
    from gpulint.runtime.child.harness import Harness

    for name in ("_optimizer_stepped", "_backward"):
        original = getattr(Harness, name)

        def stepped(self: Any, *args: Any, original: Any = original, name: str = name) -> None:
            if name == "_optimizer_stepped" or not self._optimizing:
                clock.step()
            original(self, *args)

        setattr(Harness, name, stepped)


def main() -> int:
    """Run the script as gpulint's child does, and write down the figures where OWN_TIME says."""
    place = HERE.parent / "gpulint" / "runtime" / "child" / "child.py"
    specification = importlib.util.spec_from_file_location("timed_child", place)
    assert specification is not None
    assert specification.loader is not None
    child = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(child)
    child._adopt_package()
    clock = Clock()
    attend(clock, {**PARTS, **FUNCTIONS})
    attend_torch(clock)
    attend_steps(clock)
    child._adopt_package = lambda: None
    try:
        status: int = child.main()
        return status
    finally:
        answer = {"parts": clock.at_last, "steps": clock.steps, "calls": clock.calls}
        answer |= {"call_s": price_of_call(), "clock_s": price_of_clock()}
        Path(os.environ["OWN_TIME"]).write_text(json.dumps(answer), encoding="utf-8")


if __name__ == "__main__":
    source = Path(__file__).read_text(encoding="utf-8")
    if sys._getframe().f_code.co_filename == "<own time>":
        sys.exit(main())
    exec(compile(source, "<own time>", "exec"), {**globals()})
