"""`configure`: the caching allocator's settings, in time and checked."""

from __future__ import annotations

import os
import sys
import warnings
from dataclasses import dataclass, field
from typing import Any

from gpulint.memory import alloc_conf
from gpulint.memory.device import Unavailable, cuda_missing, cuda_started, say_once, torch_module


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
        state = (
            "read back"
            if self.checked and not self.refused
            else "not taken"
            if self.refused
            else "not checked"
        )
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
    wanted = alloc_conf.from_keywords({"expandable_segments": expandable_segments, **settings})
    if cuda_started():
        if (actual := read_back()) is not None and not _refused(wanted, actual, report_unknown=True):
            return _in_force(wanted)
        raise AllocatorSettingsError(
            "CUDA is already in use in this process, so allocator settings would have no effect; call configure()"
            " before the first tensor goes to the GPU, best right after the imports"
        )
    variable = alloc_conf.variable_for(_torch_version())
    merged = {**_present(), **wanted}
    value = alloc_conf.render(merged)
    other = alloc_conf.OLD if variable == alloc_conf.NEW else alloc_conf.NEW
    # One of the two, or half of the settings could come from either.
    os.environ.pop(other, None)
    os.environ[variable] = value
    notes = _remarks(merged)
    if not check:
        return Configured(variable, value, notes=notes)
    missing = cuda_missing()
    if missing:
        return Configured(variable, value, notes=(*notes, f"not checked: {missing}"))
    return _checked(variable, value, wanted, notes, strict)


def _remarks(settings: dict[str, str]) -> tuple[str, ...]:
    """What is to be said of the settings, and of the cards that were chosen. What cannot have been meant is logged."""
    against, visible = alloc_conf.warnings_for(settings), os.environ.get("CUDA_VISIBLE_DEVICES")
    cards = () if visible is None else (alloc_conf.not_a_limit(visible),)
    wrong = cards if visible is not None and not alloc_conf.lists_cards(visible) else ()
    for text in (*against, *wrong):
        say_once(text)
    return (*against, *cards)


def _in_force(wanted: dict[str, str]) -> Configured:
    variable = alloc_conf.variable_for(_torch_version())
    value = os.environ.get(variable) or alloc_conf.render(wanted)
    return Configured(variable, value, checked=True, notes=("CUDA is in use, with these settings already",))


def _torch_version() -> str | None:
    torch = sys.modules.get("torch")
    if torch is not None:
        return str(torch.__version__)
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("torch")
    except PackageNotFoundError:
        return None


def _present() -> dict[str, str]:
    """Settings in the environment; of the two names the new one wins, as in torch."""
    found: dict[str, str] = {}
    for name in (alloc_conf.OLD, alloc_conf.NEW):
        try:
            found.update(alloc_conf.parse(os.environ.get(name, "")))
        except ValueError as error:
            raise AllocatorSettingsError(
                f"{name} is set to something that torch cannot read: {error}"
            ) from error
    return found


def _checked(
    variable: str, value: str, wanted: dict[str, str], notes: tuple[str, ...], strict: bool
) -> Configured:
    actual = read_back()
    if actual is None:
        return Configured(
            variable, value, notes=(*notes, "not checked: this torch does not report its settings")
        )
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
        warnings.warn(message, AllocatorSettingsWarning, stacklevel=4)
    return Configured(variable, value, True, refused, notes)


def read_back() -> dict[str, Any] | None:
    """The settings that torch's allocator works with; None where this torch does not tell, or has no CUDA.

    Does not start CUDA.
    """
    try:
        torch = torch_module()
        snapshot = torch._C._cuda_memorySnapshot
    except (Unavailable, AttributeError):
        return None
    try:
        found = snapshot(None).get("allocator_settings")
    except RuntimeError:
        return None
    return dict(found) if found is not None else None


def _tell(value: str) -> None:
    torch = torch_module()
    for name in ("_accelerator_setAllocatorSettings", "_cuda_cudaCachingAllocator_set_allocator_settings"):
        setter = getattr(torch._C, name, None)
        if setter is not None:
            try:
                setter(value)
            except (RuntimeError, ValueError) as error:
                raise AllocatorSettingsError(
                    f"torch rejects the allocator settings {value!r}: {error}"
                ) from error
            return


# The names under which a snapshot reports, where they differ; sizes are in bytes there.
_REPORTED = {"max_split_size_mb": "max_split_size"}


def _refused(wanted: dict[str, str], actual: dict[str, Any], report_unknown: bool = False) -> dict[str, str]:
    """What torch has instead of what was wanted. Settings that are not part of its report, or are reported in a form
    of their own, count as taken, or with `report_unknown` as refused."""
    found = {}
    for key, value in wanted.items():
        reported = actual.get(_REPORTED.get(key, key))
        if reported is None or isinstance(reported, dict):
            if report_unknown:
                found[key] = "unknown"
            continue
        if not _same(key, value, reported):
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
