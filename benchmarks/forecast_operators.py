"""What operators take on a GPU, call by call, against what a forecast says of the same calls.

    python benchmarks/forecast_operators.py measure OUT.json [--seconds 150]     on a machine with a GPU
    python benchmarks/forecast_operators.py forecast OUT.json [--only TEXT ...]      without one
    python benchmarks/forecast_operators.py compare MEASURED.json FORECAST.json [--least BYTES]

The calls are in `forecast_calls/`. Each runs twice, and what its phases allocate and free the second time is written down: a
number above zero is an allocation of that many bytes, one below is the free of the allocation of that place (-1 is the first),
and a text is the free of what was there before the phase, in bytes. `forecast` runs the same calls as `gpulint forecast` does.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from _measure import documented

Event = int | str
BROKEN = 3  # exit status of a part whose card no longer answers


def relative(trace: list[tuple[str, Any, int]]) -> list[Event]:
    """A phase's events from (action, address, bytes)."""
    live: dict[Any, int] = {}
    found: list[Event] = []
    count = 0
    for action, address, size in trace:
        if action == "alloc":
            count += 1
            live[address] = count
            found.append(size)
        elif action == "free_completed":
            found.append(-live.pop(address) if address in live else str(size))
    return found


# -- on a GPU ---------------------------------------------------------------------------------------------------------


class Recorder:
    """What torch's allocator did, phase by phase."""

    def __init__(self) -> None:
        import torch

        self.torch = torch
        self.options: dict[str, Any] = {"context": None}
        self.start()
        kept = torch.empty(1000, device="cuda")
        if self.stop() != [4000]:
            self.options = {"stacks": "python"}
        del kept

    def start(self) -> None:
        self.torch.cuda.synchronize()
        self.torch.cuda.memory._record_memory_history(enabled="all", max_entries=200_000, **self.options)

    def stop(self) -> list[Event]:
        cuda = self.torch.cuda
        cuda.synchronize()
        traces = cuda.memory._snapshot()["device_traces"]
        cuda.memory._record_memory_history(enabled=None)
        return relative([(one["action"], one["addr"], one["size"]) for one in traces[0]]) if traces else []

    def outside(self) -> int:
        """Bytes of the card in use that are not torch's."""
        free, total = self.torch.cuda.mem_get_info()
        return int(total - free - self.torch.cuda.memory_reserved())


def phases_of(call: Any, start: Callable[[], Any], stop: Callable[[], list[Event]]) -> dict[str, list[Event]]:
    """The events of each phase of a call by its name; its first phase makes what the others need."""
    found: dict[str, list[Event]] = {}
    with contextlib.closing(call.phases()) as steps:
        name = next(steps, None)
        while name is not None:
            start()
            try:
                name = next(steps, None)
            finally:
                events = stop()
            if name:
                found[name if name not in found else f"{name} again"] = events
    return found


def chosen(name: str, only: list[str]) -> bool:
    """Whether one of these is part of a name; all are chosen where there are none."""
    return not only or any(one in name for one in only)


def peak_of(events: list[Event]) -> tuple[int, int]:
    """(highest, last) of what is allocated beyond the phase's begin, in whole blocks of 512 bytes."""
    now = high = 0
    sizes: list[int] = []
    for event in events:
        if isinstance(event, str):
            now -= blocks(int(event))
        elif event > 0:
            sizes.append(blocks(event))
            now += sizes[-1]
            high = max(high, now)
        else:
            now -= sizes[-event - 1]
    return high, now


def plain_weights() -> None:
    """Weights that need no random numbers, which take most of the time otherwise."""
    from torch.nn import init

    for name in "kaiming_uniform_ xavier_uniform_ uniform_ normal_ xavier_normal_ orthogonal_".split():
        setattr(init, name, lambda tensor, *args, **kwargs: init.constant_(tensor, 0.01))


def blocks(size: int) -> int:
    return -(-size // 512) * 512


def measure_part(out: Path, first: int, only: list[str]) -> int:
    """Measure from the call of this number on, a line each; BROKEN where the card stopped answering."""
    import torch
    from forecast_calls import CALLS

    plain_weights()
    recorder = Recorder()
    gc.collect()
    gc.freeze()  # what is there now need not be looked at after each call
    with out.open("a", encoding="utf-8") as lines:
        for number, call in enumerate(CALLS[first:], first):
            if not chosen(call.name, only):
                continue
            record: dict[str, Any] = {"number": number, "name": call.name}
            broken = False
            try:
                begin = phases_of(call, recorder.start, recorder.stop)
                gc.collect()
                record["phases"] = phases_of(call, recorder.start, recorder.stop)
                record["first"] = {
                    name: events for name, events in begin.items()
                    if peak_of(events) != peak_of(record["phases"].get(name, []))
                }  # fmt: skip
                record["outside"] = recorder.outside()
            except Exception as error:
                record["error"] = f"{type(error).__name__}: {error}"[:300]
                torch.cuda.memory._record_memory_history(enabled=None)
                broken = "CUDA error" in record["error"] or "Accelerator" in record["error"]
            print(json.dumps(record, separators=(",", ":")), file=lines, flush=True)
            if broken:
                return BROKEN
            gc.collect()
            if number % 50 == 49:
                torch.cuda.empty_cache()
    return 0


def measure(args: argparse.Namespace) -> None:
    """Run the parts: one after another begins where the last one stopped, until the time is up."""
    import torch

    out, lines = Path(args.out), Path(args.out + ".lines")
    lines.unlink(missing_ok=True)
    until = time.monotonic() + args.seconds
    first = 0
    for _ in range(20):
        left = until - time.monotonic()
        if left < 5:
            break
        command = [sys.executable, __file__, "part", str(lines), str(first), "--only", *args.only]
        try:
            code = subprocess.run(command, timeout=left, check=False).returncode
        except subprocess.TimeoutExpired:
            code = 0
        done = [json.loads(line) for line in lines.read_text().splitlines()] if lines.exists() else []
        if code == 0:
            break
        following = done[-1]["number"] + 1 if done else 0
        # One that ended its process without a line of its own is passed over.
        first = following if code == BROKEN else following + 1
    records = [json.loads(line) for line in lines.read_text().splitlines() if line.endswith("}")]
    found = {
        "card": torch.cuda.get_device_name() if torch.cuda.is_available() else "none",
        "torch": torch.__version__,
        "cudnn": torch.backends.cudnn.version(),
        "calls": {record.pop("name"): record for record in records},
    }
    out.write_text(json.dumps(found, separators=(",", ":")))
    lines.unlink()
    tell(found["calls"])


# -- with a faked one ---------------------------------------------------------------------------------------------------


def forecast(args: argparse.Namespace) -> None:
    """The same calls on the tape of a forecast; ends the process, which has pretended too much to go on."""
    import torch
    from forecast_calls import CALLS

    from gpulint.forecasting.cards import card_for
    from gpulint.forecasting.child import running
    from gpulint.forecasting.child.moving import Moving

    plain_weights()
    tape = running.pretended(torch, card_for(args.card), str(Path(__file__).parent), (1.0, 1))
    running.emulate(tape)
    begin = 0
    sizes: dict[int, int] = {}

    def start() -> None:
        nonlocal begin
        sizes.update((event[0], event[1]) for event in tape.events[begin:] if not isinstance(event, int))
        begin = len(tape.events)

    def stop() -> list[Event]:
        trace: list[tuple[str, Any, int]] = []
        for event in tape.events[begin:]:
            if isinstance(event, int):
                trace.append(("free_completed", event, sizes[event]))
            else:
                sizes[event[0]] = event[1]
                trace.append(("alloc", event[0], event[1]))
        return relative(trace)

    gc.collect()
    gc.freeze()
    found: dict[str, Any] = {}
    began = time.monotonic()
    for call in CALLS:
        if not chosen(call.name, args.only):
            continue
        if time.monotonic() - began > 2:
            print("slow", call.name, file=sys.stderr, flush=True)
        began = time.monotonic()
        try:
            with tape, Moving(tape):
                phases_of(call, start, stop)
                gc.collect()
                found[call.name] = {"phases": phases_of(call, start, stop)}
                gc.collect()
        except Exception as error:
            found[call.name] = {"error": f"{type(error).__name__}: {error}"[:300]}
    Path(args.out).write_text(json.dumps({"torch": torch.__version__, "calls": found}, separators=(",", ":")))
    tell(found)
    os._exit(0)


# -- both ---------------------------------------------------------------------------------------------------------------


def tell(calls: dict[str, Any]) -> None:
    """How many calls there are, and which could not be run."""
    errors = {name: call["error"] for name, call in calls.items() if "error" in call}
    print(len(calls), "calls,", len(errors), "with errors", flush=True)
    for name, error in errors.items():
        print(f"  {name}: {error[:150]}", flush=True)


def differences(
    measured: dict[str, Any], told: dict[str, Any]
) -> Iterator[tuple[int, int, int, int, str, str]]:
    """(difference of the peaks, of what stays, the true peak, what stays, call, phase)."""
    for name, call in measured.items():
        other = told.get(name, {})
        for phase, events in call.get("phases", {}).items():
            high, stays = peak_of(events)
            if phase in other.get("phases", {}):
                high_told, stays_told = peak_of(other["phases"][phase])
                yield high_told - high, stays_told - stays, high, stays, name, phase


def compare(args: argparse.Namespace) -> None:
    measured, told = (json.loads(Path(path).read_text())["calls"] for path in (args.measured, args.told))
    rows = list(differences(measured, told))
    wrong = [row for row in rows if abs(row[0]) > args.least or abs(row[1]) > args.least]
    for peak, stay, high, stays, name, phase in sorted(wrong, key=lambda row: -max(abs(row[0]), abs(row[1]))):
        print(f"{peak:+12d} of {high:12d}   stays {stay:+12d} of {stays:12d}   {name}: {phase}")
    for name, call in told.items():
        if "error" in call and "error" not in measured.get(name, {"error": ""}):
            print(f"not forecast: {name}: {call['error'][:120]}")
    print(f"{len(rows)} phases, {len(rows) - len(wrong)} within {args.least} bytes")


def main() -> int:
    parser = documented(__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("measure", "forecast", "part"):
        command = commands.add_parser(name)
        command.add_argument("out")
        if name == "part":
            command.add_argument("first", type=int)
        command.add_argument("--only", nargs="*", default=[])
        command.add_argument("--seconds", type=float, default=150.0)
        command.add_argument("--card", default="h200")
    comparing = commands.add_parser("compare")
    comparing.add_argument("measured")
    comparing.add_argument("told")
    comparing.add_argument("--least", type=int, default=1 << 16)
    args = parser.parse_args()
    if args.command == "part":
        return measure_part(Path(args.out), args.first, args.only)
    {"measure": measure, "forecast": forecast, "compare": compare}[args.command](args)
    return 0


if __name__ == "__main__":
    sys.exit(main())
