"""Where the bytes of another process are: asked of the process itself where it can answer, else seen from outside."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from gpulint.atomic import write_atomic
from gpulint.memory.accounts import NotMeasured, measured_context, with_context
from gpulint.memory.accounts.driver import read_card
from gpulint.memory.accounts.records import Account
from gpulint.operator import agent, gpu
from gpulint.operator.gpu import Card, driver
from gpulint.runtime.record.records import Record
from gpulint.units import format_bytes

INSIDE = (
    "what lies inside, only the process can tell: start it with `gpulint run -- ...`, or put"
    " `from gpulint import memory; print(memory.account())` into the script"
)


_OTHER_VERSION = "it answered what this gpulint does not understand: its own is of another version"


class NoProcess(LookupError):
    """There is no such process here; the message says so."""


class NoAnswer(RuntimeError):
    """A process did not do what it was asked for; the message says why."""


@dataclass(frozen=True, slots=True)
class Told(Record):
    """What is known of a process: its own accounts, none where it did not answer for the reasons in `why`; and the cards that
    list it, as the driver tells it, with `driver` saying why that is not known."""

    pid: int
    command: str
    accounts: tuple[Account, ...] = ()
    why: tuple[str, ...] = ()
    cards: tuple[Card, ...] = ()
    driver: str = ""

    def lines(self) -> list[str]:
        """For people."""
        head = f"process {self.pid}: {self.command}"
        told = [line for account in self.accounts for line in str(account).splitlines()]
        if told:
            return [head, *told, *self.why]
        return [head, *self._from_outside(), *self.why, INSIDE]

    def _from_outside(self) -> Iterator[str]:
        if self.driver:
            yield f"  {self.driver}"
        for card in self.cards:
            size = next(tenant.bytes for tenant in card.tenants if tenant.pid == self.pid)
            has = "an amount that the driver does not tell" if size is None else format_bytes(size)
            total = "" if card.total is None else f" of {format_bytes(card.total)}"
            yield f"  GPU {card.index} ({card.name}): {has}{total}, by the driver's list of processes"
        if not self.cards and not self.driver:
            but = ", though it has one open: a container's numbers are others"
            yield f"  the driver lists it on no card{but if gpu.opens_gpu(self.pid) else ''}"


def told(pid: int, timeout: float = 10.0, measure_context: bool = False) -> Told:
    """What is known of a process, waiting `timeout` seconds for its own answer. Raises NoProcess."""
    process = _running(pid)
    cards, problem = gpu.look(kept=True)
    cards = [card for card in cards if any(tenant.pid == pid for tenant in card.tenants)]
    executable, accounts, why = _asked(process, timeout)
    accounts = [_completed(account, cards) for account in accounts]
    if measure_context:
        accounts = [with_context(one, partial(_measured, one, executable)) for one in accounts]
    return Told(pid, process.command, tuple(accounts), tuple(why), tuple(cards), problem)


def _running(pid: int) -> gpu.Process:
    process = gpu.describe(pid)
    if process is None:
        raise NoProcess(f"there is no process {pid} here")
    return process


# -- asking ------------------------------------------------------------------------------------------------------


def snapshot(pid: int, file: str, seconds: float, timeout: float) -> str:
    """Have a process record its allocations for so many seconds, and write a memory snapshot to `file`; what came of it, for
    people. Raises NoProcess, and NoAnswer where it wrote none."""
    process = _running(pid)
    request = json.dumps({"file": os.path.abspath(file), "seconds": seconds})
    said = _said(process, seconds + timeout, request)
    if not said.get("written"):
        raise NoAnswer(said.get("message") or f"it could not answer: {said['error']}")
    return str(said["message"])


def _asked(process: gpu.Process, timeout: float) -> tuple[str, list[Account], list[str]]:
    """The process's interpreter, its accounts, and why there are none."""
    try:
        said = _said(process, timeout)
        if "error" in said:
            return said["executable"], [], [f"it could not answer: {said['error']}"]
        return said["executable"], [Account.from_json(one) for one in said["accounts"]], []
    except NoAnswer as problem:
        return "", [], [str(problem)] if str(problem) != INSIDE else []
    except (ValueError, TypeError, LookupError):
        return "", [], [_OTHER_VERSION]


def _said(process: gpu.Process, timeout: float, request: str = "") -> dict[str, Any]:
    """What a process answers to a request. Raises NoAnswer, and ValueError for what is no JSON."""
    if process.uid != os.getuid():
        raise NoAnswer(f"it belongs to {process.user}, and is not asked")
    folder = gpu.environment(process.pid).get(agent.FOLDER)
    if folder is not None and os.path.isdir(folder):
        path = Path(folder, f"{process.pid}.{agent.ANSWER}")
        with contextlib.suppress(OSError):
            write_atomic(os.path.join(folder, f"{process.pid}.{agent.ASKED}"), request.encode())
            return _answer(path, timeout)
    remote = getattr(sys, "remote_exec", None)
    if remote is None:
        raise NoAnswer(INSIDE)
    return _executed(remote, process.pid, timeout, request)


def _executed(remote: Any, pid: int, timeout: float, request: str) -> dict[str, Any]:
    """By `sys.remote_exec`: Python 3.14 runs a file of ours in a process of the same version, between two of its instructions."""
    library = str(Path(__file__).resolve().parents[2])
    with tempfile.TemporaryDirectory(prefix="gpulint-account-") as folder:
        path, script = Path(folder, agent.ANSWER), Path(folder, "asking.py")
        script.write_text(
            f"import sys\nsys.path.append({library!r})\n"
            "try:\n    from gpulint.memory.accounts.answering import answer\n"
            f"finally:\n    sys.path.remove({library!r})\nanswer({str(path)!r}, {request!r})\n",
            encoding="utf-8",
        )
        try:
            remote(pid, str(script))
        except (OSError, RuntimeError, ValueError) as error:
            raise NoAnswer(f"it cannot be asked: {error}") from error
        return _answer(path, timeout)


def _answer(path: Path, timeout: float) -> dict[str, Any]:
    until = time.monotonic() + timeout
    while time.monotonic() < until:
        if path.exists():
            text = path.read_text(encoding="utf-8")
            path.unlink()
            said: dict[str, Any] = json.loads(text)
            return said
        time.sleep(0.05)
    raise NoAnswer(f"it did not answer within {timeout:g} s: it is no Python, or stays in one call")


# -- what the process itself could not know ------------------------------------------------------------------------


def _completed(account: Account, cards: list[Card]) -> Account:
    """With what the driver tells here, where it told the process nothing (no nvidia-ml-py in its environment)."""
    tenants = (tenant for card in cards if card.uuid == account.uuid for tenant in card.tenants)
    size = next((one.bytes for one in tenants if one.pid == account.pid), None)
    if account.process is not None or size is None:
        return account
    return replace(account, process=size, source="the driver's list of processes", notes=())


def _measured(account: Account, executable: str) -> int:
    with driver() as nvml:

        def look() -> Any:
            card = read_card(nvml, account.uuid)
            if card is None:
                raise NotMeasured("the driver does not tell how much of the card is used")
            return card

        environment = {**os.environ, **gpu.environment(account.pid)}
        return measured_context(account.device, look, executable or sys.executable, environment)
