"""`gpulint experiment fragmentation`: the same allocations under each allocator setting."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, Literal, NamedTuple

from gpulint.allocator import MIB, Allocator, OutOfMemory
from gpulint.memory import alloc_conf
from gpulint.operator.launcher import torch_version_of
from gpulint.runtime.record.records import Record
from gpulint.units import format_bytes

SETTINGS = (
    "",
    "expandable_segments:True",
    "max_split_size_mb:128",
    "max_split_size_mb:2048",
    "expandable_segments:True,max_split_size_mb:128",
    "garbage_collection_threshold:0.8",
    "roundup_power2_divisions:8",
)


# -- programs that fragment memory, as lists of allocations and frees ------------------------------------------


class Event(NamedTuple):
    """`alloc` or `free` of the allocation that a program calls `name`."""

    action: Literal["alloc", "free"]
    name: int
    size: int = 0


@dataclass(frozen=True, slots=True)
class Scenario:
    """`limit` is the memory that the process may have, in bytes (None: what the card has)."""

    name: str
    what: str
    events: tuple[Event, ...]
    limit: int | None = None


def holes(size: int = 256 * MIB, count: int = 24, every: int = 3, ask: float = 0.85) -> Scenario:
    """Fill the memory with tensors, free every `every`-th, ask for `ask` of what was freed in one piece."""
    if size < 1 or count < every or every < 2 or not 0 < ask <= 1:
        raise ValueError(
            "holes need a size, at least as many tensors as `every`, every >= 2, and 0 < ask <= 1"
        )
    events = [Event("alloc", number, size) for number in range(count)]
    freed = range(0, count, every)
    events += [Event("free", number) for number in freed]
    wanted = int(len(freed) * size * ask)
    events.append(Event("alloc", count, wanted))
    return Scenario(
        f"holes of {format_bytes(size)}",
        f"{count} tensors of {format_bytes(size)} fill the memory, every {_ordinal(every)} is freed, then one of"
        f" {format_bytes(wanted)} ({ask:.0%} of what was freed) is asked for",
        tuple(events),
        _filled(size, count),
    )


def _ordinal(number: int) -> str:
    return {2: "second", 3: "third"}.get(number, f"{number}th")


def _filled(size: int, count: int) -> int:
    """What these tensors make the default allocator reserve, and one tensor more: the allocator compares the
    limit with the request, also where expandable segments need fewer new pages than that."""
    model = Allocator()
    for _ in range(count):
        model.malloc(size)
    return model.reserved + size + 24 * MIB


def lengths(steps: int = 60) -> Scenario:
    """The activations of a small transformer language model on batches of 16 sequences of varying length."""
    chance, longest = random.Random(0), 512
    events: list[Event] = []
    name = 0
    for _ in range(steps):
        tokens = 16 * chance.randint(longest // 16, longest)
        hidden, wide, logits = tokens * 512 * 4, tokens * 2048 * 4, tokens * 32000 * 4
        kept = (
            [hidden]
            + [part for _ in range(4) for part in (3 * hidden, hidden, hidden, wide, wide, hidden)]
            + [logits]
        )
        live = []
        for size in (*kept, logits, logits):  # the last two are log_softmax, and its gradient
            events.append(Event("alloc", name, size))
            live.append(name)
            name += 1
        for size in reversed(kept):  # backward: the gradient of each activation, then both go
            events.append(Event("alloc", name, size))
            events.append(Event("free", live.pop()))
            live.insert(0, name)
            if len(live) > len(kept) + 2:
                events.append(Event("free", live.pop(0)))
            name += 1
        events += [Event("free", left) for left in live]
    return Scenario(
        "varying lengths",
        f"{steps} training steps on batches of {longest // 16} to {longest} tokens; nothing is kept between steps",
        tuple(events),
    )


def standard(
    size: int = 256 * MIB, count: int = 24, every: int = 3, ask: float = 0.85
) -> tuple[Scenario, ...]:
    """The programs of `gpulint experiment fragmentation`: large holes, holes that are not whole pages of 20 MiB,
    holes inside segments, and varying lengths."""
    smaller = [part for part in (size // 4, size // 64) if part >= 1]
    return (
        holes(size, count, every, ask),
        *(holes(part, max(every, count * size // part), every, ask) for part in smaller),
        lengths(),
    )


# -- running them ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Outcome(Record):
    """What one scenario did under one setting; bytes. `error` is set where it could not be run at all."""

    scenario: str
    setting: str
    source: Literal["gpu", "model"]
    succeeded: bool
    peak_allocated: int = 0
    peak_reserved: int = 0
    allocated: int = 0
    reserved: int = 0
    largest_free: int = 0
    retries: int = 0
    read_back: str | None = None
    error: str = ""


# What the model and `replaying.py` tell of the allocator.
_FIGURES: Final = ("peak_allocated", "peak_reserved", "allocated", "reserved", "largest_free", "retries")


def in_model(scenario: Scenario, setting: str) -> Outcome:
    """Run a scenario in the allocator model."""
    model, succeeded = Allocator(setting, limit=scenario.limit), True
    addresses: dict[int, int] = {}
    try:
        for event in scenario.events:
            if event.action == "alloc":
                addresses[event.name] = model.malloc(event.size)
            else:
                model.free(addresses.pop(event.name))
    except OutOfMemory:
        succeeded = False
    figures = {name: getattr(model, name) for name in _FIGURES}
    return Outcome(scenario.name, setting, "model", succeeded, **figures)


def on_gpu(
    scenario: Scenario, setting: str, interpreter: str = sys.executable, timeout: float = 300
) -> Outcome:
    """Run a scenario on the GPU, in a fresh process with the setting in its environment."""
    environment = {k: v for k, v in os.environ.items() if k not in (alloc_conf.OLD, alloc_conf.NEW)}
    if setting:
        environment[alloc_conf.variable_for(torch_version_of(interpreter))] = setting
    failed = partial(Outcome, scenario.name, setting, "gpu", False)
    with tempfile.TemporaryDirectory(prefix="gpulint-experiment-") as folder:
        given, result = Path(folder, "scenario.json"), Path(folder, "result.json")
        given.write_text(json.dumps({"limit": scenario.limit, "events": scenario.events}))
        script = Path(__file__).with_name("replaying.py")
        try:
            done = subprocess.run(
                [interpreter, str(script), str(given), str(result)],
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=timeout,
            )
        except subprocess.TimeoutExpired:
            return failed(error=f"no result within {timeout:g} s")
        if done.returncode != 0 or not result.exists():
            return failed(error=(done.stderr.strip().splitlines() or ["no result"])[-1])
        return Outcome(scenario.name, setting, "gpu", **json.loads(result.read_text()))


def gpu_works(interpreter: str = sys.executable) -> bool:
    """Whether the interpreter's torch sees a CUDA device; asked in a process of its own."""
    code = "import torch, sys; sys.exit(0 if torch.cuda.is_available() else 1)"
    try:
        return subprocess.run([interpreter, "-c", code], capture_output=True, timeout=120).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def run_all(
    scenarios: Iterable[Scenario], settings: Sequence[str], gpu: bool, interpreter: str = sys.executable
) -> list[Outcome]:
    """Every scenario under every setting."""
    run = partial(on_gpu, interpreter=interpreter) if gpu else in_model
    return [run(scenario, setting) for scenario in scenarios for setting in settings]


def render(scenarios: Sequence[Scenario], outcomes: Sequence[Outcome]) -> list[str]:
    """The outcomes as text, a table a scenario."""
    on_card = {o.source for o in outcomes} == {"gpu"}
    lines = ["on the GPU, a fresh process each" if on_card else "in the model of the allocator (no GPU)", ""]
    for scenario in scenarios:
        lines.append(f"{scenario.name}: {scenario.what}")
        if scenario.limit is not None:
            lines.append(f"the process may have {format_bytes(scenario.limit)}")
        lines.append(f"  {'setting':<48} {'outcome':<9} {'allocated':>11} {'reserved':>11} {'retries':>8}")
        lines += [_line(o) for o in outcomes if o.scenario == scenario.name]
        lines.append("")
    return [*lines, *conclusion(outcomes)]


_ALIKE = 1.02  # times: what is reserved within it is called the same


Pairs = list[tuple[Outcome, Outcome]]  # the default's outcome, and another setting's of the same scenario


def conclusion(outcomes: Sequence[Outcome]) -> list[str]:
    """What the outcomes say about each setting against the default, and which setting they speak for; nothing where the
    default is not among them or nothing else is."""
    done = [outcome for outcome in outcomes if not outcome.error]
    of_default = {outcome.scenario: outcome for outcome in done if not outcome.setting}
    judged: dict[str, Pairs] = {}
    for outcome in done:
        if outcome.setting and outcome.scenario in of_default:
            judged.setdefault(outcome.setting, []).append((of_default[outcome.scenario], outcome))
    if not judged:
        return []
    wide = max(map(len, judged))
    lines = (
        f"  {one:<{wide}}  {'; '.join(_against(pairs)) or 'no difference'}" for one, pairs in judged.items()
    )
    reserved = sum(outcome.peak_reserved for outcome in of_default.values() if outcome.succeeded)
    return ["against the default:", *lines, "", _verdict(judged, reserved)]


def _against(pairs: Pairs) -> Iterator[str]:
    """What is better, and what is worse, in which scenario."""
    for default, other in pairs:
        if other.succeeded != default.succeeded:
            yield f"{'fits' if other.succeeded else 'OOM'} in {other.scenario}"
        elif other.succeeded and default.peak_reserved and other.peak_reserved:
            if not 1 / _ALIKE < other.peak_reserved / default.peak_reserved < _ALIKE:
                now, before = map(format_bytes, (other.peak_reserved, default.peak_reserved))
                yield f"reserves {now} instead of {before} in {other.scenario}"


def _verdict(judged: dict[str, Pairs], reserved: int) -> str:
    """The setting that reserves least over what it and the default both ran through, with what it loses elsewhere. The default
    has `reserved` so much in all of them."""
    gains = {
        setting: sum(
            one.peak_reserved - other.peak_reserved
            for one, other in pairs
            if one.succeeded and other.succeeded
        )
        for setting, pairs in judged.items()
    }
    best, saved = max(gains.items(), key=lambda gain: gain[1])
    if saved <= 0 or saved < (1 - 1 / _ALIKE) * reserved:
        return "these programs speak for no setting: the default reserves as little as any"
    lost = [other.scenario for one, other in judged[best] if one.succeeded and not other.succeeded]
    but = f"; it runs out of memory, where the default does not, in {', '.join(lost)}" if lost else ""
    return f"these programs speak for {best}, which reserves {format_bytes(saved)} less{but}"


def _line(o: Outcome) -> str:
    setting = o.setting or "default"
    if o.error:
        return f"  {setting:<48} {o.error}"
    ratio = f" {o.peak_reserved / o.peak_allocated:5.2f}x" if o.peak_allocated else ""
    return (
        f"  {setting:<48} {'fits' if o.succeeded else 'OOM':<9} {format_bytes(o.peak_allocated):>11}"
        f" {format_bytes(o.peak_reserved):>11} {o.retries:>8}{ratio}"
    )
