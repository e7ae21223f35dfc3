"""`gpulint gpu`: cards, memory and processes; ending a process of one's own."""

from __future__ import annotations

import sys
import time
from typing import Any

import click

from gpulint.cli._errors import Failed, as_error, say
from gpulint.cli._options import Written, option, print_json
from gpulint.operator import gpu


@click.group(invoke_without_command=True)
@option.flag("--watch", "Stay and refresh.")
@option.amount("--interval", "Between refreshes.", least=0.1, default=1.0)
@option.as_json("Cards and processes as JSON.")
@click.pass_context
def command(context: click.Context, watch: bool, interval: float, as_json: bool) -> int | None:
    """Show cards, their memory, temperature, and the processes on them with owner and command."""
    if context.invoked_subcommand is not None:
        return None
    with as_error(Failed, gpu.NoDriver), gpu.driver() as nvml:
        if watch and not as_json:
            return _watch(nvml, interval)
        cards = gpu.read_cards(nvml)
        if as_json:
            print_json([card.to_json() for card in cards])
        else:
            from rich.console import Console

            Console(soft_wrap=not sys.stdout.isatty()).print(gpu.table(cards))
    return 0


def _watch(nvml: Any, interval: float) -> int:
    from rich.live import Live

    try:
        with Live(gpu.table(gpu.read_cards(nvml)), auto_refresh=False, screen=sys.stdout.isatty()) as live:
            while True:
                time.sleep(interval)
                live.update(gpu.table(gpu.read_cards(nvml)), refresh=True)
    except KeyboardInterrupt:
        return 0


@command.command("kill", short_help="End processes of yours that use a GPU.")
@click.argument("pids", metavar="PID...", type=click.IntRange(min=1), nargs=-1, required=True)
@option.amount("--grace", "Time between TERM and KILL.", default=10.0)
@option.flag("-y", "--yes", "Do not ask.")
def kill(pids: tuple[int, ...], grace: float, yes: bool) -> int:
    """End the processes PID..., which must be yours and use a GPU. TERM first, KILL after --grace seconds.

    There is no way to end all of them: name the ones you mean.
    """
    with as_error(Failed, gpu.NoDriver):
        allowed, refused = gpu.candidates(pids, gpu.look(kept=True)[0])
    for pid, reason in refused.items():
        say(f"{pid} is left alone: {reason}")
    for process in allowed:
        print(f"{process.pid}  {process.user}  {process.command}")
    if not allowed:
        return 2
    if not yes and not click.confirm(
        f"End {'this process' if len(allowed) == 1 else f'these {len(allowed)}'}?"
    ):
        return 1
    failed = bool(refused)
    for process in allowed:
        outcome = gpu.end(process, grace, print)
        print(f"{process.pid}: {_OUTCOMES[outcome]}")
        failed |= outcome == "alive"
    return 1 if failed else 0


_OUTCOMES = {
    "ended": "ended",
    "killed": "killed",
    "gone": "was gone already",
    "alive": "still there; it waits inside the driver, or may not be signalled",
}


@command.command("account", short_help="Where the bytes of a process are.")
@click.argument("pid", metavar="PID", type=click.IntRange(min=1))
@option.as_json("All figures as JSON.")
@option.flag(
    "--measure-context",
    "Start a process that makes a CUDA context on the card, to know its size: some seconds, and that much memory.",
)
@option.amount("--timeout", "How long to wait for the process.", least=0.1, default=10.0)
def account(pid: int, as_json: bool, measure_context: bool, timeout: float) -> int:
    """Say where the GPU memory of the process PID is: tensors, cache, workspaces, context, and what nobody explains.

    The process answers itself if it runs under `gpulint run`, or if it and this command run on Python 3.14 or newer; of
    others the driver's figures are shown. In a script, `print(gpulint.memory.account())` says the same.
    """
    from gpulint.operator import accounting

    with as_error(Failed, accounting.NoProcess, gpu.NoDriver):
        told = accounting.told(pid, timeout, measure_context)
    if as_json:
        print_json(told.to_json())
    else:
        print("\n".join(told.lines()))
    return 0 if told.accounts or told.cards else 2


@command.command("snapshot", short_help="A memory snapshot of a running process.")
@click.argument("pid", metavar="PID", type=click.IntRange(min=1))
@click.argument("file", metavar="FILE", type=Written(readable=False))
@option.amount(
    "--seconds", "Record so long before it is written, unless the process records already.", default=10.0
)
@option.amount("--timeout", "How long to wait for the process after that.", least=0.1, default=30.0)
def snapshot(pid: int, file: str, seconds: float, timeout: float) -> int:
    """Have the process PID record its allocations for a while, and write torch's memory snapshot to FILE, for `gpulint
    snapshot`.

    The process goes on meanwhile. It must run under `gpulint run`, or it and this command on Python 3.14 or newer.

    Exit status: 0, or 2 where no snapshot was written.
    """
    from gpulint.operator import accounting

    with as_error(Failed, accounting.NoProcess, gpu.NoDriver, accounting.NoAnswer, ValueError):
        print(accounting.snapshot(pid, file, seconds, timeout))
    return 0


@command.command("clear", short_help="Why one process cannot empty another's cache.")
def clear() -> int:
    """Say why one process cannot empty another's cache, and what can be done."""
    print(gpu.CLEAR)
    return 0
