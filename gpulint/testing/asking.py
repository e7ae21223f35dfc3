"""What markers ask for: read at collection, so that a wrong one is told there and for its own line. Imports no torch."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pytest

from gpulint.units import parse_bytes

FEWEST: Final = 5  # sampled steps below which a test is repeated, or else cannot be judged
LIMITS: Final = "gpu_memory"
ALLOW_LEAK: Final = "gpu_memory_allow_leak"
NO_SYNC: Final = "gpu_no_sync"
DEVICES: Final = ("auto", "cuda", "cpu")
_MOST_TOLD: Final = 3  # wrong markers of one file
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


def limits_of(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Limits:
    """The limits of a `gpu_memory` marker. Raises Misuse."""
    known = ("max_drift", "steps", "warmup", "max_peak", "device")
    _check_names(LIMITS, args, kwargs, known, positional=0)
    steps, warmup = kwargs.get("steps", 20), kwargs.get("warmup")
    if not _is_number(steps) or steps < FEWEST:
        raise Misuse(f"{LIMITS}: steps must be a number of at least {FEWEST}, and is {steps!r}")
    if warmup is not None and (not _is_number(warmup) or warmup < 0):
        raise Misuse(f"{LIMITS}: warmup must be a number of steps, and is {warmup!r}")
    device = kwargs.get("device", "auto")
    if device not in DEVICES:
        raise Misuse(f"{LIMITS}: device must be one of {', '.join(DEVICES)}, and is {device!r}")
    return Limits(
        size_of(LIMITS, "max_drift", kwargs.get("max_drift", 0)),
        steps,
        warmup,
        device,
        None if kwargs.get("max_peak") is None else size_of(LIMITS, "max_peak", kwargs["max_peak"]),
        kwargs.get("max_peak") is None or bool(kwargs.keys() & {"max_drift", "steps", "warmup"}),
    )


def allowed_of(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Allowed:
    """What a `gpu_memory_allow_leak` marker allows. Raises Misuse."""
    _check_names(ALLOW_LEAK, args, kwargs, ("reason", "max"), positional=1)
    reason = args[0] if args else kwargs.get("reason")
    if not isinstance(reason, str) or not reason.strip():
        raise Misuse(f'{ALLOW_LEAK} needs a reason: {ALLOW_LEAK}("the cache is shared by all tests")')
    most = kwargs.get("max")
    return Allowed(reason, None if most is None else size_of(ALLOW_LEAK, "max", most))


def syncs_of(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> int:
    """How many synchronizations a `gpu_no_sync` marker allows. Raises Misuse."""
    _check_names(NO_SYNC, args, kwargs, ("allowed",), positional=0)
    allowed = kwargs.get("allowed", 0)
    if not _is_number(allowed) or allowed < 0:
        raise Misuse(f"{NO_SYNC}: allowed must be a number of synchronizations, and is {allowed!r}")
    return int(allowed)


READERS: Final = {LIMITS: limits_of, ALLOW_LEAK: allowed_of, NO_SYNC: syncs_of}


def size_of(marker: str, keyword: str, given: Any) -> int:
    """Bytes of "512MiB" or a number. Raises Misuse, naming the keyword."""
    if _is_number(given) and given >= 0:
        return int(given)
    if isinstance(given, str):
        try:
            return parse_bytes(given)
        except ValueError as error:
            raise Misuse(f"{marker}: {keyword}: {error}") from error
    raise Misuse(
        f"{marker}: {keyword} must be a size such as '512MiB', or a number of bytes, and is {given!r}"
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _check_names(
    marker: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], known: Iterable[str], positional: int
) -> None:
    names = list(known)
    unknown = next((name for name in kwargs if name not in names), None)
    if unknown is not None:
        near = difflib.get_close_matches(unknown, names, 1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        raise Misuse(f"{marker}: unknown keyword {unknown!r}{hint}; it takes {', '.join(names)}")
    if len(args) > positional:
        what = f"at most {positional} positional argument" if positional else "keywords only"
        raise Misuse(f"{marker} takes {what}, of {', '.join(names)}")


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
        for name, read in READERS.items():
            for marker in item.iter_markers(name):
                try:
                    read(marker.args, marker.kwargs)
                except Misuse as error:
                    path, line, _ = item.reportinfo()
                    yield f"{_shown(item, str(path))}:{(line or 0) + 1}: @pytest.mark.{error}"


def _shown(item: pytest.Item, path: str) -> str:
    return item.nodeid.partition("::")[0] or path
