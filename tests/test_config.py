import json
import re
from collections.abc import Iterator
from pathlib import Path

import gpulint.rules
import pytest
from support import OWN_RULE

from gpulint.config import KEYS, Config, ConfigError, ConfigResolver, Overrides, json_schema, load_config
from gpulint.findings import Finding, Severity
from gpulint.lint.selection import Selection, forget_rules
from gpulint.rule import Option, Rule


class HeldGraph(Rule):
    """Held."""

    code = "GPU101"
    name = "held-graph"
    severity = Severity.ERROR
    triggers = ((b"torch",),)
    options = (Option("fix", "item", ("item", "detach")), Option("limit", 3))


class DeviceAccumulation(Rule):
    """Piles up."""

    code = "GPU102"
    name = "device-accumulation"
    severity = Severity.WARNING
    triggers = ((b"torch",),)


class Optional(Rule):
    """Not on by default."""

    code = "GPU901"
    name = "optional"
    severity = Severity.INFO
    triggers = ((b"torch",),)
    default = False


@pytest.fixture(autouse=True)
def three_rules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    rules = (HeldGraph, DeviceAccumulation, Optional)
    monkeypatch.setattr("gpulint.rules.all_rules", lambda: rules)
    monkeypatch.setattr("gpulint.rules.names", lambda: {rule.code: rule.name for rule in rules})
    forget_rules()
    yield
    forget_rules()


def rule_codes(config: Config, path: str = "/p/a.py") -> list[str]:
    return [rule.code for rule in Selection(config).rules_for(path).rules]


def config(**keys: object) -> Config:
    return Config.from_mapping({key.replace("_", "-"): value for key, value in keys.items()}, "/p")


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({}, ["GPU101", "GPU102"]),
        ({"select": ["ALL"]}, ["GPU101", "GPU102", "GPU901"]),
        ({"select": ["GPU1"], "ignore": ["GPU101"]}, ["GPU102"]),
        ({"select": ["GPU101"], "ignore": ["GPU1"]}, ["GPU101"]),
        ({"extend_select": ["GPU9"], "ignore": ["GPU10"]}, ["GPU901"]),
        ({"extend_select": ["GPU001"], "ignore": ["GPU1", "GPU9"]}, []),
    ],
)
def test_selection(keys: dict[str, object], expected: list[str]) -> None:
    assert rule_codes(config(**keys)) == expected


def test_the_command_line_outranks_the_file() -> None:
    given = config(select=["GPU101"], ignore=["GPU102"])
    assert rule_codes(Overrides(select=("GPU102",)).apply(given)) == ["GPU102"]
    assert rule_codes(Overrides(extend_select=("GPU901",)).apply(given)) == ["GPU101", "GPU901"]


@pytest.mark.parametrize(
    ("keys", "overrides", "place"),
    [
        ({"select": []}, Overrides(), "select: names no rule"),
        ({"ignore": [" "]}, Overrides(), 'ignore: " " is no rule'),
        ({"ignore": ["ALL"]}, Overrides(), "ignore: leaves no rule in force"),
        ({"select": ["GPU101"]}, Overrides(ignore=("GPU101",)), "--ignore: leaves no rule in force"),
        ({}, Overrides(target_torch="nonsense"), '--target-torch: expected a version such as "2.4"'),
    ],
)
def test_what_would_check_nothing_is_refused(
    keys: dict[str, object], overrides: Overrides, place: str
) -> None:
    with pytest.raises(ConfigError, match=re.escape(place)):
        Selection(overrides.apply(config(**keys)))


def test_per_file_ignores() -> None:
    given = config(per_file_ignores={"tests/**": ["GPU1"], "*_old.py": ["GPU101"]})
    assert rule_codes(given, "/p/tests/deep/a.py") == []
    assert rule_codes(given, "/p/src/train_old.py") == ["GPU102"]
    assert rule_codes(given, "/p/src/train.py") == ["GPU101", "GPU102"]
    assert rule_codes(given, "/elsewhere/tests/a.py") == ["GPU101", "GPU102"]


def test_unreadable_files_are_reported_whatever_is_selected() -> None:
    assert "GPU000" in Selection(config(select=["GPU101"])).codes_for("/p/a.py")
    assert "GPU000" not in Selection(config(ignore=["GPU000"])).codes_for("/p/a.py")
    assert "GPU001" not in Selection(config(select=["GPU101"])).codes_for("/p/a.py")


def test_severity_by_code_and_prefix() -> None:
    selection = Selection(config(severity={"GPU1": "info", "GPU101": "warning"}))
    findings = [
        Finding(code, "x", Severity.ERROR, "m", "a.py", 1, 1, 1, 2) for code in ("GPU101", "GPU102", "GPU901")
    ]
    assert [item.severity.value for item in selection.graded(findings)] == ["warning", "info", "error"]


def test_options_with_defaults() -> None:
    rules = Selection(config(options={"GPU101": {"fix": "detach"}})).rules_for("/p/a.py")
    assert rules.options == {"GPU101": {"fix": "detach", "limit": 3}, "GPU102": {}}


WRONG = [
    ('selct = ["GPU101"]', 'selct: unknown key; did you mean "select"?'),
    ('per-file-ignores = { "tests/*" = ["GPU8"] }', 'per-file-ignores."tests/*": unknown rule "GPU8"'),
    ("zzzz = 1", "zzzz: unknown key"),
    ("options = { GPU555 = { x = 1 } }", 'options: unknown rule "GPU555"'),
    ('select = "GPU101"', 'select: expected a list of strings such as ["a", "b"], got "GPU101"'),
    ('select = ["gpu101"]', 'select: unknown rule "gpu101"; did you mean "GPU101"?'),
    ('select = ["GPU101 "]', 'select: "GPU101 " is no rule\'s code or name, prefix or ALL'),
    ('select = ["GPU999"]', 'select: unknown rule "GPU999"; gpulint rules lists them'),
    ('select = ["held-grpah"]', 'select: unknown rule "held-grpah"; did you mean "held-graph"?'),
    ('output-format = "jsn"', 'output-format: expected one of "text", "concise", "json"'),
    ("fix = 1", "fix: expected true or false, got 1"),
    ("baseline = true", "baseline: expected the path of a file, got true"),
    ('select = ["GPU110"]', 'select: unknown rule "GPU110"; did you mean "GPU'),
    ('fail-on = "warnings"', 'fail-on: expected one of "error", "warning", "info", "never", got "warnings"'),
    ('target-torch = "two"', 'target-torch: expected a version such as "2.4", got "two"'),
    ('severity = { GPU101 = "eror" }', 'severity.GPU101: expected one of "error", "warning", "info", got'),
    ('per-file-ignores = { "tests/*" = "GPU1" }', 'per-file-ignores."tests/*": expected a list'),
    ("options = { GPU101 = 3 }", "options.GPU101: expected a table"),
    ("options = { GPU101 = { fixx = 1 } }", 'options.GPU101.fixx: unknown option; did you mean "fix"?'),
    ('options = { GPU101 = { fix = "items" } }', "options.GPU101.fix: expected one of 'item', 'detach', got"),
    ('options = { GPU101 = { limit = "3" } }', "options.GPU101.limit: expected a value of type int, got '3'"),
    ("options = { GPU102 = { x = 1 } }", "options.GPU102.x: unknown option; GPU102 has no options"),
    ('rules = ["nowhere.py"]', "nowhere.py does not exist"),
    ('extend = "nowhere.toml"', "extend: nowhere.toml does not exist"),
    ("extend = 3", "extend: expected the path of a configuration, got 3"),
    ("select = [", "not valid TOML"),
]


@pytest.mark.parametrize(("line", "message"), WRONG)
@pytest.mark.parametrize("in_pyproject", [False, True])
def test_errors_name_file_key_and_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, message: str, in_pyproject: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    name = "pyproject.toml" if in_pyproject else "gpulint.toml"
    Path(name).write_text(f"[tool.gpulint]\n{line}\n" if in_pyproject else f"{line}\n")
    with pytest.raises(ConfigError, match=re.escape(message)) as caught:
        Selection(ConfigResolver().for_directory(str(tmp_path)))
    prefix = (
        "tool.gpulint."
        if in_pyproject and "TOML" not in message and not message.startswith("nowhere")
        else ""
    )
    assert str(caught.value).startswith(f"{name}: {prefix}")


def test_settings_of_the_command_line_stand_between_its_options_and_the_file() -> None:
    given = config(select=["GPU101"], fail_on="error", fix=True)
    both = Overrides(fail_on="info", settings=('select = ["GPU102"]', 'fail-on = "never"\nfix = false'))
    applied = both.apply(given)
    assert (rule_codes(applied), applied.fail_on, applied.fix) == (["GPU102"], "info", False)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("selct = []", '--config: selct: unknown key; did you mean "select"?'),
        ('extend = "a.toml"', "--config: extend: needs a file"),
    ],
)
def test_wrong_settings_of_the_command_line(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        Selection(Overrides(settings=(text,)).apply(Config()))


def test_what_a_command_asks_of_its_configuration(tmp_path: Path) -> None:
    (tmp_path / "gpulint.toml").write_text(
        'output-format = "json"\nfix = true\nunsafe-fixes = true\nbaseline = "known.json"\nshow-fixes = true\n'
    )
    loaded = ConfigResolver().for_directory(str(tmp_path))
    assert loaded.output_format == "json"
    assert all((loaded.fix, loaded.unsafe_fixes, loaded.show_fixes))
    assert loaded.baseline == str(tmp_path / "known.json")
    assert "known.json" not in repr(loaded)  # what the cache is keyed by


def test_extend(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared/base.toml").write_text(
        'ignore = ["GPU102"]\nexclude = ["gen"]\nfail-on = "error"\n[severity]\nGPU101 = "info"\nGPU102 = "info"\n'
    )
    (tmp_path / "gpulint.toml").write_text(
        'extend = "shared/base.toml"\nfail-on = "warning"\n[severity]\nGPU102 = "error"\n'
    )
    loaded = load_config(str(tmp_path / "gpulint.toml"))
    assert loaded.ignore == ("GPU102",)
    assert loaded.fail_on == "warning"
    assert loaded.severity == {"GPU101": Severity.INFO, "GPU102": Severity.ERROR}
    assert loaded.exclude[0].base == str(tmp_path / "shared")
    assert loaded.root == str(tmp_path)


def test_wrong_value_in_an_extended_file_names_that_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("base.toml").write_text('ignore = ["GPU555"]\n')
    Path("pyproject.toml").write_text('[tool.gpulint]\nextend = "base.toml"\n')
    with pytest.raises(ConfigError, match=r"^base\.toml: ignore: unknown rule"):
        Selection(ConfigResolver().for_directory(str(tmp_path)))


def test_extend_in_a_circle(tmp_path: Path) -> None:
    (tmp_path / "gpulint.toml").write_text('extend = "other.toml"\n')
    (tmp_path / "other.toml").write_text('extend = "gpulint.toml"\n')
    with pytest.raises(ConfigError, match="extends this file in turn"):
        load_config(str(tmp_path / "gpulint.toml"))


def test_broken_pyproject_of_others_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.black\n")
    assert ConfigResolver().for_directory(str(tmp_path)).source is None


def test_schema_has_every_key_and_refuses_what_the_parser_refuses() -> None:
    schema = json_schema()
    assert set(schema["properties"]) == set(KEYS)
    assert schema["additionalProperties"] is False
    json.dumps(schema)
    assert all(key.help for key in KEYS.values())


def test_rules_of_a_project(tmp_path: Path) -> None:
    (tmp_path / "lint").mkdir()
    (tmp_path / "lint/own.py").write_text(OWN_RULE.format(action="pass"))
    (tmp_path / "gpulint.toml").write_text('rules = ["lint"]\nselect = ["OWN"]\n')
    assert rule_codes(ConfigResolver().for_directory(str(tmp_path))) == ["OWN001"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def f(:\n", "cannot be loaded: SyntaxError"),
        ("x = 1\n", "defines no rule"),
        (OWN_RULE.replace("OWN001", "GPU101"), "the code GPU101 is taken by gpulint"),
        (OWN_RULE.replace('    name = "misbehaving"\n', ""), "Misbehaving has no name"),
    ],
)
def test_wrong_rule_files(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "own.py").write_text(text.replace("{action}", "pass"))
    (tmp_path / "gpulint.toml").write_text('rules = ["own.py"]\n')
    with pytest.raises(ConfigError, match=re.escape(message)):
        Selection(ConfigResolver().for_directory(str(tmp_path)))


def test_shipped_rules_load_and_have_unique_codes() -> None:
    shipped = gpulint.rules.all_rules()
    assert len({rule.code for rule in shipped}) == len(shipped)
