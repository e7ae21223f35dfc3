"""`[tool.gpulint]` in pyproject.toml, or gpulint.toml, as a checked `Config`.

The nearest configuration up the tree from a file is in force for it. `extend` names another configuration
whose keys are taken over where this one does not set them. What a selector such as ``GPU1`` stands for is
decided in `gpulint.lint.selection`; here a value is only known to be of the right form.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from gpulint.findings import Confidence, Severity

FILE_NAMES: Final = ("gpulint.toml", "pyproject.toml")
FAIL_ON: Final = ("error", "warning", "info", "never")
CONFIDENCES: Final = tuple(level.value for level in Confidence)
_SELECTOR: Final = re.compile(r"[A-Z]+[0-9]*")
_VERSION: Final = re.compile(r"[0-9]+\.[0-9]+(\.[0-9]+)?")


class ConfigError(Exception):
    """A configuration or a command-line setting is wrong: one sentence that names the place and what to write."""


@dataclass(frozen=True, slots=True)
class Glob:
    """A pattern in gitignore syntax, relative to the directory `base`."""

    base: str
    pattern: str


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
    fail_on: str = "info"
    rules: tuple[str, ...] = ()
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    target_torch: str | None = None
    # What the command line said about rules, kept apart: it outranks the file's `select` and `ignore`
    # together.
    cli_select: tuple[str, ...] | None = None
    cli_extend_select: tuple[str, ...] = ()
    cli_ignore: tuple[str, ...] = ()
    origins: Mapping[str, str] = field(default_factory=dict, compare=False)
    extended: tuple[str, ...] = field(default=(), compare=False, repr=False)  # the files that `extend` led to

    @classmethod
    def from_mapping(cls, data: Mapping[str, Any], root: str = "", source: str = "configuration") -> Config:
        """A configuration from the keys of a `[tool.gpulint]` table. Raises `ConfigError`."""
        root = os.path.abspath(root or os.curdir)
        if "extend" in data:
            raise ConfigError(f"{source}: extend: needs a file; use --config or a gpulint.toml")
        values = _parse(dict(data), _Context(source, "", root, root))
        return cls(root=root, **values, origins=dict.fromkeys(values, f"{source}: "))

    def origin(self, key: str) -> str:
        """How an error message names `key`: the file that set it, and the key there."""
        return self.origins.get(key.split(".")[0].replace("-", "_"), "") + key


@dataclass(frozen=True, slots=True)
class Overrides:
    """What the command line sets. `None` leaves the configuration's value."""

    select: tuple[str, ...] | None = None
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    exclude: tuple[str, ...] | None = None
    extend_exclude: tuple[str, ...] = ()
    fail_on: str | None = None
    target_torch: str | None = None
    confidence: str | None = None

    def apply(self, config: Config) -> Config:
        here = os.getcwd()
        changes: dict[str, Any] = {
            "cli_select": self.select,
            "cli_extend_select": self.extend_select,
            "cli_ignore": self.ignore,
        }
        if self.exclude is not None:
            changes["exclude"] = tuple(Glob(here, pattern) for pattern in self.exclude)
        if self.extend_exclude:
            extra = tuple(Glob(here, pattern) for pattern in self.extend_exclude)
            changes["extend_exclude"] = (*config.extend_exclude, *extra)
        if self.fail_on is not None:
            changes["fail_on"] = self.fail_on
        if self.target_torch is not None:
            if not is_version(self.target_torch):
                raise ConfigError(
                    f'--target-torch: expected a version such as 2.4, got "{self.target_torch}"'
                )
            changes["target_torch"] = self.target_torch
        if self.confidence is not None:
            changes["confidence"] = Confidence(self.confidence)
        return replace(config, **changes)


@dataclass(frozen=True, slots=True)
class _Context:
    """Where a table stands: the file as shown, the prefix of its keys, and what relative paths are relative to."""

    file: str
    prefix: str
    directory: str  # of the file: for paths of other files
    base: str  # for glob patterns

    def error(self, key: str, message: str) -> ConfigError:
        return ConfigError(f"{self.file}: {self.prefix}{key}: {message}")


@dataclass(frozen=True, slots=True)
class Key:
    """One setting: how a value is checked and turned into the `Config` field, its JSON schema, its help, and a value as TOML."""

    parse: Callable[[_Context, str, Any], Any]
    schema: Mapping[str, Any]
    help: str
    example: str


def did_you_mean(word: str, candidates: Sequence[str]) -> str:
    """``; did you mean "select"?``, or nothing where no candidate is near."""
    import difflib

    folded = {candidate.casefold(): candidate for candidate in candidates}
    near = difflib.get_close_matches(word.casefold().replace("_", "-"), list(folded), n=1, cutoff=0.5)
    return f'; did you mean "{folded[near[0]]}"?' if near else ""


def _strings(context: _Context, key: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise context.error(key, f'expected a list of strings such as ["a", "b"], got {_shown(value)}')
    return tuple(value)


def _selectors(context: _Context, key: str, value: Any) -> tuple[str, ...]:
    for item in (found := _strings(context, key, value)):
        if not _SELECTOR.fullmatch(item):
            hint = f'; did you mean "{item.upper()}"?' if _SELECTOR.fullmatch(item.upper()) else ""
            raise context.error(key, f'"{item}" is no rule code, prefix or ALL{hint}')
    return found


def _base(context: _Context, key: str, value: Any) -> tuple[str, ...]:
    found = _selectors(context, key, value)
    if not found:
        raise context.error(
            key,
            'names no rule, so nothing would be checked; take it out for the default rules, or list some: ["GPU1"]',
        )
    return found


def _globs(context: _Context, key: str, value: Any) -> tuple[Glob, ...]:
    return tuple(Glob(context.base, item) for item in _strings(context, key, value))


def _paths(context: _Context, key: str, value: Any) -> tuple[str, ...]:
    found = tuple(
        os.path.normpath(os.path.join(context.directory, item)) for item in _strings(context, key, value)
    )
    for path in found:
        if not os.path.exists(path):
            raise context.error(key, f"{path} does not exist")
    return found


def _table(context: _Context, key: str, value: Any, example: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise context.error(key, f"expected a table such as {example}, got {_shown(value)}")
    return value


def _per_file(context: _Context, key: str, value: Any) -> tuple[tuple[Glob, tuple[str, ...]], ...]:
    table = _table(context, key, value, '{ "tests/*" = ["GPU1"] }')
    return tuple(
        (Glob(context.base, pattern), _selectors(context, f'{key}."{pattern}"', codes))
        for pattern, codes in table.items()
    )


def _severities(context: _Context, key: str, value: Any) -> dict[str, Severity]:
    table = _table(context, key, value, '{ GPU101 = "warning" }')
    _selectors(context, key, list(table))
    return {
        code: Severity(_choice(context, f"{key}.{code}", level, FAIL_ON[:3])) for code, level in table.items()
    }


def _options(context: _Context, key: str, value: Any) -> dict[str, dict[str, Any]]:
    table = _table(context, key, value, "{ GPU101 = { ... } }")
    return {code: dict(_table(context, f"{key}.{code}", given, "{ ... }")) for code, given in table.items()}


def _choice(context: _Context, key: str, value: Any, choices: Sequence[str]) -> str:
    if value in choices and isinstance(value, str):
        return value
    listed = ", ".join(f'"{choice}"' for choice in choices)
    hint = did_you_mean(value, choices) if isinstance(value, str) else ""
    raise context.error(key, f"expected one of {listed}, got {_shown(value)}{hint}")


def _fail_on(context: _Context, key: str, value: Any) -> str:
    return _choice(context, key, value, FAIL_ON)


def _confidence(context: _Context, key: str, value: Any) -> Confidence:
    return Confidence(_choice(context, key, value, CONFIDENCES))


def _boolean(context: _Context, key: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise context.error(key, f"expected true or false, got {_shown(value)}")
    return value


def _torch_version(context: _Context, key: str, value: Any) -> str:
    if not isinstance(value, str) or not is_version(value):
        raise context.error(key, f'expected a version such as "2.4", got {_shown(value)}')
    return value


def is_version(text: str) -> bool:
    """Whether a text is a version of torch, as `target-torch` takes it."""
    return _VERSION.fullmatch(text) is not None


def _shown(value: Any) -> str:
    return (
        f'"{value}"'
        if isinstance(value, str)
        else str(value).lower()
        if isinstance(value, bool)
        else repr(value)
    )


_CODES_SCHEMA: Final = {"type": "array", "items": {"type": "string", "pattern": "^[A-Z]+[0-9]*$"}}
_STRINGS_SCHEMA: Final = {"type": "array", "items": {"type": "string"}}

KEYS: Final[Mapping[str, Key]] = {
    "extend": Key(
        lambda *_: None,
        {"type": "string"},
        "A configuration whose keys hold where this one sets none.",
        '"../gpulint.toml"',
    ),
    "select": Key(
        _base,
        {**_CODES_SCHEMA, "minItems": 1},
        "Rules in force, as codes, prefixes or ALL.",
        '["GPU1", "GPU201"]',
    ),
    "extend-select": Key(_selectors, _CODES_SCHEMA, "Rules in force besides `select`.", '["GPU406"]'),
    "ignore": Key(
        _selectors,
        _CODES_SCHEMA,
        "Rules not in force; the more specific of two selectors wins.",
        '["GPU5"]',
    ),
    "per-file-ignores": Key(
        _per_file,
        {"type": "object", "additionalProperties": _CODES_SCHEMA},
        "Rules not in force in the files that match a pattern.",
        '{ "tests/*" = ["GPU201"], "scripts/probe.py" = ["ALL"] }',
    ),
    "exclude": Key(
        _globs,
        _STRINGS_SCHEMA,
        "Patterns in gitignore syntax left out when directories are searched.",
        '[".venv", "build", "/data/"]',
    ),
    "extend-exclude": Key(_globs, _STRINGS_SCHEMA, "Patterns left out besides `exclude`.", '["third_party"]'),
    "respect-gitignore": Key(
        _boolean, {"type": "boolean"}, "Whether files ignored by git are left out.", "false"
    ),
    "severity": Key(
        _severities,
        {"type": "object", "additionalProperties": {"enum": list(FAIL_ON[:3])}},
        "The severity of a rule, or of all rules with a prefix.",
        '{ GPU201 = "error", GPU5 = "info" }',
    ),
    "fail-on": Key(
        _fail_on,
        {"enum": list(FAIL_ON)},
        "The least severity of a finding that makes the exit status 1.",
        '"warning"',
    ),
    "confidence": Key(
        _confidence,
        {"enum": list(CONFIDENCES)},
        "The least confidence of a finding that is reported: with `medium` also those with one doubt that the code does not settle, with `low` all.",
        '"low"',
    ),
    "rules": Key(
        _paths, _STRINGS_SCHEMA, "Files or directories with the project's own rules.", '["tools/lint"]'
    ),
    "options": Key(
        _options,
        {"type": "object", "additionalProperties": {"type": "object"}},
        "Settings of single rules, one table a rule.",
        '{ GPU101 = { style = "detach" } }',
    ),
    "target-torch": Key(
        _torch_version,
        {"type": "string", "pattern": f"^{_VERSION.pattern}$"},
        "The oldest torch version the code has to work with.",
        '"2.4"',
    ),
}


def _parse(table: dict[str, Any], context: _Context) -> dict[str, Any]:
    """The fields of `Config` that a table sets."""
    found: dict[str, Any] = {}
    for key, value in table.items():
        if key not in KEYS:
            raise context.error(key, f"unknown key{did_you_mean(key, list(KEYS))}")
        if key != "extend":
            found[key.replace("-", "_")] = KEYS[key].parse(context, key, value)
    return found


def shown_path(path: str) -> str:
    """`path` relative to the working directory where it lies below it, otherwise as it is."""
    here = os.getcwd()
    return os.path.relpath(path, here) if _is_below(path, here) else path


def _read_table(path: str) -> dict[str, Any] | None:
    """The gpulint table of a configuration file, or None where a pyproject.toml has none."""
    try:
        with open(path, "rb") as stream:
            raw = stream.read()
    except OSError as error:
        raise ConfigError(f"{shown_path(path)}: cannot be read: {error.strerror or error}") from None
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
    table: dict[str, Any] = toml.loads(text)
    return table


def _load(path: str, base: str | None, seen: tuple[str, ...]) -> tuple[dict[str, Any], dict[str, str]] | None:
    """The fields that a file and those it extends set, and for each field the file that did."""
    table = _read_table(path)
    if table is None:
        return None
    shown = shown_path(path)
    directory = os.path.dirname(path)
    prefix = "tool.gpulint." if os.path.basename(path) == "pyproject.toml" else ""
    context = _Context(shown, prefix, directory, base or directory)
    own = _parse(table, context)
    label = f"{shown}: {prefix}"
    values, origins = _inherited(table, context, (*seen, os.path.realpath(path)))
    for name, value in own.items():
        older = values.get(name)
        if isinstance(value, dict) and isinstance(older, dict):
            value = {**older, **value}
        elif name == "per_file_ignores" and older:
            value = (*older, *value)
        values[name] = value
        origins[name] = label
    return values, origins


def _inherited(
    table: dict[str, Any], context: _Context, seen: tuple[str, ...]
) -> tuple[dict[str, Any], dict[str, str]]:
    if "extend" not in table:
        return {}, {}
    target = table["extend"]
    if not isinstance(target, str):
        raise context.error("extend", f"expected the path of a configuration, got {_shown(target)}")
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
            if _is_below(step, found.root):
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


def _is_below(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory.rstrip(os.sep) + os.sep)


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
