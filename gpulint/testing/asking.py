"""What markers, the command line and the configuration ask for. Markers are read at collection, so that a wrong one is told there and
for its own line. Imports no torch."""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final

import pytest

from gpulint.testing.baselines import TOLERANCE
from gpulint.units import parse_bytes

FEWEST: Final = 5  # sampled steps below which a test is repeated, or else cannot be judged
LIMITS: Final = "gpu_memory"
ALLOW_LEAK: Final = "gpu_memory_allow_leak"
NO_SYNC: Final = "gpu_no_sync"
DEVICES: Final = ("auto", "cuda", "cpu")
ALLOWED_LEAKS: Final = "gpu_memory_allow_leaks"
CLEAR_FRAMES: Final = "gpu_memory_clear_frames"
_WITH_SIZE: Final = re.compile(r"(?P<pattern>.+?)\s+(?P<size>\d[\d.]*\s*[A-Za-z]*)")
_MOST_TOLD: Final = 3  # wrong markers of one file
_TAKES: Final = {  # what the markers take, and how many of that by position
    LIMITS: (0, ("max_drift", "steps", "warmup", "max_peak", "device")),
    ALLOW_LEAK: (1, ("reason", "max")),
    NO_SYNC: (0, ("allowed",)),
}
DESCRIPTIONS: Final = (
    f'{LIMITS}(max_drift="0B", steps=20, warmup=None, max_peak=None, device="auto"): fail if a step leaves more than '
    "max_drift bytes on the GPU, or if the test's call allocates more than max_peak; a test that makes no steps itself is "
    "called once per step, unless max_peak alone is given",
    f'{ALLOW_LEAK}(reason, max=None): what this test leaves on the device is meant ("10MiB" at most, where max is given)',
    f"{NO_SYNC}(allowed=0): fail if the test waits for the GPU more than `allowed` times, and tell at which lines",
)


class Misuse(ValueError):
    """A marker that cannot be understood: one sentence that says how to write it."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What `gpu_memory` asks for. Sizes are bytes; `max_peak` None sets no limit, `watches_steps` False asks for no drift."""

    max_drift: int = 0
    steps: int = 20
    warmup: int | None = None
    device: str = "auto"
    max_peak: int | None = None
    watches_steps: bool = True


@dataclass(frozen=True, slots=True)
class Allowed:
    """What `gpu_memory_allow_leak` allows: `most` bytes, or any number where it is None."""

    reason: str
    most: int | None = None


def asked(item: pytest.Item, name: str) -> Any:
    """What a test's marker of this name asks for; None without one. Raises Misuse."""
    marker = item.get_closest_marker(name)
    return None if marker is None else read(marker)


def read(marker: pytest.Mark) -> Any:
    """What a marker asks for: `Limits`, what is `Allowed`, or how many synchronizations are. Raises Misuse."""
    positional, names = _TAKES[marker.name]
    unknown = next((name for name in marker.kwargs if name not in names), None)
    if unknown is not None:
        near = difflib.get_close_matches(unknown, names, 1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        raise Misuse(f"{marker.name}: unknown keyword {unknown!r}{hint}; it takes {', '.join(names)}")
    if len(marker.args) > positional:
        what = f"at most {positional} positional argument" if positional else "keywords only"
        raise Misuse(f"{marker.name} takes {what}, of {', '.join(names)}")
    given = {**marker.kwargs, **dict(zip(names, marker.args, strict=False))}
    if marker.name == LIMITS:
        return _limits(given)
    if marker.name == ALLOW_LEAK:
        return _allowed(given)
    allowed = given.get("allowed", 0)
    if not _is_number(allowed) or allowed < 0:
        raise Misuse(f"{NO_SYNC}: allowed must be a number of synchronizations, and is {allowed!r}")
    return allowed


def _limits(given: Mapping[str, Any]) -> Limits:
    steps, warmup, device = given.get("steps", 20), given.get("warmup"), given.get("device", "auto")
    if not _is_number(steps) or steps < FEWEST:
        raise Misuse(f"{LIMITS}: steps must be a number of at least {FEWEST}, and is {steps!r}")
    if warmup is not None and (not _is_number(warmup) or warmup < 0):
        raise Misuse(f"{LIMITS}: warmup must be a number of steps, and is {warmup!r}")
    if device not in DEVICES:
        raise Misuse(f"{LIMITS}: device must be one of {', '.join(DEVICES)}, and is {device!r}")
    most = given.get("max_peak")
    peak = None if most is None else size_of(LIMITS, "max_peak", most)
    watches = peak is None or bool(given.keys() & {"max_drift", "steps", "warmup"})
    drift = size_of(LIMITS, "max_drift", given.get("max_drift", 0))
    return Limits(drift, steps, warmup, device, peak, watches)


def _allowed(given: Mapping[str, Any]) -> Allowed:
    reason, most = given.get("reason"), given.get("max")
    if not isinstance(reason, str) or not reason.strip():
        raise Misuse(f'{ALLOW_LEAK} needs a reason: {ALLOW_LEAK}("the cache is shared by all tests")')
    return Allowed(reason, None if most is None else size_of(ALLOW_LEAK, "max", most))


def size_of(marker: str, keyword: str, given: Any) -> int:
    """Bytes of "512MiB" or a number. Raises Misuse, naming the keyword."""
    if _is_number(given) and given >= 0:
        return int(given)
    if isinstance(given, str):
        try:
            return parse_bytes(given)
        except ValueError as error:
            raise Misuse(f"{marker}: {keyword}: {error}") from error
    what = "a size such as '512MiB', or a number of bytes"
    raise Misuse(f"{marker}: {keyword} must be {what}, and is {given!r}")


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


# -- at collection


def check(report: Any) -> None:
    """Make an error of a report on collected tests whose markers are wrong: what was collected does not run then."""
    wrong = list(dict.fromkeys(_wrong(report.result or ())))
    if wrong:
        more = [f"and {len(wrong) - _MOST_TOLD} more"] if len(wrong) > _MOST_TOLD else []
        report.outcome = "failed"
        report.longrepr = "\n".join([*wrong[:_MOST_TOLD], *more])
        report.result = []


def _wrong(collected: Any) -> Iterator[str]:
    for item in collected:
        if not isinstance(item, pytest.Item):
            continue
        for marker in (one for name in _TAKES for one in item.iter_markers(name)):
            try:
                read(marker)
            except Misuse as error:
                path, line, _ = item.reportinfo()
                file = item.nodeid.partition("::")[0] or path
                yield f"{file}:{(line or 0) + 1}: @pytest.mark.{error}"


# -- options


def add_options(parser: pytest.Parser) -> None:
    """The plugin's options and keys."""
    add = parser.getgroup("gpulint", "GPU memory (gpulint)").addoption
    looks = (
        "look at what each test leaves on the device after its teardown; `error` makes it an error of the test, `report` "
        "(the default) only tells it at the end"
    )
    modes = "report|error"
    add("--gpu-memory-leaks", nargs="?", const="report", type=_mode, metavar=modes, help=looks)
    above = "leave out what is no larger than this, such as 1MiB (default: 0B, so everything is told)"
    add("--gpu-memory-leaks-above", default=0, type=_size, metavar="SIZE", help=above)
    held = "hold the peaks of tests marked gpu_memory against this file; a test without an entry for this card fails"
    add("--gpu-memory-baseline", default="", metavar="FILE", help=held)
    write = (
        "write the peaks of the tests that passed into the baseline; entries of tests that did not run stay"
    )
    add("--gpu-memory-write-baseline", action="store_true", help=write)
    more = "how much more than in the baseline is no failure (default: 1)"
    add("--gpu-memory-tolerance", default=TOLERANCE, type=_percent, metavar="PERCENT", help=more)
    every = "the baseline is for every test that uses the device, not for marked ones alone"
    add("--gpu-memory-all", action="store_true", help=every)
    where = (
        "where to measure (default: auto, the GPU where there is one, else the CPU); with cuda a machine without a GPU is "
        "an error"
    )
    add("--gpu-memory-device", default="auto", choices=DEVICES, help=where)
    parser.addini(
        ALLOWED_LEAKS,
        "tests that may leave memory behind: patterns of node ids (* and ?), one a line, each with the most it may be, if wanted: "
        "tests/test_cache.py::* 10MiB",
        type="linelist",
        default=[],
    )
    parser.addini(
        CLEAR_FRAMES,
        "let go of the locals that the traceback of a failed test holds, once it is reported (default: true)",
        type="bool",
        default=True,
    )


def check_options(config: pytest.Config) -> None:
    """Raises pytest.UsageError with one sentence about options that make no sense."""
    option = config.option
    for name in ("write_baseline", "all"):
        if getattr(option, f"gpu_memory_{name}") and not option.gpu_memory_baseline:
            raise pytest.UsageError(f"--gpu-memory-{name.replace('_', '-')} needs --gpu-memory-baseline FILE")
    allowed_leaks(config)


def allowed_leaks(config: pytest.Config) -> list[tuple[str, int | None]]:
    """What the configuration allows to be left. Raises pytest.UsageError."""
    return [allowed_by(line) for line in config.getini(ALLOWED_LEAKS)]


def allowed_by(line: str) -> tuple[str, int | None]:
    """A line of the configuration: a pattern of node ids, and the most that is allowed. Raises pytest.UsageError."""
    given = _WITH_SIZE.fullmatch(line.strip())
    if given is None:  # node ids may have blanks in their brackets
        return line.strip(), None
    try:
        return given["pattern"], size_of(ALLOWED_LEAKS, line.strip(), given["size"])
    except Misuse as error:
        raise pytest.UsageError(str(error)) from error


def matches(pattern: str, nodeid: str) -> bool:
    """Whether a pattern is a node id's. Only * and ? are special: the brackets of node ids are brackets."""
    return fnmatchcase(nodeid, pattern.replace("[", "[[]"))


def _mode(text: str) -> str:
    if text not in ("report", "error"):
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither report nor error; before a path write --gpu-memory-leaks=report"
        )
    return text


def _size(text: str) -> int:
    try:
        return parse_bytes(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _percent(text: str) -> float:
    try:
        value = float(text.removesuffix("%"))
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no percentage; write it like 5")
    return value
