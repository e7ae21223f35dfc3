"""What GPU601 and GPU604 share: what they say about allocator settings, as reports on Python code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from gpulint.rules.detect.alloc_conf import VISIBLE, Setting

from gpulint.analysis.code import ir
from gpulint.analysis.file.asking import FileFacts
from gpulint.rule import Repair, Replace, Report, Rule, SettingProblem


def reports(rule: Rule, facts: FileFacts, options: Mapping[str, Any]) -> Iterator[Report]:
    """What the rule says about every allocator setting of a file whose text is known."""
    from gpulint.rules.detect.alloc_conf import settings

    for setting in facts.ask(settings):
        if setting.text is not None and setting.variable != VISIBLE:
            for problem in rule.setting_problems(setting.text, options):
                yield _report(rule, problem, setting)


def _report(rule: Rule, problem: SettingProblem, setting: Setting) -> Report:
    return Report(
        setting.value,
        problem.message,
        problem.reason,
        problem.cost,
        repair=lambda: _repair(problem, setting),
        subject=setting.variable,
        claim=replace(rule.runtime_claim, options=problem.options),
    )


def _repair(problem: SettingProblem, setting: Setting) -> Repair | None:
    from gpulint.fix.nodes import string_like

    spelled = setting.spelled
    if problem.mended is None or not isinstance(spelled, ir.Const) or spelled.value != setting.text:
        return None
    new = string_like(spelled.node, problem.mended)
    return (
        None if new is None else Repair(problem.applicability, problem.remedy, (Replace(spelled.node, new),))
    )
