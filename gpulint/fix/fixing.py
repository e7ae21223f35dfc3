"""Findings with fixes in, a fixed text out, and the text safely on disk.

The rest of the fixer is gathered here: `render` (a repair as edits), `apply_edits`, `unified_diff`,
`write_atomic`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gpulint.atomic import write_atomic
from gpulint.findings import Finding, Fix
from gpulint.source.edits import apply_edits, unified_diff

if TYPE_CHECKING:
    import libcst as cst

    from gpulint.rule import Repair
    from gpulint.source.positions import Spans

__all__ = ["FixResult", "apply_edits", "fix_text", "render", "unified_diff", "write_atomic"]

MAX_PASSES: Final = 100


@dataclass(frozen=True, slots=True)
class FixResult:
    """What fixing made of a text.

    `applied` are the findings whose fix is in `text`, placed as they stood in their own pass; `remaining` are
    the findings in `text`; `passes` counts rewrites. `error` is a sentence about a bug in a rule: a fix that
    broke the syntax (it was left out) or fixes that undo one another.
    """

    text: str
    applied: list[Finding]
    remaining: list[Finding]
    passes: int
    error: str | None = None


def render(module: cst.Module, spans: Spans, repair: Repair) -> Fix | None:
    """A repair of nodes of `module` as text edits; None where it cannot be written or changes nothing.

    Raises PositionError for a node that is not in the module.
    """
    from gpulint.fix.canvas import RenderError
    from gpulint.fix.rendering import render as draw

    try:
        fix = draw(module, spans, repair)
    except RenderError:
        return None
    return fix if fix.edits else None


def fix_text(
    text: str, lint: Callable[[str], list[Finding]], unsafe: bool, is_python: bool = True
) -> FixResult:
    """Apply the fixes that `lint` offers until it offers no more. Raises only what `lint` raises.

    Every text on the way parses: a rule whose fix would break the syntax is left out for this text and named
    in `error`. Where the text is no Python, nothing is parsed.
    """
    findings = lint(text)
    applied: list[Finding] = []
    broken: list[str] = []
    idle: list[str] = []
    seen = {text}
    passes = 0
    error: str | None = None
    while True:
        offered = [finding for finding in findings if finding.code not in (*broken, *idle)]
        candidate, taken = apply_edits(text, offered, unsafe)
        if candidate == text:
            break
        if is_python and not parses(candidate):
            broken.append(_breaker(text, taken, unsafe))
            continue
        if candidate in seen or passes == MAX_PASSES:
            codes = sorted({finding.code for finding in taken})
            error = f"This is a bug in gpulint: the fixes of {', '.join(codes)} undo or call for one another."
            break
        left = lint(candidate)
        if futile := _futile(taken, findings, left):
            idle += futile
            continue
        seen.add(candidate)
        text, findings = candidate, left
        applied += taken
        passes += 1
    if broken:
        error = (
            f"This is a bug in gpulint: a fix of {', '.join(broken)} gives code that does not parse, "
            "so it was left out."
        )
    elif idle:
        error = f"The fixes of {', '.join(idle)} do not end what they are for here, so they were left out."
    return FixResult(text, applied, findings, passes, error)


def _futile(taken: Sequence[Finding], before: Sequence[Finding], after: Sequence[Finding]) -> list[str]:
    """The codes of fixes after which as much is found as before."""
    had, has = (
        Counter((one.code, one.message, one.subject) for one in findings) for findings in (before, after)
    )
    keys = {(one.code, one.message, one.subject) for one in taken}
    return sorted({key[0] for key in keys if has[key] >= had[key]})


def _breaker(text: str, taken: Sequence[Finding], unsafe: bool) -> str:
    """The code of a rule whose fix breaks the syntax, found by halving: the first k fixes parse, one more
    does not."""
    ordered = sorted(taken, key=lambda finding: finding.sort_key)
    good, bad = 0, len(ordered)
    while bad - good > 1:
        middle = (good + bad) // 2
        if parses(apply_edits(text, ordered[:middle], unsafe)[0]):
            good = middle
        else:
            bad = middle
    return ordered[bad - 1].code


def parses(text: str) -> bool:
    """Whether libcst takes the text."""
    import libcst as cst

    try:
        cst.parse_module(text)
    except (cst.ParserSyntaxError, RecursionError):
        return False
    return True
