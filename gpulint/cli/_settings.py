"""The settings in force for a file or directory, as the gpulint.toml that would set them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any, Final

from gpulint.config import Config, ConfigError, ConfigResolver, Glob, shown_path
from gpulint.lint.selection import BUILT_IN, Selection
from gpulint.source.discovery import DEFAULT_EXCLUDES

_WIDEST: Final = 90  # columns of a list in one line
_KEYS: Final = (
    *("exclude", "extend-exclude", "respect-gitignore", "confidence", "fail-on", "rules", "fix", "fix-only"),
    *("unsafe-fixes", "show-fixes", "unfixable", "output-format", "fixable", "baseline", "target-torch"),
)


def settings_text(path: str, resolver: ConfigResolver) -> str:
    """The settings in force for what is at `path`. Raises `ConfigError`."""
    absolute = os.path.abspath(path)
    if not os.path.exists(absolute):
        raise ConfigError(f"{path}: no such file or directory")
    directory = absolute if os.path.isdir(absolute) else os.path.dirname(absolute)
    selection = Selection(resolver.for_directory(directory))
    return "\n".join(_lines(selection, absolute)) + "\n"


def _lines(selection: Selection, path: str) -> Iterator[str]:
    config = selection.config
    source = shown_path(config.source) if config.source else "no configuration file"
    yield f"# {source}; project root {config.root}"
    settings = {key: getattr(config, key.replace("-", "_")) for key in _KEYS}
    settings["exclude"] = sorted(DEFAULT_EXCLUDES) if config.exclude is None else config.exclude
    settings["rules"] = [os.path.relpath(rule, config.root) for rule in config.rules]
    settings["baseline"] = config.baseline and os.path.relpath(config.baseline, config.root)
    settings = {"select": sorted(selection.codes_for(path) - set(BUILT_IN)), **settings}
    yield from _keys(config, {key: value for key, value in settings.items() if value is not None})
    ignored = {_plain(config, glob): codes for glob, codes in config.per_file_ignores}
    tables: dict[str, Mapping[str, Any]] = {"per-file-ignores": ignored, "severity": config.severity}
    tables |= {f"options.{code}": given for code, given in selection.rules_for(path).options.items()}
    for name, table in tables.items():
        if table:
            yield from ("", f"[{name}]", *_keys(config, table))


def _keys(config: Config, table: Mapping[str, Any]) -> Iterator[str]:
    return (f"{_key(key)} = {_value(_plain(config, value))}" for key, value in table.items())


def _plain(config: Config, value: Any) -> Any:
    """What TOML has a form for; a pattern as it would stand in a configuration at the project's root."""
    if isinstance(value, Glob):
        if value.base == config.root or "/" not in value.pattern.rstrip("/"):
            return value.pattern
        below = os.path.relpath(value.base, config.root)
        return os.path.join(below, value.pattern.lstrip("/")).removeprefix("./")
    if isinstance(value, (list, tuple)):
        return [_plain(config, item) for item in value]
    return value.value if isinstance(value, Enum) else value


def _key(key: str) -> str:
    return key if key.replace("-", "").replace("_", "").isalnum() and key.isascii() else json.dumps(key)


def _value(value: Any) -> str:
    if isinstance(value, list):
        short = ", ".join(map(_value, value))
        if len(short) < _WIDEST:
            return f"[{short}]"
        return "[\n" + "".join(f"    {_value(item)},\n" for item in value) + "]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(key)} = {_value(item)}" for key, item in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False)
