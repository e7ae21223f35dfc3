"""A rule's documentation: its docstring as a page, its sections, and its examples put to the test."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from gpulint.findings import DOCS_URL, Confidence
from gpulint.rule import Rule, RuleSet

SECTIONS = ("What it does", "Why is this bad", "What it costs", "Example", "Use instead", "Fix safety")
DOUBTFUL = "; some findings have low confidence and are shown with `--confidence low`"


@dataclass(frozen=True, slots=True)
class Page:
    """A rule's documentation in Markdown, whole and by section."""

    rule: type[Rule]
    text: str
    sections: dict[str, str]

    @property
    def title(self) -> str:
        return f"{self.rule.code} {self.rule.name}"

    @property
    def summary(self) -> str:
        """The first sentence of *What it does*, on one line."""
        text = " ".join(self.sections.get("What it does", "").split())
        text = text.removeprefix("Off by default. ")
        return re.split(r"(?<=[.!?])\s", text, maxsplit=1)[0]

    def code(self, section: str) -> str | None:
        """The code block of a section, None where it has none."""
        block = re.search(r"```\w*\n(.*?)```", self.sections.get(section, ""), re.DOTALL)
        return None if block is None else block[1]

    def body(self) -> str:
        """The docstring, and the options where it says nothing of them."""
        parts = [self.text.strip() + "\n"]
        if self.rule.options and "Options" not in self.sections:
            parts.append("## Options\n" + "".join(_option_lines(self.rule)))
        return "\n".join(parts)

    def markdown(self) -> str:
        """The whole page, with a heading and what is in force by default."""
        state = "on by default" if self.rule.default else "off by default"
        state += DOUBTFUL if self.rule.doubts else ""
        head = f"# {self.title}\n\nSeverity: {self.rule.severity.value}; {state}.\n"
        parts = [head, self.body()]
        if self.rule.code.startswith("GPU"):
            parts.append(f"<{DOCS_URL}{self.rule.code}>\n")
        return "\n".join(parts)


def _option_lines(rule: type[Rule]) -> Iterator[str]:
    for option in rule.options:
        choices = f" (one of {', '.join(map(repr, option.choices))})" if option.choices else ""
        yield f"- `{option.name}`: {option.help}{choices}; default {option.default!r}\n"


def page(rule: type[Rule]) -> Page:
    """The documentation of a rule. A rule without a docstring has an empty page."""
    text = inspect.cleandoc(rule.__doc__ or "")
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
    sections = {title.strip(): body.strip("\n") for title, body in zip(parts[1::2], parts[2::2], strict=True)}
    return Page(rule, text, sections)


def example_problems(rule: type[Rule], rules: RuleSet) -> list[str]:
    """What is wrong with a rule's documentation, in sentences: sections that lack, an example that is not found by
    exactly this rule, a remedy that is not clean, a fix that does not lead from one to the other."""
    from gpulint.fix.fixing import fix_text
    from gpulint.lint.linter import lint_text
    from gpulint.source.syntax import SourceError

    documentation = page(rule)
    missing = [title for title in SECTIONS if not documentation.sections.get(title, "").strip()]
    if missing:
        return [f"the documentation lacks the section {title!r}" for title in missing]
    example, remedy = documentation.code("Example"), documentation.code("Use instead")
    if example is None or remedy is None:
        return ["'Example' and 'Use instead' need a code block each"]
    try:
        findings = lint_text(example, "example.py", rules)
        if not findings and rule.doubts:  # a rule may have nothing that it is sure of
            rules = replace(rules, confidence=Confidence.LOW)
            findings = lint_text(example, "example.py", rules)
        left = lint_text(remedy, "example.py", rules)
    except SourceError as error:
        return [f"an example does not parse: {error.message}"]
    problems: list[str] = []
    codes = sorted({finding.code for finding in findings})
    if codes != [rule.code]:
        problems.append(
            f"'Example' gives {', '.join(codes) or 'no finding'} where {rule.code} alone is meant"
        )
    if left:
        problems.append(f"'Use instead' is not clean: {left[0].code} in line {left[0].line}")
    if not rule.can_fire(example.encode()):
        problems.append(
            "'Example' has none of the byte strings in `triggers`, so the rule would never be asked"
        )
    if not problems and any(finding.fix for finding in findings):
        result = fix_text(example, lambda text: lint_text(text, "example.py", rules), True)
        if result.error is not None:
            problems.append(result.error)
        elif result.text != remedy:
            problems.append("the fix of 'Example' does not give 'Use instead', but:\n" + result.text)
    return problems
