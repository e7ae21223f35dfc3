"""Limits on what a run holds and does not use, and on host memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from gpulint.runtime.parent.standing import host_text, idle_text
from gpulint.runtime.parent.verdict import Verification
from gpulint.runtime.record.gate import Check, Limits
from gpulint.units import format_bytes


def checks(verification: Verification, limits: Limits) -> Iterator[Check]:
    """The run held against these limits, as far as they are set."""
    if limits.untouched is not None:
        found = [(one.what.bytes, f"{one.what.text}: {idle_text(one)}") for one in verification.idle]
        check = _check("untouched", "are alive and were touched by nothing", limits.untouched, found)
        besides = [rank.besides for rank in verification.run.ranks]
        if not any(one.watched for one in besides):  # nothing is within a limit that was not looked for
            why = next((one.doubt for one in besides if one.doubt), "no step was followed")
            check = replace(check, status="exceeded", text=f"what nothing touches is not known: {why}")
        yield check
    if limits.host_drift is not None:
        grown = [(round(one.per_step), host_text(one)) for one in verification.host_growth]
        yield _check("max-host-drift", "of host memory stay a step", limits.host_drift, grown)


def _check(limit: str, what: str, allowed: int, found: Sequence[tuple[int, str]]) -> Check:
    now = sum(size for size, _ in found)
    text = f"{format_bytes(now)} {what}, and {format_bytes(allowed)} may"
    if now > allowed:
        text += f"; most of it: {found[0][1]}"
    return Check(
        limit=limit,  # type: ignore[arg-type]
        status="exceeded" if now > allowed else "within",
        rank=0,
        stretch="steps",
        now=now,
        allowed=allowed,
        before=None,
        text=text,
    )
