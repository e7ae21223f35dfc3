"""What `gpulint rule`, `gpulint rules` and `gpulint explain` ask alike of rules."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import click

from gpulint.cli._options import Configured
from gpulint.config import nearest_rule
from gpulint.lint.documentation import Page
from gpulint.lint.selection import Selection
from gpulint.rule import Rule


def selection_here(config: Configured, isolated: bool) -> Selection:
    """What the configuration in force here selects. Raises `ConfigError`."""
    return Selection(config.resolver(isolated).for_directory(os.getcwd()))


def enabled_here(selection: Selection) -> frozenset[str]:
    return selection.codes_for(os.path.join(os.getcwd(), "x.py"))


def find(rules: Sequence[type[Rule]], code: str, place: str) -> type[Rule]:
    """The rule of this code or name. Raises click.BadParameter, of what stands at `place`."""
    wanted = code.casefold().replace("_", "-")
    for rule in rules:
        if wanted in (rule.code.casefold(), rule.name):
            return rule
    near = nearest_rule(code, {rule.code: rule.name for rule in rules})
    raise click.BadParameter(f'there is no rule "{code}"{near}', param_hint=place)


def described(item: Page, selection: Selection) -> dict[str, Any]:
    """A rule as JSON."""
    rule = item.rule
    return {
        "code": rule.code,
        "name": rule.name,
        "severity": rule.severity.value,
        "default": rule.default,
        "doubts": rule.doubts,
        "enabled": rule.code in enabled_here(selection),
        "summary": item.summary,
        "options": [asdict(option) for option in rule.options],
        "documentation": item.markdown(),
    }
