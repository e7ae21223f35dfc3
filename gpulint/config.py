"""`[tool.gpulint]` in pyproject.toml, or gpulint.toml, as a checked `Config`.

The nearest configuration up the tree from a file is in force for it. `extend` names another configuration
whose keys are taken over where this one does not set them. What a selector such as ``GPU1`` stands for is
decided in `gpulint.lint.selection`; here a value is only known to be of the right form.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final

from gpulint.bounds import is_below
from gpulint.config_keys import (
    CONFIDENCES,
    KEYS,
    OUTPUT_FORMATS,
    ConfigError,
    Context,
    Glob,
    did_you_mean,
    is_version,
    nearest_rule,
    parse,
    shown,
)
from gpulint.findings import Confidence, Severity
from gpulint.source.files import FileError, read_bytes

__all__ = [
    "CONFIDENCES",
    "KEYS",
    "OUTPUT_FORMATS",
    "Config",
    "ConfigError",
    "ConfigResolver",
    "Context",
    "Glob",
    "Overrides",
    "did_you_mean",
    "is_version",
    "json_schema",
    "load_config",
    "nearest_rule",
    "parse_toml",
    "shown_path",
]

_MAX_SIZE: Final = 4_000_000  # bytes of a configuration
FILE_NAMES: Final = ("gpulint.toml", "pyproject.toml")


@dataclass(frozen=True, slots=True)
class Config:
    """The settings in force for a directory. `None` in `select` and `exclude` means the built-in default.

    `root` is the project: the directory of the configuration, or the one the command runs in. `origins` has
    for each field that was set what stands before its key in an error message.
    """

    root: str = ""
    source: str | None = None
    select: tuple[str, ...] | None = None
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    per_file_ignores: tuple[tuple[Glob, tuple[str, ...]], ...] = ()
    exclude: tuple[Glob, ...] | None = None
    extend_exclude: tuple[Glob, ...] = ()
    respect_gitignore: bool = True
    severity: Mapping[str, Severity] = field(default_factory=dict)
    confidence: Confidence = Confidence.HIGH
    fail_on: str = "warning"
    fixable: tuple[str, ...] | None = None
    unfixable: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    target_torch: str | None = None
    # What the command line said about rules, kept apart: it outranks the file's `select` and `ignore`
    # together.
    cli_select: tuple[str, ...] | None = None
    cli_extend_select: tuple[str, ...] = ()
    cli_ignore: tuple[str, ...] = ()
    # What a command asks of the configuration it is started under. Findings do not depend on it.
    fix: bool = field(default=False, repr=False)
    fix_only: bool = field(default=False, repr=False)
    unsafe_fixes: bool = field(default=False, repr=False)
    show_fixes: bool = field(default=False, repr=False)
    output_format: str = field(default="text", repr=False)
    baseline: str | None = field(default=None, repr=False)
    origins: Mapping[str, str] = field(default_factory=dict, compare=False)
    extended: tuple[str, ...] = field(default=(), compare=False, repr=False)  # the files that `extend` led to

    @classmethod
    def from_mapping(cls, data: Mapping[str, Any], root: str = "", source: str = "configuration") -> Config:
        """A configuration from the keys of a `[tool.gpulint]` table. Raises `ConfigError`."""
        root = os.path.abspath(root or os.curdir)
        if "extend" in data:
            raise ConfigError(f"{source}: extend: needs a file; use --config or a gpulint.toml")
        context = Context(f"{source}: ", root, root)
        values = parse(dict(data), context)
        return cls(root=root, **values, origins=dict.fromkeys(values, context.origin))

    def origin(self, key: str) -> str:
        """How an error message names `key`: the file that set it, and the key there."""
        return self.origins.get(key.split(".")[0].replace("-", "_"), "") + key


# What `Config` has fields of its own for, and what `apply` begins with.
_APART: Final = ("select", "extend_select", "ignore", "settings")


@dataclass(frozen=True, slots=True)
class Overrides:
    """What the command line sets, by the names of the configuration's keys. `None` and `()` leave the configuration's value.

    `settings` are keys and values as a configuration has them, `ignore = ["GPU5"]`: before the file, after the options.
    """

    select: tuple[str, ...] | None = None
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    per_file_ignores: Mapping[str, tuple[str, ...]] | None = None
    exclude: tuple[str, ...] = ()
    extend_exclude: tuple[str, ...] = ()
    fail_on: str | None = None
    target_torch: str | None = None
    confidence: str | None = None
    fixable: tuple[str, ...] | None = None
    unfixable: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()

    def apply(self, config: Config) -> Config:
        """The configuration with what is set here. Raises `ConfigError`."""
        here = os.getcwd()
        for text in self.settings:
            config = _with_setting(config, text, here)
        context = Context("--", here, here)
        values = parse(dict(self._as_keys()), context)
        if self.fixable is not None:
            config = replace(config, unfixable=())
        for name in values.keys() & {"extend_exclude", "unfixable"}:
            values[name] = (*getattr(config, name), *values[name])
        return replace(
            config,
            **values,
            cli_select=self.select,
            cli_extend_select=self.extend_select,
            cli_ignore=self.ignore,
            origins={**config.origins, **dict.fromkeys(values, context.origin)},
        )

    def _as_keys(self) -> Iterator[tuple[str, Any]]:
        """What is set and not kept apart, as a configuration would have it."""
        for one in fields(self):
            value = getattr(self, one.name)
            if one.name in _APART or value is None or value == ():
                continue
            if isinstance(value, Mapping):
                value = {key: list(codes) for key, codes in value.items()}
            yield one.name.replace("_", "-"), list(value) if isinstance(value, tuple) else value


def _with_setting(config: Config, text: str, here: str) -> Config:
    """A configuration with one more line, whose paths and patterns are relative to `here`."""
    try:
        table = parse_toml(text)
    except ValueError as error:
        raise ConfigError(f"--config: {text} is not valid TOML: {error}") from None
    if "extend" in table:
        raise ConfigError("--config: extend: needs a file; write it into a gpulint.toml")
    context = Context("--config: ", here, here)
    values = parse(table, context)
    return replace(config, **values, origins={**config.origins, **dict.fromkeys(values, context.origin)})


def shown_path(path: str) -> str:
    """`path` relative to the working directory where it lies below it, otherwise as it is."""
    here = os.getcwd()
    return os.path.relpath(path, here) if is_below(path, here) else path


def _read_table(path: str) -> dict[str, Any] | None:
    """The gpulint table of a configuration file, or None where a pyproject.toml has none."""
    try:
        raw = read_bytes(path, _MAX_SIZE)
    except FileError as error:
        raise ConfigError(f"{shown_path(path)}: {error.message}") from None
    in_pyproject = os.path.basename(path) == "pyproject.toml"
    if in_pyproject and b"gpulint" not in raw:
        return None
    try:
        data = parse_toml(raw.decode("utf-8-sig"))
    except ValueError as error:  # TOMLDecodeError and UnicodeDecodeError
        raise ConfigError(f"{shown_path(path)}: not valid TOML: {error}") from None
    if not in_pyproject:
        return data
    tool = data.get("tool")
    table = tool.get("gpulint") if isinstance(tool, dict) else None
    if table is not None and not isinstance(table, dict):
        raise ConfigError(f"{shown_path(path)}: tool.gpulint: expected a table")
    return table


def parse_toml(text: str) -> dict[str, Any]:
    """The tables of a TOML file. Raises ValueError where it is none."""
    from importlib import import_module

    toml = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    try:
        table: dict[str, Any] = toml.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except ValueError as error:
        if type(error) is ValueError:  # of Python's own, about its limit on digits
            raise ValueError("a number of thousands of digits") from None
        raise
    return table


def _load(path: str, base: str | None, seen: tuple[str, ...]) -> tuple[dict[str, Any], dict[str, str]] | None:
    """The fields that a file and those it extends set, and for each field the file that did."""
    table = _read_table(path)
    if table is None:
        return None
    directory = os.path.dirname(path)
    prefix = "tool.gpulint." if os.path.basename(path) == "pyproject.toml" else ""
    context = Context(f"{shown_path(path)}: {prefix}", directory, base or directory)
    own = parse(table, context)
    values, origins = _inherited(table, context, (*seen, os.path.realpath(path)))
    for name, value in own.items():
        older = values.get(name)
        if isinstance(value, dict) and isinstance(older, dict):
            value = {**older, **value}
        elif name == "per_file_ignores" and older:
            value = (*older, *value)
        values[name] = value
        origins[name] = context.origin
    return values, origins


def _inherited(
    table: dict[str, Any], context: Context, seen: tuple[str, ...]
) -> tuple[dict[str, Any], dict[str, str]]:
    if "extend" not in table:
        return {}, {}
    target = table["extend"]
    if not isinstance(target, str):
        raise context.error("extend", f"expected the path of a configuration, got {shown(target)}")
    if "\0" in target:
        raise context.error("extend", "there is a NUL in the path")
    path = os.path.normpath(os.path.join(context.directory, os.path.expanduser(target)))
    if os.path.realpath(path) in seen:
        raise context.error("extend", f"{target} extends this file in turn; take one of the two out")
    if not os.path.isfile(path):
        raise context.error("extend", f"{target} does not exist")
    loaded = _load(path, None, seen)
    if loaded is None:
        raise context.error("extend", f"{target} has no [tool.gpulint] table")
    values, origins = loaded
    return {**values, "extended": (path, *values.get("extended", ()))}, origins


def load_config(path: str, base: str | None = None) -> Config | None:
    """The configuration in the file at `path`; None for a pyproject.toml that does not mention gpulint.

    `base` is what its patterns are relative to, by default the file's directory. Raises `ConfigError`.
    """
    path = os.path.abspath(path)
    loaded = _load(path, base, ())
    if loaded is None:
        return None
    values, origins = loaded
    return Config(root=base or os.path.dirname(path), source=path, **values, origins=origins)


class ConfigResolver:
    """Answers which `Config` is in force in a directory, reading each file once."""

    def __init__(
        self, explicit: str | None = None, isolated: bool = False, overrides: Overrides | None = None
    ) -> None:
        self._overrides = overrides or Overrides()
        self._known: dict[str, Config] = {}
        self._fixed: Config | None = None
        if isolated:
            self._fixed = self._finished(Config(root=os.getcwd()))
        elif explicit is not None:
            config = load_config(explicit, os.getcwd())
            if config is None:
                raise ConfigError(f"{explicit}: has no [tool.gpulint] table")
            self._fixed = self._finished(config)

    @classmethod
    def of(cls, config: Config) -> ConfigResolver:
        """A resolver that always answers `config`."""
        resolver = cls(isolated=True)
        resolver._fixed = config
        return resolver

    def for_directory(self, directory: str) -> Config:
        """The configuration in force in the absolute path `directory`. Raises `ConfigError`."""
        if self._fixed is not None:
            return self._fixed
        passed: list[str] = []
        current = directory
        found: Config | None = None
        while found is None:
            if current in self._known:
                found = self._known[current]
                break
            passed.append(current)
            config = self._in(current)
            parent = os.path.dirname(current)
            if config is not None:
                found = self._finished(config)
            elif parent == current:
                found = self._finished(Config(root=_project_root(directory)))
            current = parent
        for step in passed:
            if is_below(step, found.root):
                self._known[step] = found
        return found

    def _in(self, directory: str) -> Config | None:
        for name in FILE_NAMES:
            path = os.path.join(directory, name)
            if os.path.isfile(path):
                config = load_config(path)
                if config is not None:
                    return config
        return None

    def _finished(self, config: Config) -> Config:
        return self._overrides.apply(config)


def _project_root(directory: str) -> str:
    """Without any configuration: the repository around `directory`, or the working directory."""
    current = directory
    while True:
        if os.path.exists(os.path.join(current, ".git")):
            return current
        parent = os.path.dirname(current)
        if parent == current:
            return os.getcwd()
        current = parent


def json_schema() -> dict[str, Any]:
    """A JSON schema of `[tool.gpulint]`, for editors."""
    properties = {name: {"description": key.help, **key.schema} for name, key in KEYS.items()}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "gpulint",
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
    }
