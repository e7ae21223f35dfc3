"""Which rules are in force for a file, and with which options."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property, lru_cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import gpulint.rules

from gpulint.config import Config, ConfigError, Glob, did_you_mean, is_version, nearest_rule
from gpulint.findings import Finding, Severity

if TYPE_CHECKING:
    from gpulint.rule import Rule, RuleSet

# Codes that no rule file stands for: what cannot be read or parsed, and suppressions that suppress nothing.
BUILT_IN: Final = {"GPU000": "invalid-file", "GPU001": "unused-suppression"}


class Selection:
    """The rules of a configuration, checked against the rules that exist.

    Raises `ConfigError` for an unknown code, prefix or option, naming the file, the key and the nearest right
    one. gpulint's own rules are only imported once a file may have something that they find, or a setting asks for more than names.
    """

    def __init__(self, config: Config) -> None:
        self._own = _rules_in(config.rules, config.origin("rules"))
        self.names = {**shipped_names(), **{rule.code: rule.name for rule in self._own}}
        self.config = config = _in_codes(config, self.names)
        self._check_selectors()
        self._check_options()
        self._refuse_to_check_nothing()
        self._cached: dict[frozenset[str], RuleSet] = {}

    @cached_property
    def known(self) -> tuple[type[Rule], ...]:
        """All rules, in force or not."""
        return known_rules(self.config)

    def may_fire(self, raw: bytes) -> bool:
        """Whether the bytes of a file have anything that a rule needs, as far as that is known without the rules."""
        return bool(self._own) or any(word in raw for word in gpulint.rules.MENTIONS)

    def codes_for(self, path: str) -> frozenset[str]:
        """The codes in force in the file at the absolute `path`, GPU000 and GPU001 included."""
        ignored = self.config.per_file_ignores
        off = [code for glob, codes in ignored if _covers(glob, path) for code in codes]
        if not off:
            return self._enabled
        return frozenset(code for code in self._enabled if _specificity(code, off) < 0)

    def rules_for(self, path: str) -> RuleSet:
        """The rules in force in the file at the absolute `path`."""
        codes = self.codes_for(path)
        if codes not in self._cached:
            from gpulint.rule import RuleSet

            rules = tuple(rule for rule in self.known if rule.code in codes)
            options = {rule.code: self._options[rule.code] for rule in rules}
            self._cached[codes] = RuleSet(rules, options, self.config.confidence, self.names)
        return self._cached[codes]

    def graded(self, findings: Iterable[Finding]) -> list[Finding]:
        """The findings with the severities that the configuration gives, and without the fixes that it forbids."""
        levels = self.config.severity
        fixed = self.config.fixable is None and not self.config.unfixable
        return [
            _with_severity(
                finding if fixed or self._is_fixable(finding.code) else replace(finding, fix=None), levels
            )
            for finding in findings
        ]

    def _is_fixable(self, code: str) -> bool:
        fixable = self.config.fixable
        wanted = 0 if fixable is None else _specificity(code, fixable)
        return wanted > _specificity(code, self.config.unfixable)

    @cached_property
    def _enabled(self) -> frozenset[str]:
        """The codes in force where no file's own settings say otherwise."""
        config = self.config
        base = config.select if config.cli_select is None else config.cli_select
        defaults = {*BUILT_IN, *(rule.code for rule in self.known if rule.default)} if base is None else set()
        extend = config.cli_extend_select
        ignore = config.cli_ignore
        if config.cli_select is None:
            extend = (*config.extend_select, *extend)
            ignore = (*config.ignore, *ignore)
        enabled: set[str] = set()
        for code in self.names:
            # A file that cannot be read is told about whatever is selected, unless it is ignored by name.
            chosen = (*(base or ()), *extend, *(("GPU000",) if code == "GPU000" else ()))
            for_it = max(_specificity(code, chosen), 0 if base is None and code in defaults else -1)
            if for_it > _specificity(code, ignore):
                enabled.add(code)
        return frozenset(enabled)

    def _check_selectors(self) -> None:
        config = self.config
        keys = ("select", "extend-select", "ignore", "severity", "fixable", "unfixable")
        used: list[tuple[str, Iterable[str]]] = [
            (config.origin(key), getattr(config, key.replace("-", "_")) or ()) for key in keys
        ]
        used += [("--select", config.cli_select or ()), ("--extend-select", config.cli_extend_select)]
        used.append(("--ignore", config.cli_ignore))
        key = config.origin("per-file-ignores")
        used += [(f'{key}."{glob.pattern}"', codes) for glob, codes in config.per_file_ignores]
        for place, selectors in used:
            refuse_unknown(place, selectors, self.names)

    def _refuse_to_check_nothing(self) -> None:
        """What leaves no rule in force would make every file look clean. Those of files and comments may be asked for by name."""
        config = self.config
        if config.select is config.cli_select is None and not (config.ignore or config.cli_ignore):
            return
        chosen = (
            *(config.cli_select or config.select or ()),
            *config.extend_select,
            *config.cli_extend_select,
        )
        by_name = any(code.startswith(one) for one in chosen for code in BUILT_IN)
        if self._enabled - BUILT_IN.keys() or by_name:
            return
        places = [("--ignore", config.cli_ignore), (config.origin("ignore"), config.ignore)]
        place = next((place for place, codes in places if codes), "--select")
        raise ConfigError(
            f"{place}: leaves no rule in force, so nothing would be checked; "
            "name fewer rules, or leave files out with exclude or per-file-ignores"
        )

    def _check_options(self) -> None:
        for code in self.config.options:
            if code not in self.names or code in BUILT_IN:
                place = self.config.origin("options")
                raise ConfigError(f'{place}: unknown rule "{code}"{nearest_rule(code, self.names)}')
        if self.config.options:
            self._options  # noqa: B018

    @cached_property
    def _options(self) -> dict[str, Mapping[str, Any]]:
        """The options of each rule. Raises `ConfigError`."""
        place, given = self.config.origin("options"), self.config.options
        found = {
            one.code: _options_of(one, given.get(one.code, {}), f"{place}.{one.code}") for one in self.known
        }
        return {code: self._with_target(options) for code, options in found.items()}

    def _with_target(self, options: dict[str, Any]) -> dict[str, Any]:
        """The options of a rule with the configuration's version of torch, where the rule asks for one."""
        if options.get("target-torch") == "" and self.config.target_torch is not None:
            return {**options, "target-torch": self.config.target_torch}
        return options


def refuse_unknown(place: str, selectors: Iterable[str], names: Mapping[str, str]) -> None:
    """Raise `ConfigError` for a selector that covers none of the rules, which are `names` by code."""
    for selector in selectors:
        if not any(_matches(code, selector) for code in names):
            raise ConfigError(f'{place}: unknown rule "{selector}"{nearest_rule(selector, names)}')


def codes_of(selectors: Iterable[str], names: Mapping[str, str]) -> tuple[str, ...]:
    """Selectors with the code where a rule's name is written; `names` are the rules' names by code."""
    by_name = {name: code for code, name in names.items()}
    return tuple(by_name.get(selector, selector) for selector in selectors)


def shipped_names() -> dict[str, str]:
    """The names of gpulint's own rules by code, those of files and comments among them."""
    return {**BUILT_IN, **gpulint.rules.names()}


_LISTS: Final = (
    "select", "extend_select", "ignore", "fixable", "unfixable", "cli_select", "cli_extend_select", "cli_ignore",
)  # fmt: skip


def _in_codes(config: Config, names: Mapping[str, str]) -> Config:
    """The configuration with codes wherever it names rules."""
    by_name = {name: code for code, name in names.items()}
    lists: dict[str, Any] = {key: codes_of(given, names) for key in _LISTS if (given := getattr(config, key))}
    return replace(
        config,
        **lists,
        per_file_ignores=tuple((glob, codes_of(codes, names)) for glob, codes in config.per_file_ignores),
        severity={by_name.get(key, key): level for key, level in config.severity.items()},
        options={by_name.get(key, key): options for key, options in config.options.items()},
    )


def _options_of(rule: type[Rule], given: Mapping[str, Any], place: str) -> dict[str, Any]:
    known = {option.name: option for option in rule.options}
    for name, value in given.items():
        option = known.get(name)
        if option is None:
            listed = did_you_mean(name, list(known)) if known else f"; {rule.code} has no options"
            raise ConfigError(f"{place}.{name}: unknown option{listed}")
        if option.choices and value not in option.choices:
            choices = ", ".join(repr(choice) for choice in option.choices)
            hint = did_you_mean(str(value), [str(choice) for choice in option.choices])
            raise ConfigError(f"{place}.{name}: expected one of {choices}, got {value!r}{hint}")
        if not option.choices and option.default is not None and type(value) is not type(option.default):
            wanted = type(option.default).__name__
            raise ConfigError(f"{place}.{name}: expected a value of type {wanted}, got {value!r}")
        if name == "target-torch" and value and not is_version(value):
            raise ConfigError(f'{place}.{name}: expected a version such as "2.4", got {value!r}')
    return {name: given.get(name, option.default) for name, option in known.items()}


def _with_severity(finding: Finding, levels: Mapping[str, Severity]) -> Finding:
    best = max((key for key in levels if _matches(finding.code, key)), key=_rank, default=None)
    if best is None or levels[best] is finding.severity:
        return finding
    return replace(finding, severity=levels[best])


def _matches(code: str, selector: str) -> bool:
    return selector == "ALL" or code.startswith(selector)


def _rank(selector: str) -> int:
    return 0 if selector == "ALL" else len(selector)


def _specificity(code: str, selectors: Iterable[str]) -> int:
    """The length of the longest selector that covers `code`; -1 where none does."""
    return max((_rank(selector) for selector in selectors if _matches(code, selector)), default=-1)


def _covers(glob: Glob, path: str) -> bool:
    relative = os.path.relpath(path, glob.base)
    return not relative.startswith(os.pardir) and bool(_spec(glob.pattern).match_file(relative))


@lru_cache(maxsize=1024)
def _spec(pattern: str) -> Any:
    from gpulint.source.patterns import ignore_spec

    return ignore_spec([pattern])


@lru_cache(maxsize=8)
def _rules_in(paths: tuple[str, ...], place: str) -> tuple[type[Rule], ...]:
    """A project's own rules."""
    found: list[type[Rule]] = []
    codes = dict.fromkeys(shipped_names(), "gpulint")
    for path in rule_files(paths):
        for rule in load_rule_file(path, place):
            if rule.code in codes:
                raise ConfigError(f"{place}: {path}: the code {rule.code} is taken by {codes[rule.code]}")
            codes[rule.code] = path
            found.append(rule)
    return tuple(found)


def forget_rules() -> None:
    """Read a project's own rules anew the next time: their files may have changed."""
    _rules_in.cache_clear()


def known_rules(config: Config) -> tuple[type[Rule], ...]:
    """The shipped rules and the project's own. Raises `ConfigError` where a rule file cannot be loaded."""
    found = (*gpulint.rules.all_rules(), *_rules_in(config.rules, config.origin("rules")))
    return tuple(sorted(found, key=lambda rule: rule.code))


def rule_files(paths: Iterable[str]) -> list[str]:
    """The Python files that the `rules` setting names, directories read one level deep."""
    found: list[str] = []
    for path in map(Path, paths):
        inside = sorted(path.glob("*.py")) if path.is_dir() else [path]
        found += [str(file) for file in inside if file.name != "__init__.py"]
    return found


def load_rule_file(path: str, place: str = "rules") -> list[type[Rule]]:
    """The rules that the file at `path` defines. Raises `ConfigError`."""
    from gpulint.rule import Rule

    name = "gpulint_rules_" + "".join(letter if letter.isalnum() else "_" for letter in path)
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ConfigError(f"{place}: {path} is no Python file")
    module = module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise ConfigError(f"{place}: {path} cannot be loaded: {type(error).__name__}: {error}") from error
    rules = [
        item
        for item in vars(module).values()
        if isinstance(item, type) and issubclass(item, Rule) and item.__module__ == name
    ]
    if not rules:
        raise ConfigError(f"{place}: {path} defines no rule (a subclass of gpulint.Rule)")
    for rule in rules:
        missing = [part for part in ("code", "name", "severity", "triggers") if not hasattr(rule, part)]
        if missing:
            raise ConfigError(f"{place}: {path}: {rule.__name__} has no {' or '.join(missing)}")
    return rules
