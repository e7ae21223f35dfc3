"""`gpulint rule` and `gpulint rules`, `gpulint config` and `gpulint completion`."""

import json
import os
import sys
from pathlib import Path

import pytest
from gpulint.rules import all_rules
from support import environment, gpulint, on_terminal, run_command

from gpulint.config import load_config
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


# -- `gpulint config` and `gpulint completion` ---------------------------------------------------------------


def test_config_prints_a_configuration_that_says_the_same(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared/base.toml").write_text('extend-exclude = ["gen/x", "*_pb2.py"]\n')
    (tmp_path / "gpulint.toml").write_text(
        'extend = "shared/base.toml"\nignore = ["GPU5"]\nfail-on = "warning"\ntarget-torch = "2.1"\n'
        '[severity]\nGPU101 = "info"\n[per-file-ignores]\n"tests/*" = ["GPU1"]\n'
    )
    done = gpulint("config", ".", cwd=tmp_path, status=0)
    printed = tmp_path / "printed.toml"
    printed.write_bytes(done.stdout)
    loaded = load_config(str(printed))
    original = load_config(str(tmp_path / "gpulint.toml"))
    assert (loaded.fail_on, loaded.target_torch, loaded.severity) == ("warning", "2.1", original.severity)
    assert loaded.per_file_ignores == original.per_file_ignores
    assert [glob.pattern for glob in loaded.extend_exclude] == ["shared/gen/x", "*_pb2.py"]
    assert "GPU101" in loaded.select
    assert not [code for code in loaded.select if code.startswith("GPU5")]
    assert done.stdout.decode().startswith("# gpulint.toml; project root ")


def test_config_errors(tmp_path: Path) -> None:
    assert b"no such file" in gpulint("config", "none", cwd=tmp_path).stderr
    (tmp_path / "gpulint.toml").write_text("x = 1\n")
    done = gpulint("config", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, b"")
    assert gpulint("config", "--isolated", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize(
    ("settings", "valid"),
    [
        ({"select": ["GPU1"], "severity": {"GPU101": "info"}, "options": {"GPU101": {"x": 1}}}, True),
        ({"per-file-ignores": {"tests/*": ["ALL"]}, "target-torch": "2.4", "fail-on": "never"}, True),
        ({"selct": []}, False),
        ({"select": "GPU1"}, False),
        ({"select": ["held-graph"]}, True),
        ({"select": ["GPU 1"]}, False),
        ({"severity": {"GPU101": "fatal"}}, False),
        ({"target-torch": 2}, False),
        ({"fail-on": "always"}, False),
    ],
)
def test_schema(tmp_path: Path, settings: dict[str, object], valid: bool) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(gpulint("config", "--schema", cwd=tmp_path).stdout)
    assert jsonschema.Draft7Validator(schema).is_valid(settings) is valid


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script(tmp_path: Path, shell: str) -> None:
    done = gpulint("completion", shell, cwd=tmp_path, status=0)
    assert b"_GPULINT_COMPLETE" in done.stdout


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["che"], "check"),
        (["--stat"], "--statistics"),
        (["check", "--unsafe"], "--unsafe-fixes"),
        (["src/", "--unsafe"], "--unsafe-fixes"),
        (["src/", "--output-format", "sa"], "sarif"),
        (["completion", "z"], "zsh"),
    ],
)
def test_bash_completes(tmp_path: Path, words: list[str], expected: str) -> None:
    """Through the script that bash evaluates, as bash calls it."""
    folder = Path(sys.executable).parent
    env = environment(PATH=f"{folder}{os.pathsep}{os.environ['PATH']}")
    line = " ".join(f"'{word}'" for word in ["gpulint", *words])
    script = (
        f'eval "$(gpulint completion bash)"; COMP_WORDS=({line}); COMP_CWORD={len(words)};'
        '_gpulint_completion gpulint; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = run_command("bash", "-c", script, cwd=tmp_path, env=env)
    assert expected in done.stdout.split(), done
