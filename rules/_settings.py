"""What GPU601 and GPU604 share: what they say about allocator settings, as claims on Python code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from gpulint.analysis.asked import Asked
from gpulint.analysis.queries.settings import Setting
from gpulint.answers import Question, proven
from gpulint.rule import Claimed, Repair, Replace, Report, Rule, SettingProblem


def setting_claims(
    rule: Rule, asked: Asked, options: Mapping[str, Any], mends: bool = True
) -> Iterator[Claimed]:
    """What the rule says about every allocator setting of a file, and whether it mends it."""
    from gpulint.analysis.queries.settings import ALLOCATOR, settings

    for setting in settings(asked.evaluator, asked.file):
        problems = list(rule.setting_problems(setting.text, options)) if setting.variable in ALLOCATOR else []
        if problems:
            answers = (proven(Question.READS, f"torch reads `{setting.variable}`"),)
            report = partial(_report, asked, rule, setting, problems, mends)
            yield Claimed(setting.value, setting.variable, answers, report)


def _report(
    asked: Asked, rule: Rule, setting: Setting, problems: list[SettingProblem], mends: bool
) -> Report:
    first = problems[0]
    mended = next((one for one in problems if one.mended is not None), first)
    return Report(
        setting.value,
        "; ".join(one.message for one in problems),
        first.reason,
        first.cost,
        repair=partial(_repair, asked, setting, mended) if mends else None,
        claim=replace(rule.runtime_claim, options=first.options),
    )


def _repair(asked: Asked, setting: Setting, problem: SettingProblem) -> Repair | None:
    from gpulint.fix.nodes import string_like

    if problem.mended is None or setting.spelled is None:
        return None
    old = asked.node(setting.spelled)
    new = string_like(old, problem.mended)
    return None if new is None else Repair(problem.applicability, problem.remedy, (Replace(old, new),))
