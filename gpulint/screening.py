"""The second gate: whether any rule has something to report, learnt from Python's own syntax tree.

The same analysis and the same rules run over nodes of `ast`, whose parser is eight times as fast as libcst's and needs
no import. Most files end here. The others are parsed by libcst and analysed anew: findings, positions and fixes always
come from there.
"""

from __future__ import annotations

import ast
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from gpulint.rule import Report, Rule, RuleSet

if TYPE_CHECKING:
    from gpulint.analysis.file.asking import FileFacts
    from gpulint.analysis.file.project import Project

# Frames that the analysis may need for nested code. Python's own parser runs under the ordinary limit, with which it
# keeps within the native stack.
_STACK: Final = 12_000


@contextmanager
def deep_stack() -> Iterator[None]:
    """Let the analysis recurse into deeply nested code."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, _STACK))
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


def is_clean(text: str, filename: str, rules: RuleSet, project: Project | None = None) -> bool:
    """Whether it is certain that no rule reports anything in `text`.

    False also where this cannot be told: a rule looks into libcst's nodes, the running Python does not know the syntax,
    or the analysis fails, which it then does again where the failure is reported.
    """
    if not all(rule.facts_only for rule in rules.rules):
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in the checked code
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    with deep_stack():
        try:
            return not _speaks(tree, filename, rules, project)
        except Exception:
            return False


def _speaks(tree: ast.Module, filename: str, rules: RuleSet, project: Project | None) -> bool:
    from gpulint.analysis.code.lower_ast import lower_ast
    from gpulint.analysis.driver import analyse_lowered

    facts = analyse_lowered(lower_ast(tree), filename, project)
    return any(True for _ in reports(facts, filename, rules, project))


def reports(
    facts: FileFacts, filename: str, rules: RuleSet, project: Project | None
) -> Iterator[tuple[type[Rule], Report]]:
    """What the rules have to say about a file, without what its tests or its callers excuse, or what is less certain than
    the rules in force ask for."""
    for rule in rules.rules:
        if facts.is_test and not rule.in_tests:
            continue
        for report in rule().check(facts, rules.options.get(rule.code, {})):
            if not report.confidence.reaches(rules.confidence):
                continue
            passed = not rule.in_tests and id(report.node) in facts.passed_over
            if not passed and not excused(report, filename, project):
                yield rule, report


def excused(report: Report, filename: str, project: Project | None) -> bool:
    """Whether the callers in other files of the project take back what a report claims."""
    entries = report.unless_guarded
    return bool(entries) and project is not None and project.guarded_everywhere(filename, entries)
