"""What the command line and the configuration ask of the plugin. Imports no torch."""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass
from typing import Any, Final

import pytest

from gpulint.gate.baselines import TOLERANCE
from gpulint.testing.asking import DEVICES, Misuse, size_of
from gpulint.units import parse_bytes

ALLOWED_LEAKS: Final = "gpu_memory_allow_leaks"
CLEAR_FRAMES: Final = "gpu_memory_clear_frames"
MODES: Final = ("report", "error")
_WITH_SIZE: Final = re.compile(r"(?P<pattern>.+?)\s+(?P<size>\d[\d.]*\s*[A-Za-z]*)")


@dataclass(frozen=True, slots=True)
class Settings:
    """Sizes in bytes, the tolerance in percent. `leaks` is "" where what tests leave is not looked at, or how it is taken."""

    root: str
    device: str = "auto"
    leaks: str = ""
    leaks_above: int = 0
    allowed_leaks: tuple[tuple[str, int | None], ...] = ()
    baseline: str = ""
    writes_baseline: bool = False
    tolerance: float = TOLERANCE
    every_test: bool = False
    clears_frames: bool = True

    def allowed(self, nodeid: str, size: int) -> str:
        """The pattern of the configuration that allows what a test left; "" where none does."""
        for pattern, most in self.allowed_leaks:
            if _matches(pattern, nodeid) and (most is None or size <= most):
                return f"{ALLOWED_LEAKS}: {pattern}"
        return ""


def add_options(parser: pytest.Parser) -> None:
    """The plugin's options and keys."""
    add = parser.getgroup("gpulint", "GPU memory (gpulint)").addoption
    looks = (
        "look at what each test leaves on the device after its teardown; `error` makes it an error of the test, `report` "
        "(the default) only tells it at the end"
    )
    add(
        "--gpu-memory-leaks",
        nargs="?",
        const="report",
        type=_mode,
        metavar="report|error",
        help=looks,
    )
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


def read(config: pytest.Config) -> Settings:
    """The settings of this run. Raises pytest.UsageError with one sentence."""

    def option(name: str) -> Any:
        return config.getoption(f"gpu_memory_{name}")

    baseline, writes = option("baseline"), option("write_baseline")
    for name, given in (("write-baseline", writes), ("all", option("all"))):
        if given and not baseline:
            raise pytest.UsageError(f"--gpu-memory-{name} needs --gpu-memory-baseline FILE")
    return Settings(
        root=str(config.rootpath),
        device=option("device"),
        leaks=option("leaks") or "",
        leaks_above=option("leaks_above"),
        allowed_leaks=tuple(allowed_by(line) for line in config.getini(ALLOWED_LEAKS)),
        baseline=str(config.invocation_params.dir / baseline) if baseline else "",
        writes_baseline=writes,
        tolerance=option("tolerance"),
        every_test=option("all"),
        clears_frames=bool(config.getini(CLEAR_FRAMES)),
    )


def allowed_by(line: str) -> tuple[str, int | None]:
    """A line of the configuration: a pattern of node ids, and the most that is allowed. Raises pytest.UsageError."""
    given = _WITH_SIZE.fullmatch(line.strip())
    if given is None:  # node ids may have blanks in their brackets
        return line.strip(), None
    try:
        return given["pattern"], size_of(ALLOWED_LEAKS, line.strip(), given["size"])
    except Misuse as error:
        raise pytest.UsageError(str(error)) from error


def _matches(pattern: str, nodeid: str) -> bool:
    """Only * and ? are special: the brackets of node ids are brackets."""
    parts = {"*": ".*", "?": "."}
    return (
        re.fullmatch("".join(parts.get(one, re.escape(one)) for one in pattern), nodeid, re.DOTALL)
        is not None
    )


def _mode(text: str) -> str:
    if text not in MODES:
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
