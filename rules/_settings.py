"""What GPU601 and GPU604 share: claims about allocator settings, as reports on Python code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gpulint.rules.detect.alloc_conf import VISIBLE, Setting

from gpulint.analysis.code import ir
from gpulint.analysis.file.asking import FileFacts
from gpulint.rule import Claim, Repair, Replace, Report, Rule


def reports(rule: Rule, facts: FileFacts, options: Mapping[str, Any]) -> Iterator[Report]:
    """The rule's claims about every allocator setting of a file whose text is known."""
    from gpulint.rules.detect.alloc_conf import settings

    for setting in facts.ask(settings):
        if setting.text is not None and setting.variable != VISIBLE:
            for claim in rule.claims(setting.text, options):
                yield _report(claim, setting)


def _report(claim: Claim, setting: Setting) -> Report:
    return Report(
        setting.value, claim.message, claim.reason, claim.cost, repair=lambda: _repair(claim, setting)
    )


def _repair(claim: Claim, setting: Setting) -> Repair | None:
    from gpulint.nodes import string_like

    spelled = setting.spelled
    if claim.mended is None or not isinstance(spelled, ir.Const) or spelled.value != setting.text:
        return None
    new = string_like(spelled.node, claim.mended)
    return None if new is None else Repair(claim.applicability, claim.remedy, (Replace(spelled.node, new),))
