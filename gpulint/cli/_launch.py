"""torchrun's own options, as `gpulint verify` takes them and hands them on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from gpulint.cli._grouped import heading

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

_OPTIONS = (
    ("--nproc-per-node", "N", "Processes on this machine: a number, auto, gpu or cpu."),
    ("--nnodes", "N", "Machines, or a range such as 1:4."),
    ("--node-rank", "N", "This machine's number."),
    ("--master-addr", "HOST", "Address of machine 0."),
    ("--master-port", "PORT", "Port on machine 0."),
    ("--rdzv-backend", "NAME", "Rendezvous backend, such as c10d."),
    ("--rdzv-endpoint", "HOST:PORT", "Rendezvous endpoint."),
    ("--rdzv-id", "ID", "Rendezvous id of this job."),
)


def torchrun(command: Decorated) -> Decorated:
    """A command with the options, of which `flags` reads the values."""
    option = heading("Several processes (torchrun)")
    command = option("--standalone", is_flag=True, help="One machine, on a free port.")(command)
    for name, metavar, text in reversed(_OPTIONS):
        command = option(name, metavar=metavar, help=text)(command)
    return command


def flags(given: dict[str, Any]) -> tuple[str, ...]:
    """torchrun's flags, taken out of what a command was given; none where torchrun is not wanted. One machine needs no fixed
    port."""
    values = {name: given.pop(name[2:].replace("-", "_")) for name, _, _ in _OPTIONS}
    found = [part for name, value in values.items() if value is not None for part in (name, value)]
    several = values["--nnodes"] not in (None, "1") or values["--master-addr"] or values["--rdzv-endpoint"]
    if given.pop("standalone") or (found and not several and not values["--rdzv-backend"]):
        found.insert(0, "--standalone")
    return tuple(found)
