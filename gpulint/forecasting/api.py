"""`gpulint.forecast`: what a program would take on a card, without one."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace

from gpulint.forecasting import batches, changes
from gpulint.forecasting.cards import Card, card_for
from gpulint.forecasting.forecasting import judged, recorded
from gpulint.forecasting.recorder import Program
from gpulint.forecasting.result import Forecast


def forecast(
    target: str | os.PathLike[str],
    arguments: Iterable[str] = (),
    *,
    card: str = "h200",
    module: bool = False,
    steps: int = 20,
    timeout: float | None = 600.0,
    alloc_conf: str | None = None,
    python: str | os.PathLike[str] | None = None,
    find_batch: str | None = None,
    try_changes: bool = False,
    capture: bool = True,
) -> Forecast:
    """Run a script (or, with `module`, what `python -m target` runs) with a faked `card`, and forecast what it would take there.

    `card` is a name such as "h200" or "rtx4090", or a size such as "24GiB". At most `steps` steps are trained in one epoch; after
    `timeout` seconds (None: never) the forecast rests on what was seen. `alloc_conf` are allocator settings, by default those of
    the script or the environment. `find_batch` names the option of the script's that sets its batch size: the result is then that
    of the largest that fits, in `search` with all that were tried. `try_changes` fills `changes`. `capture` keeps the program's
    output to itself. All sizes are in bytes. Raises ForecastError (`gpulint.ForecastError`) where there is no forecast, with the
    reason in one sentence, and ValueError for a card or settings that make no sense.
    """
    if steps < 3:
        raise ValueError("steps must be at least 3")
    chosen = card_for(card)
    interpreter = os.fspath(python) if python is not None else sys.executable
    program = Program(os.fspath(target), tuple(arguments), module, interpreter, steps, timeout, not capture)
    return forecast_with(program, chosen, alloc_conf, find_batch, try_changes, lambda _: None)


def forecast_with(
    program: Program,
    card: Card,
    alloc_conf: str | None,
    find_batch: str | None,
    try_changes: bool,
    say: Callable[[str], None],
) -> Forecast:
    """The forecast of a program, with the search for its batch and the changes to it that are asked for; `say` is told what is
    run. Raises ForecastError, and ValueError for settings that make no sense."""
    search = None
    if find_batch is not None:
        search = batches.search(program, card, find_batch, alloc_conf, say)
        if search.largest:
            program = batches.with_batch(program, find_batch, search.largest)
    say(f"running {program.target} with a faked GPU")
    run = recorded(program, card)
    found = replace(judged(run, alloc_conf), search=search)
    return replace(found, changes=tuple(changes.tried(run, found, say))) if try_changes else found
