"""What is shown while the verifier runs: a live display on a terminal, a line now and then in a pipe."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from typing import Any, TextIO

from gpulint.memory.units import format_bytes
from gpulint.reports.layout import colour_wanted
from gpulint.runtime.result import Progress
from gpulint.runtime.runner import Run

EVERY = 5.0  # seconds between two lines in a pipe
_MOST_RANKS = 8

OnProgress = Callable[[Progress], None]


@contextlib.contextmanager
def following(what: Run, out: TextIO, colour: str = "auto") -> Iterator[OnProgress]:
    """A function that shows each progress message on `out` until the block ends."""
    live = out.isatty() and os.environ.get("TERM") != "dumb" and what.capture
    show = _live(what, out, colour_wanted(out, colour)) if live else _plain(what, out)
    with show as on_progress:
        yield on_progress


def figures_text(progress: Progress) -> str:
    """`allocated 1.20 GiB, reserved 1.50 GiB, drift +512 B`."""
    sample = progress.sample
    parts = []
    if sample.allocated is not None:
        parts.append(f"allocated {format_bytes(sample.allocated)}")
    if sample.reserved is not None:
        parts.append(f"reserved {format_bytes(sample.reserved)}")
    if progress.drift is not None:
        parts.append(f"drift {format_bytes(progress.drift, signed=True)}")
    elif not sample.sampled:
        parts.append("warm-up")
    return ", ".join(parts)


@contextlib.contextmanager
def _plain(what: Run, out: TextIO) -> Iterator[OnProgress]:
    print(f"gpulint: running {what.target}, {what.steps} steps after warm-up", file=out, flush=True)
    last = time.monotonic()

    def show(progress: Progress) -> None:
        nonlocal last
        if time.monotonic() - last < EVERY:
            return
        last = time.monotonic()
        rank = f"rank {progress.rank}, " if what.launch else ""
        step = f"{progress.sample.kind} step {progress.sample.step} of {progress.wanted}"
        print(f"gpulint: {rank}{step}: {figures_text(progress)}", file=out, flush=True)

    yield show


@contextlib.contextmanager
def _live(what: Run, out: TextIO, colour: bool) -> Iterator[OnProgress]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    console = Console(file=out, no_color=not colour, highlight=False, force_terminal=True)
    bars = Bars(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TextColumn("{task.fields[figures]}"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    )
    tasks: dict[int, Any] = {}
    with bars:
        first = bars.add_task(f"starting {what.target}", total=None, figures="")

        def show(progress: Progress) -> None:
            if progress.rank not in tasks:
                if len(tasks) >= _MOST_RANKS:
                    return
                tasks[progress.rank] = first if not tasks else bars.add_task("", total=None, figures="")
            name = f"rank {progress.rank} {progress.sample.kind}" if what.launch else progress.sample.kind
            bars.update(
                tasks[progress.rank],
                description=f"{name} steps",
                total=progress.wanted if progress.sample.kind != "eval" else None,
                completed=progress.sample.step,
                figures=figures_text(progress),
            )

        yield show
