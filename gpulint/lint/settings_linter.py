"""Rules over allocator settings in files other than Python's: one text in, findings out."""

from __future__ import annotations

from dataclasses import replace

from gpulint.findings import Edit, Finding, Fix, Position
from gpulint.lint.suppressions import suppressed
from gpulint.rule import Cost, Rule, RuleSet, SettingProblem
from gpulint.source.shell import TextSetting, text_settings


def lint_settings(text: str, filename: str, rules: RuleSet) -> list[Finding]:
    """The findings in a shell script, Dockerfile or `.env` file, sorted by place, suppressed ones left out."""
    readers = [rule for rule in rules.rules if rule.reads_settings]
    findings = [
        _finding(rule, problem, setting, filename)
        for setting in text_settings(text)
        for rule in readers
        for problem in rule().setting_problems(setting.text, rules.options.get(rule.code, {}))
    ]
    codes = frozenset(rule.code for rule in readers)
    return suppressed(text, findings, lambda row: row, filename, codes, rules.known)


def _finding(rule: type[Rule], problem: SettingProblem, setting: TextSetting, filename: str) -> Finding:
    fix = None
    cost = Cost.of(problem.cost)
    if problem.mended is not None and setting.literal:
        edit = Edit(
            Position(setting.row, setting.value_start), Position(setting.row, setting.end), problem.mended
        )
        fix = Fix(problem.applicability, problem.remedy, (edit,))
    return Finding(
        rule.code,
        rule.name,
        rule.severity,
        problem.message,
        filename,
        setting.row,
        setting.start,
        setting.row,
        setting.end,
        problem.reason,
        cost.here,
        fix,
        subject=setting.variable,
        claim=replace(rule.runtime_claim, options=problem.options),
        measured=cost.measured,
    )
