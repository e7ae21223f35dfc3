"""What an editor may set: `initializationOptions`, or the `gpulint` section of a changed configuration."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from gpulint.config import CONFIDENCES, Overrides

_KNOWN: Final = ("select", "ignore", "confidence", "unsafeFixes")


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """`overrides` outrank the configuration files; `unsafe_fixes` lets "fix all" apply unsafe ones too. `problems` are
    sentences about settings that were passed over."""

    overrides: Overrides = field(default_factory=Overrides)
    unsafe_fixes: bool = False
    problems: tuple[str, ...] = ()


def read_options(given: Any) -> ServerOptions:
    """The options in a client's JSON. What has the wrong form is passed over and told."""
    if given is None:
        return ServerOptions()
    if not isinstance(given, dict):
        return ServerOptions(problems=("the settings are no object",))
    settings = given.get("gpulint", given)
    if not isinstance(settings, dict):
        return ServerOptions(problems=("the setting gpulint is no object",))
    problems = [f"unknown setting {name!r}" for name in settings if name not in _KNOWN]
    select = _codes(settings, "select", problems)
    ignore = _codes(settings, "ignore", problems) or ()
    confidence = settings.get("confidence")
    if confidence is not None and confidence not in CONFIDENCES:
        problems.append('confidence: expected "high", "medium" or "low"')
        confidence = None
    unsafe = settings.get("unsafeFixes")
    if unsafe is not None and not isinstance(unsafe, bool):
        problems.append("unsafeFixes: expected true or false")
    overrides = Overrides(select=select, ignore=ignore, confidence=confidence)
    return ServerOptions(overrides, unsafe is True, tuple(problems))


def _codes(settings: dict[str, Any], name: str, problems: list[str]) -> tuple[str, ...] | None:
    value = settings.get(name)
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        problems.append(f'{name}: expected a list of codes or prefixes such as ["GPU1", "GPU201"]')
        return None
    return tuple(value)
