import subprocess
import sys
from pathlib import Path

import pytest
from support import CLEAN, HELD, HELD_ROW

import gpulint


def test_check_source() -> None:
    (found,) = gpulint.check_source(HELD)
    assert isinstance(found, gpulint.Finding)
    assert (found.code, found.name, found.line, found.column) == ("GPU101", "held-graph", HELD_ROW, 9)
    assert (found.end_line, found.filename) == (HELD_ROW, "<stdin>")
    assert isinstance(found.severity, gpulint.Severity)
    assert isinstance(found.fix, gpulint.Fix)
    assert all(isinstance(edit, gpulint.Edit) for edit in found.fix.edits)
    assert gpulint.check_source(CLEAN, "clean.py") == []
    assert gpulint.check_source(HELD, filename="a.py")[0].filename == "a.py"


@pytest.mark.parametrize(
    "text", ["def f(:\n", "import torch\nx = (\n", "x\0", "import torch\nx = " + "(" * 3000]
)
def test_text_that_does_not_parse(text: str) -> None:
    (found,) = gpulint.check_source(text)
    assert found.code == "GPU000"
    assert gpulint.fix_source(text).text == text


@pytest.mark.parametrize(
    "text", ["", "\ufeff", "\ud800", "x = '\ud800'\nimport torch\n", "# coding: latin-1\nx = 'é'\n"]
)
def test_odd_text(text: str) -> None:
    assert [found for found in gpulint.check_source(text) if found.name == "internal-error"] == []


def test_config_of_every_kind(tmp_path: Path) -> None:
    assert gpulint.check_source(HELD, config={"ignore": ["GPU101"]}) == []
    (tmp_path / "gpulint.toml").write_text('ignore = ["GPU101"]\n')
    assert gpulint.check_source(HELD, config=tmp_path / "gpulint.toml") == []
    assert gpulint.check_source(HELD, config=gpulint.Config()) != []
    with pytest.raises(gpulint.ConfigError, match='selct: unknown key; did you mean "select"'):
        gpulint.check_source(HELD, config={"selct": []})
    (tmp_path / "pyproject.toml").write_text("[tool.other]\n")
    with pytest.raises(gpulint.ConfigError, match=r"no \[tool\.gpulint\] table"):
        gpulint.check_source(HELD, config=str(tmp_path / "pyproject.toml"))


def test_fix_source() -> None:
    fixed = gpulint.fix_source(HELD)
    assert fixed.text != HELD
    assert [found.code for found in fixed.applied] == ["GPU101"]
    assert list(fixed.remaining) == []
    assert gpulint.fix_source(fixed.text).text == fixed.text
    assert gpulint.fix_source("\ufeff" + HELD.replace("\n", "\r\n")).text == "\ufeff" + fixed.text.replace(
        "\n", "\r\n"
    )
    assert gpulint.fix_source(HELD, config={"ignore": ["GPU1"]}).text == HELD


def test_check_paths(tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg/train.py").write_text(HELD)
    (tmp_path / "pkg/broken.py").write_text("def f(:\n")
    found = gpulint.check_paths(tmp_path)
    assert [(Path(item.filename).name, item.code) for item in found] == [
        ("broken.py", "GPU000"),
        ("train.py", "GPU101"),
    ]
    assert gpulint.check_paths([str(tmp_path / "pkg/train.py")], config={"ignore": ["GPU101"]}) == []
    (tmp_path / "gpulint.toml").write_text('ignore = ["GPU101"]\n')
    assert [item.code for item in gpulint.check_paths([tmp_path])] == ["GPU000"]


def test_names_are_loaded_when_used() -> None:
    script = (
        "import sys, gpulint;"
        "heavy = {m for m in sys.modules if m.startswith(('gpulint.', 'libcst', 'rich', 'click'))};"
        "assert heavy == {'gpulint.version'}, heavy; assert set(gpulint.__all__) <= set(dir(gpulint));"
        "[getattr(gpulint, name) for name in gpulint.__all__]; assert 'libcst' not in sys.modules;"
        "gpulint.check_source('import os'); assert 'libcst' not in sys.modules; assert 'torch' not in sys.modules;"
        "assert not {m for m in sys.modules if m.startswith(('gpulint.analysis.evaluate', 'gpulint.rules.gpu'))};"
        "gpulint.check_source('import torch; losses = [] # a loss'); assert 'gpulint.rules.gpu101_held_graph' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = gpulint.nonsense


@pytest.mark.usefixtures("warm_scripts")
def test_verify_runs_and_judges(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    script = tmp_path / "train.py"
    script.write_text(
        "import sys, torch\n"
        "model = torch.nn.Linear(64, 64)\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "losses = []\n"
        "for _ in range(int(sys.argv[1])):\n"
        "    loss = model(torch.randn(8, 64)).square().mean()\n"
        "    optimizer.zero_grad()\n"
        "    loss.backward()\n"
        "    optimizer.step()\n"
        "    losses.append(loss)\n"
    )
    found = gpulint.verify(script, ["600"], device="cpu", steps=10, timeout=100)
    assert isinstance(found, gpulint.Verification)
    assert [(v.code, v.line, v.status) for v in found.verdicts] == [("GPU101", 10, "confirmed")]
    assert (found.exit_code, found.run.end.reason) == (1, "finished")
    assert gpulint.verify(script, ["60"], device="cpu", steps=10, max_drift=512, timeout=100).exit_code == 0
    script.write_text(f"{script.read_text()}\n\ndef validation_step(batch):\n    return model(batch)\n")
    found = gpulint.verify(script, ["60"], device="cpu", steps=10, timeout=100, findings=[])
    assert (len(found.verdicts), len(found.unpredicted), found.exit_code) == (0, 1, 1)


def test_verify_says_what_cannot_be_run(tmp_path: Path) -> None:
    assert gpulint.verify(tmp_path / "missing.py").run.end.reason == "not-started"
    with pytest.raises(ValueError, match="device is 'gpu'"):
        gpulint.verify("train.py", device="gpu")
