"""The allocator's settings: which environment variable, what may stand in it, and `configure`, which sets them in time and checked.
Only that needs torch."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from gpulint.analysis.models.allocator import SINCE, bad_options, split_size
from gpulint.memory.device import Unavailable, cuda_missing, cuda_started, say_once, torch_module
from gpulint.units import options, parts

OLD: Final = "PYTORCH_CUDA_ALLOC_CONF"
NEW: Final = "PYTORCH_ALLOC_CONF"
# torch 2.8 brought the new name with a warning about the old one, yet 2.9 does not apply `expandable_segments`
# from the new one; 2.12 reads both and warns about neither.
NEW_SINCE: Final = (2, 12)
EXPANDABLE_SINCE: Final = (2, 1)

KEYS: Final = frozenset(SINCE)
_CARDS: Final = re.compile(r"\s*(?:(?:-?\d+|(?:GPU|MIG)-[\w/-]+)\s*(?:,\s*|$))*")


def version_tuple(version: str) -> tuple[int, int]:
    """(2, 11) of "2.11.0+cu130". Raises ValueError where there is no version in it."""
    match = re.match(r"(\d+)\.(\d+)", version)
    if match is None:
        raise ValueError(f"{version!r} is not a version of torch")
    return int(match[1]), int(match[2])


def variable_for(version: str | None) -> str:
    """The variable that this version of torch obeys. The old name where the version is not known: torch reads
    it in every version for CUDA, at worst with a warning."""
    return NEW if version is not None and version_tuple(version) >= NEW_SINCE else OLD


def parse(text: str) -> dict[str, str]:
    """Settings in order of appearance: `"a:1,b:[64:8,>:4]"` gives `{"a": "1", "b": "[64:8,>:4]"}`.

    Raises ValueError for text that is not of this form.
    """
    written = text.replace(" ", "")
    for part in parts(written):
        if not all(part.partition(":")):
            raise ValueError(
                f"allocator settings are written key:value,key:value; {part!r} is not of this form"
            )
    return dict(options(written))


def in_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Settings in the environment; of the two names the new one wins, as in torch. Raises ValueError for what torch cannot read."""
    found: dict[str, str] = {}
    for name in (OLD, NEW):
        try:
            found |= parse(environment.get(name, ""))
        except ValueError as error:
            raise ValueError(f"{name} is set to something that torch cannot read: {error}") from error
    return found


def refusal(text: str, version: str | None = None) -> str | None:
    """The first thing in these settings that torch refuses, in a sentence; None where it takes them all. `version` is of the
    torch that has to, where that is known."""
    for problem in bad_options(text, version_tuple(version) if version is not None else None):
        meant = f" (`{problem.mended}`)" if problem.mended else ""
        return "; ".join(filter(None, (problem.what, problem.hint))) + meant
    return None


def render(settings: Mapping[str, object]) -> str:
    """The text for the environment variable."""
    return ",".join(f"{key}:{value}" for key, value in settings.items())


def from_keywords(settings: Mapping[str, object]) -> dict[str, str]:
    """Settings as `configure` takes them: True, 0.8, 128, or `{256: 4, ">": 2}` for `roundup_power2_divisions`.

    None leaves a setting out. Raises ValueError for a name that torch does not know.
    """
    for key in settings.keys() - KEYS:
        raise ValueError(f"torch's allocator has no setting {key!r}; it knows {', '.join(sorted(KEYS))}")
    return {
        key: f"[{render(value)}]" if isinstance(value, Mapping) else str(value)
        for key, value in settings.items()
        if value is not None
    }


def automatic(version: str | None, platform: str) -> dict[str, str]:
    """What measurements recommend for this torch: expandable segments where they exist, else nothing.

    On batches of varying length they reserved 6.4 GiB where the default took 22.4 GiB and `max_split_size_mb:128`
    106 GiB (H200, torch 2.11).
    """
    old = version is not None and version_tuple(version) < EXPANDABLE_SINCE
    return {"expandable_segments": "True"} if platform.startswith("linux") and not old else {}


def warnings_for(settings: Mapping[str, str]) -> tuple[str, ...]:
    """What measurements say against settings that people copy, as GPU601 says it."""
    found = []
    split = split_size(render(settings))
    if split is not None:
        found.append(f"{split.message} (GPU601): {split.measured}; {split.remedy}")
    if "garbage_collection_threshold" in settings and settings.get("expandable_segments") == "True":
        found.append(
            "`garbage_collection_threshold` acts on unsplit segments, of which `expandable_segments:True` has few"
        )
    return tuple(found)


def lists_cards(visible: str) -> bool:
    """Whether a value of `CUDA_VISIBLE_DEVICES` is a list of cards, by number or name; "0.8" is none."""
    return _CARDS.fullmatch(visible) is not None


def not_a_limit(visible: str) -> str:
    """What to say of `CUDA_VISIBLE_DEVICES`, which some take for a limit on memory."""
    what = "chooses cards" if lists_cards(visible) else "is no list of cards"
    return f"`CUDA_VISIBLE_DEVICES={visible}` {what} and limits no memory: `memory.limit(0.8)` does"


# -- in time, and checked --------------------------------------------------------------------------------------


class AllocatorSettingsError(RuntimeError):
    """The settings cannot be applied any more, or torch did not take them."""


class AllocatorSettingsWarning(UserWarning):
    """torch read other settings back than were given."""


@dataclass(frozen=True, slots=True)
class Configured:
    """What was set. `checked` says that torch reported the settings back; `refused` maps those that it did not
    take to what it has instead; `notes` are remarks, among them why a check was not possible."""

    variable: str
    value: str
    checked: bool = False
    refused: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        state = "not taken" if self.refused else "read back" if self.checked else "not checked"
        return "\n".join([f"{self.variable}={self.value} ({state})", *self.notes])


def configure(
    expandable_segments: bool | None = None, *, strict: bool = False, check: bool = True, **settings: Any
) -> Configured:
    """Set the caching allocator's options for this process and its children, before CUDA starts.

    Names and values are torch's: `expandable_segments=True`, `garbage_collection_threshold=0.8`,
    `roundup_power2_divisions={256: 4, ">": 2}`. They are added to what the environment variable already says,
    under the name that the installed torch obeys, and then read back from torch. Settings that torch did not
    take give an AllocatorSettingsWarning, with `strict` an AllocatorSettingsError. `check=False` does not
    import torch. On a machine without CUDA the variable is set and nothing else happens.

    Raises AllocatorSettingsError when CUDA is in use already, with other settings: the new ones would have no
    effect; ValueError for unknown settings.
    """
    wanted = from_keywords({"expandable_segments": expandable_segments, **settings})
    variable = variable_for(_torch_version())
    if cuda_started():
        actual = read_back()
        if actual is None or _refused(wanted, actual, report_unknown=True):
            raise AllocatorSettingsError(
                "CUDA is already in use in this process, so allocator settings would have no effect; call configure()"
                " before the first tensor goes to the GPU, best right after the imports"
            )
        value = os.environ.get(variable) or render(wanted)
        return Configured(variable, value, True, notes=("CUDA is in use, with these settings already",))
    try:
        merged = {**in_environment(os.environ), **wanted}
    except ValueError as error:
        raise AllocatorSettingsError(str(error)) from error
    value = render(merged)
    # One of the two, or half of the settings could come from either.
    os.environ.pop(OLD if variable == NEW else NEW, None)
    os.environ[variable] = value
    notes = _remarks(merged)
    if not check:
        return Configured(variable, value, notes=notes)
    missing = cuda_missing()
    actual = None if missing else read_back()
    if actual is None:
        why = missing or "this torch does not report its settings"
        return Configured(variable, value, notes=(*notes, f"not checked: {why}"))
    refused = _refused(wanted, actual)
    if refused:
        # Read before this call, or under a name that this build ignores: torch can also be told directly.
        _tell(value)
        refused = _refused(wanted, read_back() or actual)
    if refused:
        text = ", ".join(f"{key} is {got}" for key, got in refused.items())
        message = f"torch did not take {value} from {variable}: {text}"
        if strict:
            raise AllocatorSettingsError(message)
        warnings.warn(message, AllocatorSettingsWarning, stacklevel=2)
    return Configured(variable, value, True, refused, notes)


def _remarks(settings: dict[str, str]) -> tuple[str, ...]:
    """What is to be said of the settings, and of the cards that were chosen. What cannot have been meant is logged."""
    against, visible = warnings_for(settings), os.environ.get("CUDA_VISIBLE_DEVICES")
    cards = () if visible is None else (not_a_limit(visible),)
    for text in (*against, *(() if visible is None or lists_cards(visible) else cards)):
        say_once(text)
    return (*against, *cards)


def _torch_version() -> str | None:
    torch = sys.modules.get("torch")
    if torch is not None:
        return str(torch.__version__)
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("torch")
    except PackageNotFoundError:
        return None


def read_back() -> dict[str, Any] | None:
    """The settings that torch's allocator works with; None where this torch does not tell, or has no CUDA.

    Does not start CUDA.
    """
    try:
        found = torch_module()._C._cuda_memorySnapshot(None).get("allocator_settings")
    except (Unavailable, AttributeError, RuntimeError):
        return None
    return None if found is None else dict(found)


def _tell(value: str) -> None:
    names = ("_accelerator_setAllocatorSettings", "_cuda_cudaCachingAllocator_set_allocator_settings")
    setters = (getattr(torch_module()._C, name, None) for name in names)
    setter = next(filter(None, setters), None)
    try:
        if setter is not None:
            setter(value)
    except (RuntimeError, ValueError) as error:
        raise AllocatorSettingsError(f"torch rejects the allocator settings {value!r}: {error}") from error


# The names under which a snapshot reports, where they differ; sizes are in bytes there.
_REPORTED = {"max_split_size_mb": "max_split_size"}


def _refused(wanted: dict[str, str], actual: dict[str, Any], report_unknown: bool = False) -> dict[str, str]:
    """What torch has instead of what was wanted. Settings that are not part of its report, or are reported in a form
    of their own, count as taken, or with `report_unknown` as refused."""
    found: dict[str, str] = {}
    for key, value in wanted.items():
        reported = actual.get(_REPORTED.get(key, key))
        if reported is None or isinstance(reported, dict):
            found |= {key: "unknown"} if report_unknown else {}
        elif not _same(key, value, reported):
            found[key] = str(reported)
    return found


def _same(key: str, value: str, reported: Any) -> bool:
    if isinstance(reported, bool) or value.lower() in ("true", "false"):
        return str(reported).lower() == value.lower()
    try:
        number = float(value) * (1024**2 if key in _REPORTED else 1)
        return abs(float(reported) - number) <= 1e-6 * max(1.0, abs(number))
    except ValueError:
        return str(reported) == value
