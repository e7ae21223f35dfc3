"""Starts the user's interpreter on the child and reads the recording that it writes."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from typing import Final

from gpulint.forecasting.cards import Card
from gpulint.forecasting.recording import CHANNEL, OPTIONS, Doubt, Recording
from gpulint.runtime.parent import processes
from gpulint.runtime.parent.processes import Tail
from gpulint.runtime.record.records import Record

CHILD: Final = os.path.abspath(os.path.join(__file__, "..", "child", "child.py"))
ENDLESS: Final = 1000  # times that one condition is read from the card in a run that comes to no steps
_RANKS: Final = re.compile(
    r"KeyError: '(?:LOCAL_RANK|RANK|WORLD_SIZE|LOCAL_WORLD_SIZE|MASTER_ADDR|MASTER_PORT)'"
)
_FRAME: Final = re.compile(r'File "([^"]+)", line \d+, in .*\n *(.*)')
_ASKED: Final = (
    "asked for values on the card, of which a forecast has none: what chooses its way by them, as adaptive solvers and line"
    " searches do, is outside of what it covers"
)
GRACE: Final = 20.0  # seconds a child may take to write its recording once its time is up


class ForecastError(Exception):
    """Why there is no forecast, in one sentence; `details` is the script's own traceback or the end of what it printed."""

    def __init__(self, message: str, details: str = "") -> None:
        super().__init__(message)
        self.details = details


@dataclass(frozen=True, slots=True)
class Program(Record):
    """What to run. `timeout` is in seconds; `steps` the most to train in one epoch. `change` is one of `adapting.py`,
    `share` the part of its elements that a mask is taken to choose and `number` a whole number read from the
    card, where nobody knows the values. `folder` is where it runs, and what it imports lies, if not where it is."""

    target: str
    arguments: tuple[str, ...] = ()
    module: bool = False
    python: str = sys.executable
    steps: int = 20
    timeout: float | None = 600.0
    show_output: bool = False
    change: str = ""
    share: float = 1.0
    number: int = 1
    folder: str = ""

    @property
    def home(self) -> str:
        """The folder whose files are the user's own."""
        if self.folder:
            return self.folder
        return os.getcwd() if self.module else os.path.dirname(os.path.realpath(self.target))


def record(program: Program, card: Card) -> Recording:
    """Run a program with a faked card. Raises ForecastError where that is not possible; no process is left."""
    problem = processes.why_not_started(program.python, None if program.module else program.target)
    if problem is None and not program.module and program.target.endswith(".ipynb"):
        problem = "a notebook is forecast by the command, as the script of its cells: gpulint forecast"
    if problem is not None:
        raise ForecastError(problem)
    mark = secrets.token_hex(12)
    output = None if program.show_output else subprocess.PIPE
    # A file, not a pipe: the child never waits for a reader, and what it has written is there whoever still has it open.
    with tempfile.TemporaryFile() as received:
        try:
            process = subprocess.Popen(
                [program.python, CHILD, program.target, *program.arguments],
                env=_environment(program, card, received.fileno(), mark),
                stdin=subprocess.DEVNULL,
                stdout=sys.stderr if program.show_output else output,
                stderr=output,
                cwd=program.folder or None,
                pass_fds=(received.fileno(),),
                start_new_session=True,
            )
        except OSError as error:
            raise ForecastError(f"{program.python} could not be started: {error}") from error
        tails = [Tail(stream) for stream in (process.stdout, process.stderr) if stream is not None]
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(None if program.timeout is None else program.timeout + GRACE)
        finally:
            processes.end_all(mark, process.pid, grace=0.2)
            process.wait()
            for tail in tails:
                tail.close()
        received.seek(0)
        data = received.read()
    said = "".join(tail.text() for tail in tails)[-4000:]
    try:
        found = Recording.from_text(data)
    except ValueError:
        raise ForecastError(_died(process.returncode), said) from None
    if found.end == "no-torch":
        why = f"has no torch ({found.message}); name an interpreter that has one with --python"
        raise ForecastError(f"{program.python} {why}")
    judge_recording(found, said)
    return found


def _environment(program: Program, card: Card, descriptor: int, mark: str) -> dict[str, str]:
    options = {**program.to_json(), "card": card.to_json(), "home": program.home}
    environment = {**os.environ, CHANNEL: str(descriptor), OPTIONS: json.dumps(options), processes.RUN: mark}
    environment["CUDA_VISIBLE_DEVICES"] = ""  # a card that is there shall not be touched
    return environment


def judge_recording(found: Recording, said: str = "") -> None:
    """Raises ForecastError where a recording is not one of a program that ran; `said` is what that printed last."""
    if found.end == "failed":
        raise ForecastError(found.message)
    if found.end == "raised":
        raise ForecastError(_raised(found), found.traceback or said)
    endless = _goes_on(found)
    if endless is not None:
        raise ForecastError(f"the time was up: {endless.file}:{endless.line} had {_ASKED}")


def _died(code: int) -> str:
    if code == -9:
        return "the process was killed: this machine may have too little memory, or the script did not end in time"
    if code < 0:
        return f"the process was ended by signal {-code}"
    return f"the script ended its process itself with code {code}, before there was a forecast"


def _raised(found: Recording) -> str:
    text = found.message
    if text.startswith("the script called"):
        return text
    if text.startswith("Outside: "):
        return text.removeprefix("Outside: ")
    hint = ""
    if text.startswith("FileNotFoundError"):
        hint = "; a forecast runs the script itself, which needs the files that it reads"
    elif "UnsupportedOperatorException" in text or "NotImplementedError" in text:
        hint = "; an operator without a fake implementation cannot be forecast"
    elif "Default process group" in text or _RANKS.fullmatch(text) is not None:
        hint = "; training on several GPUs is outside of what a forecast covers: run it as on one"
    elif (asked := _asked(found)) is not None:
        hint = f" after {asked.file}:{asked.line} had {_ASKED}"
    return f"the script raised {text}{hint}"


def _asked(found: Recording) -> Doubt | None:
    """Where a condition was read from the card, in the file in which a check has failed then."""
    frames = [frame for frame in _FRAME.findall(found.traceback) if f"{os.sep}torch{os.sep}" not in frame[0]]
    if not frames or not frames[-1][1].startswith(("assert", "raise")):
        return None
    return next((one for one in found.doubts if one.code == "boolean" and one.file == frames[-1][0]), None)


def _goes_on(found: Recording) -> Doubt | None:
    """Where a loop goes on by a condition on the card until the time is up."""
    conditions = (one for one in found.doubts if one.code == "boolean" and one.count >= ENDLESS)
    return next(conditions, None) if found.end == "time" and not found.facts.get("settled") else None
