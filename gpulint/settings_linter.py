"""Rules over allocator settings in files other than Python's: one text in, findings out."""

from __future__ import annotations

from gpulint.findings import Edit, Finding, Fix, Position
from gpulint.rule import Claim, Rule, RuleSet
from gpulint.shell import TextSetting, text_settings
from gpulint.suppressions import suppressed


def lint_settings(text: str, filename: str, rules: RuleSet) -> list[Finding]:
    """The findings in a shell script, Dockerfile or `.env` file, sorted by place, suppressed ones left out."""
    readers = [rule for rule in rules.rules if rule.reads_settings]
    findings = [
        _finding(rule, claim, setting, filename)
        for setting in text_settings(text)
        for rule in readers
        for claim in rule().claims(setting.text, rules.options.get(rule.code, {}))
    ]
    codes = frozenset(rule.code for rule in readers)
    return suppressed(text, findings, lambda row: row, filename, codes, rules.known)


def _finding(rule: type[Rule], claim: Claim, setting: TextSetting, filename: str) -> Finding:
    fix = None
    if claim.mended is not None and setting.literal:
        edit = Edit(
            Position(setting.row, setting.value_start), Position(setting.row, setting.end), claim.mended
        )
        fix = Fix(claim.applicability, claim.remedy, (edit,))
    return Finding(
        rule.code,
        rule.name,
        rule.severity,
        claim.message,
        filename,
        setting.row,
        setting.start,
        setting.row,
        setting.end,
        claim.reason,
        claim.cost,
        fix,
    )
