"""`gpulint rule` and `gpulint rules`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from gpulint.rules import all_rules
from support import gpulint, on_terminal

from gpulint.lint.documentation import page

OWN = '''
from gpulint.findings import Severity
from gpulint.rule import Claimed, Report, Rule


class NoSleep(Rule):
    """
    ## What it does
    Finds `sleep`. And more.

    ## Why is this bad
    It waits.

    ## What it costs
    1 s.

    ## Example
    ```python
    import time

    time.sleep(1)
    ```

    ## Use instead
    ```python
    import time
    ```

    ## Fix safety
    No fix.
    """

    code = "OWN1"
    name = "no-sleep"
    severity = Severity.INFO
    triggers = ((b"sleep",),)

    def claims(self, asked, options):
        for call, frame in asked.calls("time.sleep"):
            yield Claimed(call, "time.sleep", (), lambda call=call: Report(call, "sleeps"))
'''


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.code)
def test_every_rule_has_a_page(rule) -> None:  # type: ignore[no-untyped-def]
    found = page(rule)
    assert found.summary.endswith(".")
    assert "\n" not in found.summary
    assert found.markdown().startswith(f"# {rule.code} {rule.name}\n")
    assert all(option.name in found.markdown() for option in rule.options)


def test_a_page_in_a_pipe_is_markdown(tmp_path: Path) -> None:
    done = gpulint("rule", "GPU101", cwd=tmp_path, status=0)
    assert done.stdout.startswith(b"# GPU101 held-graph\n")
    assert b"## What it costs" in done.stdout
    assert b"```python" in done.stdout
    assert gpulint("rule", "held-graph", cwd=tmp_path).stdout == done.stdout
    assert gpulint("rule", "gpu101", "--output-format", "markdown", cwd=tmp_path).stdout == done.stdout


def test_a_page_on_a_terminal_is_laid_out(tmp_path: Path) -> None:
    shown = on_terminal("rule", "GPU101", cwd=tmp_path, columns=100)
    assert "\x1b[" in shown
    assert "```" not in shown


def test_json(tmp_path: Path) -> None:
    one = json.loads(gpulint("rule", "GPU406", "--output-format", "json", cwd=tmp_path).stdout)
    assert (one["code"], one["default"], one["enabled"]) == ("GPU406", False, False)
    everything = json.loads(gpulint("rules", "--output-format", "json", cwd=tmp_path).stdout)
    assert [rule["code"] for rule in everything] == [rule.code for rule in all_rules()]
    assert one in everything


def test_tables(tmp_path: Path) -> None:
    (tmp_path / "gpulint.toml").write_text('ignore = ["GPU1"]\n')
    lines = gpulint("rules", cwd=tmp_path).stdout.decode().splitlines()
    assert lines[0].split()[:4] == ["code", "name", "severity", "on"]
    by_code = {line.split()[0]: line.split()[3] for line in lines[1:]}
    assert (by_code["GPU101"], by_code["GPU201"], by_code["GPU406"]) == ("no", "yes", "no")
    table = gpulint("rules", "--output-format", "markdown", cwd=tmp_path).stdout.decode().splitlines()
    assert len(table) == len(all_rules()) + 2
    assert all(line.count(" | ") == 4 for line in table)


def test_what_is_not_there_is_told(tmp_path: Path) -> None:
    assert gpulint("rule", cwd=tmp_path).returncode == 2
    assert gpulint("rule", "GPU101", "--all", cwd=tmp_path).returncode == 2


def test_examples_of_a_projects_own_rules(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN)
    done = gpulint("rule", "--test", "own.py", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, b"OWN1 no-sleep: ok\n"), done
    (tmp_path / "own.py").write_text(OWN.replace('calls("time.sleep")', 'calls("time.wake")'))
    done = gpulint("rule", "--test", "own.py", cwd=tmp_path, status=1)
    assert b"no finding where OWN1 alone is meant" in done.stdout
    (tmp_path / "own.py").write_text(OWN.replace("    ## Fix safety\n    No fix.\n", ""))
    assert b"lacks the section 'Fix safety'" in gpulint("rule", "--test", "own.py", cwd=tmp_path).stdout


def test_the_projects_rules_are_listed(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "gpulint.toml").write_text('rules = ["own.py"]\n')
    assert b"OWN1    no-sleep" in gpulint("rules", cwd=tmp_path).stdout
    assert b"# OWN1 no-sleep" in gpulint("rule", "OWN1", cwd=tmp_path).stdout
