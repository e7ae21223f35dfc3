"""The rules, one file each. Importing this package imports none of them; `all_rules()` does."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path

from gpulint.rule import Rule


@cache
def all_rules() -> tuple[type[Rule], ...]:
    """Every rule shipped with gpulint, in the order of their codes.

    A rule file is named `gpu101_held_graph.py`; the one class in it that has a `code` is the rule.
    """
    found: list[type[Rule]] = []
    for path in sorted(Path(__file__).parent.glob("gpu[0-9]*.py")):
        module = import_module(f"{__name__}.{path.stem}")
        classes = (one for one in vars(module).values() if isinstance(one, type) and issubclass(one, Rule))
        found += [one for one in classes if one.__module__ == module.__name__]
    return tuple(sorted(found, key=lambda rule: rule.code))
