"""What is shown while the verifier runs: a live display on a terminal, a line now and then in a pipe."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, TextIO

from gpulint.reports.layout import colour_wanted
from gpulint.runtime.parent.runner import Run
from gpulint.runtime.record.result import KIND_NAMES, Progress, StepKind
from gpulint.units import format_bytes

EVERY = 5.0  # seconds between two lines in a pipe
SLOWEST = 60.0  # seconds between two lines that say that nothing has happened
_MOST_RANKS = 8
_ROOMY = 110  # columns of a terminal that has room for everything

OnProgress = Callable[[Progress], None]


@contextlib.contextmanager
def following(what: Run, out: TextIO, colour: str = "auto") -> Iterator[OnProgress]:
    """A function that shows each progress message on `out` until the block ends."""
    live = out.isatty() and os.environ.get("TERM") != "dumb" and what.capture
    with _live(what, out, colour_wanted(out, colour)) if live else _lines(what, out) as on_progress:
        yield on_progress


def figures_text(progress: Progress, brief: bool = False) -> str:
    """`allocated 1.20 GiB, reserved 1.50 GiB, +512 B since warm-up`; without `reserved` where it has to be brief."""
    sample = progress.sample
    parts = []
    if sample.allocated is not None:
        parts.append(f"allocated {format_bytes(sample.allocated)}")
    if sample.reserved is not None and not brief:
        parts.append(f"reserved {format_bytes(sample.reserved)}")
    if progress.drift is not None:
        parts.append(f"{format_bytes(progress.drift, signed=True)} since warm-up")
    return ", ".join(parts)


class Tally:
    """How far each kind of step has come, on each rank: warm-up and sampled steps are counted apart."""

    def __init__(self, wanted: int) -> None:
        self._wanted = wanted
        self._sampled: Counter[tuple[int, StepKind]] = Counter()

    def add(self, progress: Progress) -> tuple[int, int | None]:
        """The sampled steps of this message's kind so far, and how many are wanted; None where that is open, as for
        an evaluation beside a training."""
        kind = progress.sample.kind
        self._sampled[progress.rank, kind] += progress.sample.sampled
        count = self._sampled[progress.rank, kind]
        beside = kind == "eval" and any(n for (_, other), n in self._sampled.items() if other != "eval")
        return count, None if beside or count > self._wanted else self._wanted

    def text(self, progress: Progress) -> str:
        """`training step 13, 10 of 20 sampled`."""
        count, wanted = self.add(progress)
        sample = progress.sample
        of = "" if wanted is None else f" of {wanted}"
        return f"{KIND_NAMES[sample.kind]} step {sample.step}, {f'{count}{of} sampled' if sample.sampled else 'warm-up'}"


@contextlib.contextmanager
def _lines(what: Run, out: TextIO) -> Iterator[OnProgress]:
    """One line every five seconds while steps come, and ever fewer while none do."""
    tally, lock, over = Tally(what.steps), threading.Lock(), threading.Event()
    # The script's own output may stand in the middle of a line, that of a progress bar.
    lead = "" if what.capture else "\r\x1b[K" if out.isatty() else "\n"
    begin = spoke = time.monotonic()
    state, pause = "no step yet", EVERY

    def say(text: str) -> None:
        nonlocal spoke
        spoke = time.monotonic()
        with contextlib.suppress(OSError, ValueError):  # nobody reads it any more
            print(f"{lead}gpulint: {text}", file=out, flush=True)

    def show(progress: Progress) -> None:
        nonlocal state, pause
        with lock:
            rank = f"rank {progress.rank}, " if what.launch or progress.rank else ""
            state, pause = f"{rank}{tally.text(progress)}: {figures_text(progress)}", EVERY
            if time.monotonic() - spoke >= EVERY:
                say(state)

    def beat() -> None:
        nonlocal pause
        while not over.wait(0.2):
            with lock:
                if time.monotonic() - spoke >= pause:
                    pause = min(2 * pause, SLOWEST)
                    say(f"running, {time.monotonic() - begin:.0f} s, {state}")

    say(f"running {what.target}, {what.steps} steps after warm-up")
    thread = threading.Thread(target=beat, name="gpulint-progress", daemon=True)
    thread.start()
    try:
        yield show
    finally:
        over.set()
        thread.join()


@contextlib.contextmanager
def _live(what: Run, out: TextIO, colour: bool) -> Iterator[OnProgress]:
    from rich.console import Console
    from rich.progress import BarColumn, ProgressColumn, SpinnerColumn, Task, TextColumn
    from rich.progress import Progress as Bars
    from rich.text import Text

    begin = time.monotonic()

    class Elapsed(ProgressColumn):
        """Since the start of the run, in every row: steps of another kind may come late."""

        def render(self, task: Task) -> Text:
            return Text(f"{time.monotonic() - begin:3.0f} s", "yellow")

    console = Console(file=out, no_color=not colour, highlight=False, force_terminal=True)
    roomy = console.width >= _ROOMY
    columns: list[ProgressColumn] = [SpinnerColumn(), Elapsed(), TextColumn("{task.description}")]
    if roomy:
        columns.append(BarColumn(bar_width=16))
    bars = Bars(*columns, TextColumn("{task.fields[figures]}"), console=console, transient=True)
    tally = Tally(what.steps)
    tasks: dict[tuple[int, StepKind], Any] = {}
    with bars:
        first = bars.add_task(f"running {os.path.basename(what.target)}, no step yet", total=None, figures="")

        def show(progress: Progress) -> None:
            rank, sample = progress.rank, progress.sample
            key = (rank, sample.kind)
            if key not in tasks:
                if rank >= _MOST_RANKS:
                    return
                tasks[key] = bars.add_task("", total=None, figures="") if tasks else first
            count, wanted = tally.add(progress)
            counted = f"{count} of {wanted}" if wanted is not None else str(count)
            said = f"{counted} steps{' sampled' if roomy else ''}" if sample.sampled else "warm-up"
            told = f"{f'rank {rank} ' if what.launch else ''}{KIND_NAMES[sample.kind]}: {said}"
            figures = figures_text(progress, brief=not roomy)
            bars.update(tasks[key], description=told, total=wanted, completed=count, figures=figures)

        yield show
