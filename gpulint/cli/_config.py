"""The text that `gpulint config` prints."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any

from gpulint.config import Config, ConfigError, ConfigResolver, Glob, json_schema, shown_path
from gpulint.lint.selection import BUILT_IN, Selection
from gpulint.source.discovery import DEFAULT_EXCLUDES


def schema_text() -> str:
    """The JSON schema of the configuration."""
    return json.dumps(json_schema(), indent=2) + "\n"


def settings_text(path: str, resolver: ConfigResolver) -> str:
    """The settings in force for the file or directory at `path`, as a gpulint.toml. Raises `ConfigError`."""
    absolute = os.path.abspath(path)
    if not os.path.exists(absolute):
        raise ConfigError(f"{path}: no such file or directory")
    directory = absolute if os.path.isdir(absolute) else os.path.dirname(absolute)
    selection = Selection(resolver.for_directory(directory))
    config = selection.config
    enabled = sorted(selection.codes_for(absolute) - set(BUILT_IN))
    source = shown_path(config.source) if config.source else "no configuration file"
    lines = [f"# {source}; project root {config.root}", *_settings(config, enabled)]
    for name, table in _tables(config, selection, absolute).items():
        lines += ["", f"[{name}]", *(f"{_key(key)} = {_value(value)}" for key, value in table.items())]
    return "\n".join(lines) + "\n"


def _settings(config: Config, enabled: list[str]) -> Iterable[str]:
    exclude = sorted(DEFAULT_EXCLUDES) if config.exclude is None else _patterns(config, config.exclude)
    settings: dict[str, Any] = {
        "select": enabled,
        "exclude": exclude,
        "extend-exclude": _patterns(config, config.extend_exclude),
        "respect-gitignore": config.respect_gitignore,
        "confidence": config.confidence.value,
        "fail-on": config.fail_on,
        "rules": [os.path.relpath(rule, config.root) for rule in config.rules],
        "fix": config.fix,
        "fix-only": config.fix_only,
        "unsafe-fixes": config.unsafe_fixes,
        "show-fixes": config.show_fixes,
        "unfixable": list(config.unfixable),
        "output-format": config.output_format,
    }
    if config.fixable is not None:
        settings["fixable"] = list(config.fixable)
    if config.baseline is not None:
        settings["baseline"] = os.path.relpath(config.baseline, config.root)
    if config.target_torch is not None:
        settings["target-torch"] = config.target_torch
    return (f"{name} = {_value(value)}" for name, value in settings.items())


def _tables(config: Config, selection: Selection, path: str) -> dict[str, dict[str, Any]]:
    tables: dict[str, dict[str, Any]] = {
        "per-file-ignores": {_pattern(config, glob): list(codes) for glob, codes in config.per_file_ignores},
        "severity": {code: severity.value for code, severity in config.severity.items()},
    }
    for code, options in selection.rules_for(path).options.items():
        tables[f"options.{code}"] = dict(options)
    return {name: table for name, table in tables.items() if table}


def _patterns(config: Config, globs: Iterable[Glob]) -> list[str]:
    return [_pattern(config, glob) for glob in globs]


def _pattern(config: Config, glob: Glob) -> str:
    """The pattern as it would stand in a configuration at the project's root."""
    if glob.base == config.root or "/" not in glob.pattern.rstrip("/"):
        return glob.pattern
    return os.path.join(os.path.relpath(glob.base, config.root), glob.pattern.lstrip("/")).removeprefix("./")


def _key(key: str) -> str:
    return key if key.replace("-", "").replace("_", "").isalnum() and key.isascii() else json.dumps(key)


def _value(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        short = ", ".join(map(_value, value))
        if len(short) < 90:
            return f"[{short}]"
        return "[\n" + "".join(f"    {_value(item)},\n" for item in value) + "]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(key)} = {_value(item)}" for key, item in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False)
