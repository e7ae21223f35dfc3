"""Notebooks run as the script of their cells, and fixes come back into the cells."""

import json
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest
import support
from needs import needs_torch

from gpulint.cli import _verify
from gpulint.cli._dispatch import run as dispatch
from gpulint.cli._notebook import cell_script
from gpulint.trial.plan import Trial
from gpulint.trial.trying import Execute, NotWritten

CELLS = [
    "%matplotlib inline\nimport torch\nfrom torch import nn\nfiles = !ls\nfrom helper import size\n",
    "model = nn.Linear(size, 4)\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\ntotal = 0\n"
    "for step in range(40):\n    loss = model(torch.randn(8, size)).square().mean()\n    optimizer.zero_grad()\n"
    "    loss.backward()\n    optimizer.step()\n    total += loss",
    "%%bash\necho no python\n",
    "%time print(float(total), files)\nmodel?",
]


@pytest.fixture
def notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "train.ipynb"
    kernel = {"name": "python3", "language": "python", "display_name": "p"}
    path.write_text(support.notebook(*CELLS, kernelspec=kernel))
    (tmp_path / "helper.py").write_text("size = 16\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    return path


def test_the_script_has_the_cells_in_order_and_says_where(notebook: Path) -> None:
    with cell_script(str(notebook)) as cells:
        text = Path(cells.path).read_text(encoding="utf-8")
        compile(text, cells.path, "exec")
        assert "no python" not in text
        lines = text.splitlines()
        assert "train.ipynb runs as the script of its cells" in cells.note()
        start = lines.index("model = nn.Linear(size, 4)") + 1
        assert f"cell 2 from line {start}" in cells.note()
        assert cells.home == str(notebook.parent)
    assert not Path(cells.path).exists()


@needs_torch
def test_a_fix_that_pays_is_written_into_its_cell(
    notebook: Path, execute: Execute, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def execute_there(what, on_progress=None):  # type: ignore[no-untyped-def]
        assert what.cwd == str(notebook.parent)
        return execute(what, "")

    monkeypatch.setattr(_verify, "run", execute_there)
    before = json.loads(notebook.read_text())
    assert dispatch(["verify", "--fix", "--dry-run", "-q", "train.ipynb"]) == 1, capsys.readouterr()
    assert json.loads(notebook.read_text()) == before
    assert dispatch(["verify", "--fix", "-q", "train.ipynb"]) == 0, capsys.readouterr()
    shown = capsys.readouterr()
    assert "pays GPU101" in shown.out
    assert "written to train.ipynb" in shown.out
    after = json.loads(notebook.read_text())
    sources = ["".join(cell["source"]) for cell in after["cells"]]
    assert [i for i, (a, b) in enumerate(zip(CELLS, sources, strict=True)) if a != b] == [1]
    assert "total += loss." in sources[1]


@needs_torch
def test_what_was_measured_is_told_of_the_cells(notebook: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (
        notebook.read_text().replace("total = 0", "total = []").replace("total += loss", "total.append(loss)")
    )
    notebook.write_text(text.replace("float(total)", "len(total)"))
    assert dispatch(["verify", "-q", "--steps", "5", "--report", "page.html", "train.ipynb"]) == 1
    shown = capsys.readouterr().out
    assert shown.startswith("train.ipynb: on the CPU")
    assert "train.ipynb:cell 2:9:5: confirmed" in shown
    assert "9 |     total.append(loss)" in shown
    assert "born:     train.ipynb:cell 2:5" in shown
    assert "gpulint-cells" not in shown + Path("page.html").read_text(encoding="utf-8")


def test_an_error_is_told_of_its_cell(notebook: Path, capsys: pytest.CaptureFixture[str]) -> None:
    notebook.write_text(notebook.read_text().replace("total = 0", "1 / 0"))
    assert dispatch(["verify", "-q", "train.ipynb"]) == 2
    said = capsys.readouterr()
    assert "gpulint-cells" not in said.out + said.err
    assert 'train.ipynb:cell 2", line 3' in said.err


LOOP = CELLS[1].partition("total = 0\n")[2].replace("40", "steps")
HELPER = f"""\
size = 16


def total_of(model, optimizer, steps):
    import torch

    total = 0
{textwrap.indent(LOOP, "    ")}
    return total
"""


@needs_torch
def test_the_modules_that_cells_import_are_linted_tried_and_written(
    notebook: Path, execute: Execute, capsys: pytest.CaptureFixture[str]
) -> None:
    helper = notebook.parent / "helper.py"
    helper.write_text(HELPER, encoding="utf-8")
    data = json.loads(notebook.read_text())
    data["cells"][0]["source"] = CELLS[0].replace("import size", "import size, total_of")
    before, _, _ = CELLS[1].partition("for step")
    data["cells"][1]["source"] = f"{before}total = total_of(model, optimizer, 40)"
    notebook.write_text(json.dumps(data))
    assert dispatch(["verify", "--fix", "-q", "train.ipynb"]) == 0, capsys.readouterr()
    shown = capsys.readouterr().out
    assert "helper.py:13: pays GPU101" in shown
    assert "gpulint-cells-" not in shown
    assert "written to helper.py" in shown
    assert "total += loss." in helper.read_text(encoding="utf-8")
    assert json.loads(notebook.read_text()) == data


def test_cells_and_modules_are_written_together_or_not_at_all(notebook: Path) -> None:
    helper = notebook.parent / "helper.py"
    with cell_script(notebook.name) as cells:
        script = Path(cells.path).read_text(encoding="utf-8")
        originals = {cells.path: script, str(helper): helper.read_text(encoding="utf-8")}
        texts = {
            cells.path: script.replace("total += loss", "total += loss.item()"),
            str(helper): "size = 8\n",
        }
        trial = Trial("train.ipynb", originals=originals, texts=texts)
        with pytest.raises(NotWritten, match="a magic"):
            cells.apply(replace(trial, texts={**texts, cells.path: script.replace("_magic_", "_other_")}))
        assert helper.read_text(encoding="utf-8") == "size = 16\n"
        assert cells.apply(trial).written == (str(helper), str(notebook.name))
    assert helper.read_text(encoding="utf-8") == "size = 8\n"
    assert "total += loss.item()" in notebook.read_text(encoding="utf-8")


def test_a_notebook_of_another_language_is_refused(
    notebook: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = json.loads(notebook.read_text())
    data["metadata"]["kernelspec"] = {"name": "ir", "language": "R", "display_name": "R"}
    notebook.write_text(json.dumps(data))
    assert dispatch(["verify", "-q", "train.ipynb"]) == 2
    assert "train.ipynb" in capsys.readouterr().err
