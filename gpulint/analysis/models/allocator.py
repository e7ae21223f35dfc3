"""The caching allocator's settings, and what torch refuses of them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from gpulint.units import options
from gpulint.units import parts as parts

# Each with the version of torch that brought it; empty where that is not known.
SINCE: Final = {
    "max_split_size_mb": "1.10", "garbage_collection_threshold": "1.12", "roundup_power2_divisions": "1.12", "backend": "2.0",
    "expandable_segments": "2.1", "graph_capture_record_stream_reuse": "", "large_segment_size_mb": "", "max_non_split_rounding_mb": "",
    "per_process_memory_fraction": "", "pinned_num_register_threads": "", "pinned_reserve_segment_size_mb": "", "pinned_use_background_threads": "",
    "pinned_use_cuda_host_register": "", "release_lock_on_cudamalloc": "", "throw_on_cudamalloc_oom": "2.12", "pinned_free_catch_all": "2.12",
    "pinned_max_cached_size_mb": "2.12", "pinned_max_round_threshold_mb": "2.12",
}  # fmt: skip
# What builds for AMD call theirs.
ON_AMD: Final = {"release_lock_on_hipmalloc": ""}
# Option → the first version of torch that knows it, or "" where only that 2.11 does is certain. An option that torch
# does not know stops the program.
OPTIONS: Final = {**SINCE, **ON_AMD}
# Options of earlier versions, with the version that refuses them for certain.
GONE: Final = {"roundup_bypass_threshold_mb": "2.11"}
_SWITCHES = frozenset(
    "expandable_segments pinned_use_cuda_host_register release_lock_on_cudamalloc pinned_use_background_threads "
    "graph_capture_record_stream_reuse throw_on_cudamalloc_oom pinned_free_catch_all".split()
)


@dataclass(frozen=True, slots=True)
class BadOption:
    """Something in a setting that torch refuses. `mended` is the setting with the nearest right thing, if any."""

    what: str
    hint: str
    mended: str | None = None


def bad_options(text: str, target: tuple[int, int] | None = None) -> list[BadOption]:
    """What torch refuses in a setting; `target` is the oldest torch that must take it, where that is known."""
    found: list[BadOption] = []
    given = parts(text)
    for position, part in enumerate(given):
        problem = _bad_option(part, target)
        if problem is not None:
            if problem.mended is not None:
                mended = ",".join([*given[:position], problem.mended, *given[position + 1 :]])
                problem = BadOption(problem.what, problem.hint, mended)
            found.append(problem)
    return found


def option_names(text: str) -> tuple[str, ...]:
    """The names of the options in a setting, as far as they are known."""
    return tuple(part.partition(":")[0].strip() for part in parts(text) if ":" in part)


def _bad_option(part: str, target: tuple[int, int] | None) -> BadOption | None:
    key, colon, value = (piece.strip() for piece in part.partition(":"))
    if "{}" in key or part.strip() == "{}":
        return None  # not known before the run
    if not colon:
        written = re.fullmatch(r"\s*(\w+)\s*=\s*(\w+)\s*", part)
        mended = f"{written[1]}:{written[2]}" if written is not None and written[1] in OPTIONS else None
        what = f"`{part.strip()}` is not of the form `option:value`"
        return BadOption(what, "torch stops when it is imported", mended)
    if key in GONE:
        if target is not None and target < _version(GONE[key]):
            return None
        return BadOption(f"torch {GONE[key]} does not know `{key}` any more", "")
    if key not in OPTIONS:
        near = get_close_matches(key, OPTIONS, 1, 0.8)
        hint = f"did you mean `{near[0]}`?" if near else f"it knows {', '.join(sorted(_USUAL))} and others"
        mended = f"{near[0]}:{value}" if near else None
        return BadOption(f"torch's allocator has no option `{key}`", hint, mended)
    if OPTIONS[key] and target is not None and target < _version(OPTIONS[key]):
        hint = f"torch {target[0]}.{target[1]} refuses it"
        return BadOption(f"`{key}` is new in torch {OPTIONS[key]}", hint)
    return _bad_value(key, value)


# Splitting is forbidden above this size: from here on few blocks of a training step are as large.
HARMLESS_SPLIT_MB: Final = 1024


@dataclass(frozen=True, slots=True)
class SplitSize:
    """`max_split_size_mb` in a setting, and what is to be said of it. `mended` is the setting as it was meant."""

    size: int | None
    expandable: bool
    mended: str

    @property
    def message(self) -> str:
        if self.expandable:
            return "`max_split_size_mb` undoes part of what `expandable_segments:True` saves"
        size = "" if self.size is None else f":{self.size}"
        return f"`max_split_size_mb{size}` keeps torch from using larger blocks of free memory for smaller tensors"

    @property
    def measured(self) -> str:
        size = 137 if self.expandable else 106
        other = "`expandable_segments:True` alone" if self.expandable else "`expandable_segments:True`"
        return (
            f"{size} GiB reserved where {other} took 6.4 GiB, for batches of varying length; H200, torch 2.11"
        )

    @property
    def remedy(self) -> str:
        return "leave out `max_split_size_mb`" if self.expandable else "use expandable segments instead"


def split_size(text: str) -> SplitSize | None:
    """`max_split_size_mb` of a size that leaves the usual tensors of a training step unsplit; else None."""
    given = dict(options(text))
    if "max_split_size_mb" not in given:
        return None
    digits = re.match(r"\d+", given["max_split_size_mb"])
    size = int(digits[0]) if digits is not None else None
    if size is not None and size >= HARMLESS_SPLIT_MB:
        return None
    if given.get("backend", "native") != "native":
        return None  # that allocator does not split at all
    expandable = given.get("expandable_segments") == "True"
    rest = [part for part in parts(text) if not part.strip().startswith("max_split_size_mb:")]
    if not expandable:
        rest = [part for part in rest if not part.strip().startswith("expandable_segments:")]
        rest.insert(0, "expandable_segments:True")
    return SplitSize(size, expandable, ",".join(part.strip() for part in rest))


_USUAL = (
    "backend", "expandable_segments", "garbage_collection_threshold", "max_split_size_mb", "roundup_power2_divisions",
)  # fmt: skip


def _bad_value(key: str, value: str) -> BadOption | None:
    if "{}" in value:
        return None
    if key in _SWITCHES and value not in ("True", "False"):
        lowered = {"true": "True", "1": "True", "on": "True", "false": "False", "0": "False", "off": "False"}
        mended = lowered.get(value.lower())
        what = f"`{key}:{value}`: torch takes only `True` and `False`"
        return BadOption(what, "", f"{key}:{mended}" if mended else None)
    if key == "garbage_collection_threshold" and not 0 < (_number(value) or 0) < 1:
        return BadOption(f"`{key}:{value}`: torch takes a fraction between 0 and 1", "")
    least = _LEAST_MB.get(key)
    if least is not None:
        digits = re.match(r"\s*\+?(\d+)", value)  # torch stops reading at what is none
        if digits is None or int(digits[1]) < least:
            return BadOption(f"`{key}:{value}`: torch takes {least} and more", "")
    if key == "roundup_power2_divisions":
        return _bad_divisions(key, value)
    if key == "backend" and value not in ("native", "cudaMallocAsync"):
        return BadOption(f"`{key}:{value}`: torch knows the backends `native` and `cudaMallocAsync`", "")
    return None


# Sizes in MiB, the least that torch takes.
_LEAST_MB: Final = {"max_split_size_mb": 20, "max_non_split_rounding_mb": 20, "large_segment_size_mb": 11}


def _bad_divisions(key: str, value: str) -> BadOption | None:
    """One number, or `[256:1,512:2,>:4]`, of powers of two; 0 switches off, in the list only."""
    if not value.startswith("["):
        right = _is_power_of_two(value)
        return None if right else BadOption(f"`{key}:{value}`: torch takes a power of two", "")
    if not value.endswith("]"):
        what = f"`{key}:{value}`: the bracket is not closed"
        return BadOption(what, "torch stops with an internal assertion")
    for part in value[1:-1].split(","):
        bound, _, number = (piece.strip() for piece in part.partition(":"))
        if not (bound == ">" or _is_power_of_two(bound)) or not (number == "0" or _is_power_of_two(number)):
            return BadOption(f"`{part}` in `{key}`: torch takes a power of two for both, or `>` and one", "")
    return None


def _is_power_of_two(text: str) -> bool:
    number = int(text) if text.isdecimal() else 0
    return number > 0 and not number & (number - 1)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _version(text: str) -> tuple[int, int]:
    major, _, minor = text.partition(".")
    return int(major), int(minor)
