"""The keys of `[tool.gpulint]`: how each value is checked, what it is for, and what to say of a wrong one.

What a selector such as ``GPU1`` stands for is decided in `gpulint.lint.selection`; here it is only known to be of the
right form.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gpulint.findings import Confidence, Severity

FAIL_ON: Final = ("error", "warning", "info", "never")
CONFIDENCES: Final = tuple(level.value for level in Confidence)
OUTPUT_FORMATS: Final = (
    "text", "concise", "json", "json-lines", "github", "gitlab", "junit", "sarif", "grouped", "pylint",
)  # fmt: skip
_SELECTOR: Final = re.compile(r"[A-Z]+[0-9]*|[a-z][a-z0-9]*(-[a-z0-9]+)*")
_CODE: Final = re.compile(r"[A-Z]+[0-9]+", re.IGNORECASE)
_LISTED: Final = "; gpulint rules lists them"
_VERSION: Final = re.compile(r"[0-9]{1,4}\.[0-9]{1,4}(\.[0-9]{1,4})?")


class ConfigError(Exception):
    """A configuration or a command-line setting is wrong: one sentence that names the place and what to write."""


@dataclass(frozen=True, slots=True)
class Glob:
    """A pattern in gitignore syntax, relative to the directory `base`."""

    base: str
    pattern: str


@dataclass(frozen=True, slots=True)
class Context:
    """Where a table stands: what comes before a key in an error message, and what relative paths are relative to."""

    origin: str
    directory: str  # of the file: for paths of other files
    base: str  # for glob patterns

    def error(self, key: str, message: str) -> ConfigError:
        return ConfigError(f"{self.place(key)}: {message}")

    def place(self, key: str) -> str:
        return f"{self.origin}{key}"


@dataclass(frozen=True, slots=True)
class Key:
    """One setting: how a value is checked and turned into the `Config` field, its JSON schema, its help, and a value as TOML."""

    parse: Callable[[Context, str, Any], Any]
    schema: Mapping[str, Any]
    help: str
    example: str


def did_you_mean(word: str, candidates: Sequence[str]) -> str:
    """``; did you mean "select"?``, or nothing where no candidate is near."""
    import difflib

    folded = {candidate.casefold(): candidate for candidate in candidates}
    lowered = word.casefold().replace("_", "-")
    near = difflib.get_close_matches(lowered, list(folded), n=1, cutoff=0.6)
    near = near or [name for name in folded if len(lowered) > 2 and name.startswith(lowered)]
    return f'; did you mean "{folded[near[0]]}"?' if near else ""


def nearest_rule(word: str, names: Mapping[str, str]) -> str:
    """What to say beside a selector that no rule has; `names` are the rules' names by code.

    A code is near another where a digit is doubled, left out or swapped: any other that begins alike would be a guess.
    """
    by_name = {name: code for code, name in names.items() if name}
    lowered = word.casefold().replace("_", "-")
    if lowered in by_name or word.upper() in names:
        return f'; did you mean "{by_name.get(lowered, word.upper())}"?'
    upper = word.upper()
    if word != upper and (upper == "ALL" or any(code.startswith(upper) for code in names)):
        return f'; did you mean "{upper}"?'
    if not _CODE.fullmatch(word):
        return did_you_mean(word, [*by_name, *names]) or _LISTED
    near = [code for code in names if code != word.upper() and _is_slip(word.upper(), code)]
    return f'; did you mean "{near[0]}"?' if near else _LISTED


def _is_slip(word: str, code: str) -> bool:
    shorter, longer = sorted((word, code), key=len)
    if len(shorter) == len(longer):
        return sorted(word) == sorted(code)
    return any(longer[:at] + longer[at + 1 :] == shorter for at in range(len(longer)))


def _strings(context: Context, key: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise context.error(key, f'expected a list of strings such as ["a", "b"], got {shown(value)}')
    return tuple(value)


def _selectors(context: Context, key: str, value: Any) -> tuple[str, ...]:
    for item in (found := _strings(context, key, value)):
        if not _SELECTOR.fullmatch(item):
            hint = f'; did you mean "{item.upper()}"?' if _SELECTOR.fullmatch(item.upper()) else ""
            raise context.error(key, f'"{item}" is no rule\'s code or name, prefix or ALL{hint}')
    return found


def _base(context: Context, key: str, value: Any) -> tuple[str, ...]:
    found = _selectors(context, key, value)
    if not found:
        raise context.error(
            key,
            'names no rule, so nothing would be checked; take it out for the default rules, or list some: ["GPU1"]',
        )
    return found


def _globs(context: Context, key: str, value: Any) -> tuple[Glob, ...]:
    return tuple(glob(item, context.base, context.place(key)) for item in _strings(context, key, value))


def glob(pattern: str, base: str, place: str) -> Glob:
    """A pattern that can be matched. Raises `ConfigError`, which begins with `place`."""
    from gpulint.source.patterns import UnreadablePattern, ignore_spec

    try:
        ignore_spec([pattern])
    except UnreadablePattern:
        raise ConfigError(f"{place}: {shown(pattern)} is no pattern that git could read") from None
    return Glob(base, pattern)


def _paths(context: Context, key: str, value: Any) -> tuple[str, ...]:
    found = tuple(
        os.path.normpath(os.path.join(context.directory, item)) for item in _strings(context, key, value)
    )
    for path in found:
        if not os.path.exists(path):
            raise context.error(key, f"{path} does not exist")
    return found


def _table(context: Context, key: str, value: Any, example: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise context.error(key, f"expected a table such as {example}, got {shown(value)}")
    return value


def _per_file(context: Context, key: str, value: Any) -> tuple[tuple[Glob, tuple[str, ...]], ...]:
    table = _table(context, key, value, '{ "tests/*" = ["GPU1"] }')
    return tuple(
        (glob(pattern, context.base, context.place(key)), _selectors(context, f'{key}."{pattern}"', codes))
        for pattern, codes in table.items()
    )


def _severities(context: Context, key: str, value: Any) -> dict[str, Severity]:
    table = _table(context, key, value, '{ GPU101 = "warning" }')
    _selectors(context, key, list(table))
    return {
        code: Severity(_choice(context, f"{key}.{code}", level, FAIL_ON[:3])) for code, level in table.items()
    }


def _options(context: Context, key: str, value: Any) -> dict[str, dict[str, Any]]:
    table = _table(context, key, value, "{ GPU101 = { ... } }")
    return {code: dict(_table(context, f"{key}.{code}", given, "{ ... }")) for code, given in table.items()}


def _choice(context: Context, key: str, value: Any, choices: Sequence[str]) -> str:
    if value in choices and isinstance(value, str):
        return value
    listed = ", ".join(f'"{choice}"' for choice in choices)
    hint = did_you_mean(value, choices) if isinstance(value, str) else ""
    raise context.error(key, f"expected one of {listed}, got {shown(value)}{hint}")


def _file(context: Context, key: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise context.error(key, f"expected the path of a file, got {shown(value)}")
    return os.path.normpath(os.path.join(context.directory, value))


def _boolean(context: Context, key: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise context.error(key, f"expected true or false, got {shown(value)}")
    return value


def _torch_version(context: Context, key: str, value: Any) -> str:
    if not isinstance(value, str) or not is_version(value):
        raise context.error(key, f'expected a version such as "2.4", got {shown(value)}')
    return value


def is_version(text: str) -> bool:
    """Whether a text is a version of torch, as `target-torch` takes it."""
    return _VERSION.fullmatch(text) is not None


def shown(value: Any) -> str:
    return (
        f'"{value}"'
        if isinstance(value, str)
        else str(value).lower()
        if isinstance(value, bool)
        else repr(value)
    )


_CODES_SCHEMA: Final = {"type": "array", "items": {"type": "string", "pattern": f"^({_SELECTOR.pattern})$"}}
_STRINGS_SCHEMA: Final = {"type": "array", "items": {"type": "string"}}


def _codes(help: str, example: str) -> Key:
    return Key(_selectors, _CODES_SCHEMA, help, example)


def _switch(help: str, example: str = "true") -> Key:
    return Key(_boolean, {"type": "boolean"}, help, example)


def _one_of(choices: Sequence[str], help: str, example: str, kind: Callable[[str], Any] = str) -> Key:
    def parsed(context: Context, key: str, value: Any) -> Any:
        return kind(_choice(context, key, value, choices))

    return Key(parsed, {"enum": list(choices)}, help, example)


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
        "Rules in force, as codes, prefixes, names or ALL.",
        '["GPU1", "GPU201"]',
    ),
    "extend-select": _codes("Rules in force besides `select`.", '["GPU406"]'),
    "ignore": _codes("Rules not in force; the more specific of two selectors wins.", '["GPU5"]'),
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
    "respect-gitignore": _switch("Whether files ignored by git are left out.", "false"),
    "severity": Key(
        _severities,
        {"type": "object", "additionalProperties": {"enum": list(FAIL_ON[:3])}},
        "The severity of a rule, or of all rules with a prefix.",
        '{ GPU201 = "error", GPU5 = "info" }',
    ),
    "fail-on": _one_of(FAIL_ON, "The least severity of a finding that makes the exit status 1.", '"error"'),
    "fix": _switch("Apply safe fixes, as `--fix`; `--no-fix` does not."),
    "fix-only": _switch("Apply fixes and tell of nothing that is left, as `--fix-only`."),
    "unsafe-fixes": _switch("Where fixes are applied or shown, unsafe ones too."),
    "show-fixes": _switch("List what was fixed, as `--show-fixes`."),
    "fixable": _codes("Rules whose fixes may be applied.", '["GPU1"]'),
    "unfixable": _codes(
        "Rules whose fixes are never applied; the more specific of two selectors wins.", '["GPU201"]'
    ),
    "output-format": _one_of(OUTPUT_FORMATS, "The form of the report.", '"concise"'),
    "baseline": Key(
        _file,
        {"type": "string", "minLength": 1},
        "The file of findings that are accepted, as `--baseline`.",
        '"gpulint-baseline.json"',
    ),
    "confidence": _one_of(
        CONFIDENCES,
        "The least confidence of a finding that is reported: with `low` also those that leave anything open.",
        '"low"',
        Confidence,
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


def parse(table: dict[str, Any], context: Context) -> dict[str, Any]:
    """The fields of `Config` that a table sets."""
    found: dict[str, Any] = {}
    for key, value in table.items():
        if key not in KEYS:
            raise context.error(key, f"unknown key{did_you_mean(key, list(KEYS))}")
        if key != "extend":
            found[key.replace("-", "_")] = KEYS[key].parse(context, key, value)
    return found
