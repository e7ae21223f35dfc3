"""Runs the program with the faked card and writes the recording to the parent."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import sys
import threading
import time
import traceback
from typing import TYPE_CHECKING, Any

from gpulint.forecasting.cards import Card
from gpulint.forecasting.child import guard
from gpulint.forecasting.phases import shown
from gpulint.forecasting.recording import CHANNEL, OPTIONS, Doubt, Recording
from gpulint.runtime.child import running
from gpulint.runtime.probes.frames import Frames

if TYPE_CHECKING:
    from gpulint.forecasting.child.tape import Tape

NO_TORCH = "no-torch"


class Report:
    """Writes one recording, once, and ends the process: nothing of the program runs after it, so that nothing is written
    with values that are none."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()
        self.tape: Any = None
        self.watch: Any = None

    def end(self, end: str, message: str = "", trace: str = "") -> None:
        self._lock.acquire()
        data = self._recording(end, message, trace).to_text().encode()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        with contextlib.suppress(OSError):  # a full disk: what is there is no recording then
            while data:
                data = data[os.write(self._descriptor, data) :]
        os._exit(0)

    def _recording(self, end: str, message: str, trace: str) -> Recording:
        tape, watch, environment = self.tape, self.watch, os.environ
        found = Recording(
            end=end,
            message=message,
            traceback=trace,
            torch=getattr(sys.modules.get("torch"), "__version__", ""),
            python=platform.python_version(),
            settings=environment.get("PYTORCH_ALLOC_CONF")
            or environment.get("PYTORCH_CUDA_ALLOC_CONF")
            or "",
        )
        if tape is None or watch is None:
            return found
        found.events = list(tape.events)  # of which there may come more
        found.sites = tape.sites
        found.operators = list(tape.operators)
        found.marks = list(watch.marks)
        found.kinds = {kind: sorted(numbers) for kind, numbers in watch.kinds.items()}
        found.kinds["logits"] = sorted(tape.logits)
        found.modules = {name: sorted(numbers) for name, numbers in watch.modules.items()}
        doubts = tape.deciding.doubts.items()
        found.doubts = [Doubt(code, file, line, count) for (code, file, line), count in doubts]
        found.facts = {
            "evaluated": watch.evaluated,
            "cut_epochs": watch.cut_epochs,
            "settled": watch.settled,
            "unreached": [(one.file, one.line, one.what) for one in watch.reaching.left()],
        }
        return found


def main(target: str, arguments: list[str]) -> None:
    """Run it; does not return."""
    options = json.loads(os.environ.pop(OPTIONS))
    report = Report(int(os.environ.pop(CHANNEL)))
    running.prepare(target, arguments, options["module"])
    if options["folder"]:
        sys.path[0] = options["folder"]
    try:
        import torch
    except ImportError as error:
        report.end(NO_TORCH, str(error))
        return
    try:
        _run(torch, options, target, report)
    except guard.CannotPretend as error:
        report.end("failed", str(error))
    except SystemExit as error:
        if error.code in (None, 0):
            report.end("finished")
        report.end("raised", f"the script called sys.exit({error.code!r})")
    except BaseException as error:
        trace = running.strip_ours(error)
        text = "".join(traceback.format_exception(type(error), error, trace))
        report.end("raised", running.one_line(error), text)
    report.end("finished")


def pretended(torch: Any, card: Card, home: str, deciding: tuple[float, int]) -> Tape:
    """Give this process a card that is not there: its tape, to be entered, with `Moving`, where the program runs. Raises
    guard.CannotPretend."""
    from gpulint.forecasting import emulating
    from gpulint.forecasting.child import adapting, face
    from gpulint.forecasting.child.tape import Tape

    guard.pretend(torch)
    frames = Frames(home)
    frames.foreign = (os.path.dirname(torch.__file__) + os.sep,)
    tape = Tape(card, frames, emulating.HOOKS, deciding)
    face.put_on(tape)
    adapting.adapt(tape)
    return tape


def emulate(tape: Tape) -> None:
    """Put the emulated functions in the place of torch's."""
    from gpulint.forecasting import emulating

    for place, name, emulated in emulating.patches(tape):
        setattr(place, name, emulated)


def _run(torch: Any, options: dict[str, Any], target: str, report: Report) -> None:
    from gpulint.forecasting.child.adapting import change
    from gpulint.forecasting.child.moving import Moving
    from gpulint.forecasting.child.watching import Reaching, Watch

    deciding = options["share"], options["number"]
    tape = pretended(torch, Card.from_json(options["card"]), options["home"], deciding)
    reaching = Reaching(shown(target, options["module"], options["home"]))
    reaching.start()
    watch = Watch(tape, options["steps"], lambda: report.end("enough"), reaching)
    report.tape, report.watch = tape, watch
    watch.start()
    emulate(tape)
    change(options["change"])
    emulate(tape)
    if options["timeout"] is not None:
        timer = threading.Timer(options["timeout"], report.end, ("time",))
        timer.daemon = True
        timer.start()
    _end_with(os.getppid())
    with tape, Moving(tape):
        running.run(target, options["module"], reaching.counter.compile)


def _end_with(parent: int) -> None:
    """End this process when its parent is gone: nobody is left who would read the recording."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, name="gpulint-parent", daemon=True).start()
