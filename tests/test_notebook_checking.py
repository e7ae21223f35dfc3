"""Notebooks through the whole tool: findings in cells, fixes, suppressions, reports, discovery."""

import json
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from support import book, findings, gpulint
from support import code_cell as code

SETUP = "import torch\nfrom torch import nn\n\nmodel = torch.hub.load('pytorch/vision', 'resnet50').cuda()\ncriterion = nn.CrossEntropyLoss()\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)"
LOOP = "total = 0\nfor x, y in loader:\n    optimizer.zero_grad()\n    loss = criterion(model(x), y)\n    loss.backward()\n    optimizer.step()\n    total += loss\nprint(total)"
HEADING = {"cell_type": "markdown", "metadata": {}, "source": ["# Training\n"]}


def lines(source: str) -> list[str]:
    return source.splitlines(keepends=True)


def save(path: Path, *sources: str, **more: Any) -> str:
    text = json.dumps(
        book(HEADING, *(code(lines(source)) for source in sources), **more), indent=1, ensure_ascii=False
    )
    path.write_bytes((text + "\n").encode())
    return text + "\n"


def sources(path: Path) -> list[str]:
    return ["".join(cell["source"]) for cell in json.loads(path.read_text(encoding="utf-8"))["cells"][1:]]


def test_cells_are_one_module_and_places_count_in_the_cell(tmp_path: Path) -> None:
    save(tmp_path / "t.ipynb", SETUP, "%%bash\nfor x in y", LOOP)
    (item,) = findings("t.ipynb", cwd=tmp_path)
    assert (item["code"], item["cell"]) == ("GPU101", 4)
    assert item["location"] == {"row": 7, "column": 5}
    assert item["end_location"]["row"] == 7
    assert [edit["cell"] for edit in item["fix"]["edits"]] == [4]


def test_formats_that_point_into_the_file_have_its_rows_and_name_the_cell(tmp_path: Path) -> None:
    text = save(tmp_path / "t.ipynb", SETUP, LOOP)
    row = 1 + next(number for number, line in enumerate(text.split("\n")) if "total += loss" in line)

    def report(form: str) -> str:
        return gpulint("--output-format", form, "t.ipynb", cwd=tmp_path).stdout.decode()

    assert f"file=t.ipynb,line={row},endLine={row}::GPU101 cell 3, line 7: " in report("github")
    (issue,) = json.loads(report("gitlab"))
    assert issue["location"]["positions"]["begin"]["line"] == row
    assert "cell 3, line 7" in issue["description"]
    (result,) = json.loads(report("sarif"))["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["region"] == {"startLine": row, "endLine": row}
    assert result["message"]["text"].startswith("cell 3, line 7: ")
    assert "fixes" not in result
    case = ElementTree.fromstring(report("junit")).find(".//testcase")
    assert (case.get("line"), "cell 3:7:5" in str(case.get("name"))) == (str(row), True)
    assert json.loads(report("json-lines"))["cell"] == 3


FORMS = {
    "lists": lambda data: json.dumps(data, indent=1, ensure_ascii=False) + "\n",
    "no line at the end": lambda data: json.dumps(data, indent=1, ensure_ascii=False),
    "escapes": lambda data: json.dumps(data, indent=2) + "\n",
    "CRLF": lambda data: json.dumps(data, indent=1).replace("\n", "\r\n"),
    "one line": lambda data: json.dumps(data),
    "keys in order": lambda data: json.dumps(data, indent=4, sort_keys=True),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("as_list", [True, False])
def test_a_fix_changes_nothing_else(tmp_path: Path, form: str, as_list: bool) -> None:
    output = {"data": {"text/plain": ["total += loss é\n"]}, "output_type": "display_data", "metadata": {}}
    loop = "%%time\n" + LOOP.replace("print(total)", "print(total)  # naïve 😀\n!ls {total}\nx = !ls\ntotal?")

    def written(source: str) -> bytes:
        spelled: Any = lines(source) if as_list else source
        cells = (
            HEADING,
            code(lines(SETUP), outputs=[output]),
            code(spelled, outputs=[output], execution_count=3),
        )
        return FORMS[form](
            book(*cells, metadata={"language_info": {"name": "python", "version": "3.11"}})
        ).encode()

    file = tmp_path / "t.ipynb"
    file.write_bytes(written(loop))
    gpulint("--fix", "t.ipynb", cwd=tmp_path, status=0)
    assert file.read_bytes() == written(loop.replace("total += loss", "total += loss.item()"))


EVALUATE = "def evaluate(model, loader):\n    model.eval()\n    correct = 0\n    for x, y in loader:\n        correct += (model(x).argmax(1) == y).sum().item()\n    return correct"


@pytest.mark.parametrize(
    "first",
    [
        "import os",
        "from __future__ import annotations\nimport os",
        "%matplotlib inline\n!pip install torch",
        "%%capture\n!pip install \\\n  torch\nimport os\nx = 1",
        "'''About this.'''\nimport os\n",
    ],
)
def test_an_import_goes_among_the_imports(tmp_path: Path, first: str) -> None:
    """To the end of the first ones: into the next cell, unless something else comes in between."""
    save(
        tmp_path / "t.ipynb",
        first,
        "from torch import nn\nmodel = nn.Linear(4096, 2048).cuda()",
        EVALUATE,
        "evaluate(model, loader)",
    )
    assert gpulint("--fix", "--unsafe-fixes", "t.ipynb", cwd=tmp_path).returncode == 0
    fixed = sources(tmp_path / "t.ipynb")
    assert "@torch.no_grad()" in fixed[2]
    module = "\n".join(fixed)
    assert module.count("import torch\n") + module.endswith("import torch") == 1
    assert module.index("import torch\n") < module.index("@torch.no_grad()")
    assert fixed[0] == first.replace("import os\nx", "import os\nimport torch\nx")


def test_a_cell_that_does_not_parse_costs_only_itself(tmp_path: Path) -> None:
    save(tmp_path / "t.ipynb", SETUP, "def broken(:\n    pass", LOOP)
    broken, held = findings("t.ipynb", cwd=tmp_path)
    assert (broken["code"], broken["cell"], broken["location"]["row"]) == ("GPU000", 3, 1)
    assert (held["code"], held["cell"]) == ("GPU101", 4)
    assert gpulint("--fix", "t.ipynb", cwd=tmp_path).returncode == 1
    assert "total += loss.item()" in sources(tmp_path / "t.ipynb")[2]


def test_a_broken_cell_that_may_decide_is_a_doubt_of_the_others(tmp_path: Path) -> None:
    before = save(tmp_path / "t.ipynb", SETUP, "torch.set_grad_enabled(False", LOOP)
    assert [item["code"] for item in findings("t.ipynb", cwd=tmp_path)] == ["GPU000"]
    _, held = findings("--confidence", "low", "t.ipynb", cwd=tmp_path)
    assert (held["code"], held["cell"], held["confidence"]) == ("GPU101", 4, "low")
    assert held["doubts"] == ["cell 3 does not parse, and speaks of gradients: what it does is not seen"]
    assert held["fix"]["applicability"] == "unsafe"
    explained = gpulint("explain", "t.ipynb:4:7", cwd=tmp_path).stdout.decode()
    assert "cell 3 does not parse" in explained
    assert gpulint("--fix", "--confidence", "low", "t.ipynb", cwd=tmp_path).returncode == 1
    assert (tmp_path / "t.ipynb").read_text(encoding="utf-8") == before
    gpulint("--fix", "--unsafe-fixes", "--confidence", "low", "t.ipynb", cwd=tmp_path)
    assert sources(tmp_path / "t.ipynb")[1:] == [
        "torch.set_grad_enabled(False",
        LOOP.replace("+= loss", "+= loss.item()"),
    ]


@pytest.mark.parametrize(
    "cell",
    [
        "await fetch()",
        "async with a as b:\n    pass",
        "x = [i async for i in f()]",
        "    x = 1\n    y = 2",
        "pip install torch",
        "x = 1\ncd ../data\ny = 2",
        "%load_ext tools.boards\nboards --logdir 'runs'",
        "",
        "from __future__ import annotations",
    ],
)
def test_what_ipython_takes_is_no_error(tmp_path: Path, cell: str) -> None:
    save(tmp_path / "t.ipynb", SETUP, cell, LOOP)
    assert [item["code"] for item in findings("t.ipynb", cwd=tmp_path)] == ["GPU101"]
    before = sources(tmp_path / "t.ipynb")
    gpulint("--fix", "t.ipynb", cwd=tmp_path)
    assert sources(tmp_path / "t.ipynb")[1] == before[1]


def test_a_cell_may_use_the_magics_that_another_loads(tmp_path: Path) -> None:
    folder = "folder = 1\nboards --logdir '$folder'"
    save(tmp_path / "t.ipynb", SETUP, "%load_ext boards", folder, LOOP)
    assert [item["code"] for item in findings("t.ipynb", cwd=tmp_path)] == ["GPU101"]
    save(tmp_path / "t.ipynb", SETUP, folder, LOOP)
    assert [item["code"] for item in findings("t.ipynb", cwd=tmp_path)] == ["GPU000", "GPU101"]


def test_a_magic_may_run_what_decides(tmp_path: Path) -> None:
    save(tmp_path / "t.ipynb", SETUP, LOOP.replace("    loss.backward()", "    %time loss.backward()"))
    (item,) = findings("t.ipynb", cwd=tmp_path)
    assert "graph freed" in item["reason"]


def test_a_comment_speaks_about_its_own_cell(tmp_path: Path) -> None:
    save(tmp_path / "t.ipynb", SETUP, "x = 1\n# gpulint: ignore[GPU101]", LOOP.partition("\n")[2])
    save(tmp_path / "f.ipynb", "# gpulint: ignore-file", SETUP, LOOP)
    found = findings("t.ipynb", "f.ipynb", cwd=tmp_path)
    assert [(item["code"], item["cell"]) for item in found if item["code"] == "GPU001"] == [("GPU001", 3)]
    assert {Path(item["filename"]).name for item in found} == {"t.ipynb"}


def test_add_ignore_writes_comments_into_cells(tmp_path: Path) -> None:
    save(tmp_path / "t.ipynb", SETUP, "!ls\n" + LOOP)
    assert gpulint("--add-ignore", ".", cwd=tmp_path).returncode == 0
    assert sources(tmp_path / "t.ipynb")[1] == "!ls\n" + LOOP.replace(
        "total += loss", "total += loss  # gpulint: ignore[GPU101]"
    )
    assert gpulint(".", cwd=tmp_path).returncode == 0


def test_diff_is_by_cell(tmp_path: Path) -> None:
    text = save(tmp_path / "t.ipynb", SETUP, LOOP)
    done = gpulint("--diff", "t.ipynb", cwd=tmp_path, status=1)
    shown = done.stdout.decode().splitlines()
    assert shown[:2] == ["--- a/t.ipynb:cell 3", "+++ b/t.ipynb:cell 3"]
    assert "+    total += loss.item()" in shown
    assert (tmp_path / "t.ipynb").read_text(encoding="utf-8") == text


def test_standard_input(tmp_path: Path) -> None:
    text = save(tmp_path / "t.ipynb", SETUP, LOOP)
    done = gpulint("--stdin-filename", "n.ipynb", "-", cwd=tmp_path, stdin=text.encode())
    assert done.stdout.startswith(b"n.ipynb:cell 3:7:5: ")
    assert b"7 |     total += loss" in done.stdout
    assert b"+ total += loss.item()" in done.stdout
    fixed = gpulint("--fix", "--stdin-filename", "n.ipynb", "-", cwd=tmp_path, stdin=text.encode())
    assert fixed.stdout.decode() == text.replace("total += loss", "total += loss.item()")


def test_what_is_no_python_notebook(tmp_path: Path) -> None:
    save(
        tmp_path / "r.ipynb",
        "total <- 1 + loss$backward()",
        metadata={"kernelspec": {"language": "R", "name": "ir"}},
    )
    (tmp_path / "old.ipynb").write_text(json.dumps({"nbformat": 3, "worksheets": [], "metadata": {}}))
    (tmp_path / "bad.ipynb").write_text('{\n "cells": [\n')
    save(tmp_path / "none.ipynb")
    done = gpulint("-v", "--output-format", "concise", ".", cwd=tmp_path, status=1)
    assert done.stdout.startswith(b"bad.ipynb:3:1: GPU000 not a notebook: invalid JSON")
    said = done.stderr.decode()
    assert "skipped r.ipynb: a notebook in R, not in Python" in said
    assert "skipped old.ipynb: a notebook of format 3 or older" in said


def test_huge_outputs_take_no_time(tmp_path: Path) -> None:
    output = {"data": {"image/png": "A" * 30_000_000}, "output_type": "display_data", "metadata": {}}
    data = book(code(lines(SETUP)), code(lines(LOOP), outputs=[output]))
    (tmp_path / "t.ipynb").write_text(json.dumps(data))
    started = time.perf_counter()
    assert gpulint("--fix", "--no-cache", "t.ipynb", cwd=tmp_path).returncode == 0
    assert time.perf_counter() - started < 20


def test_lines_at_the_end_of_a_cell_stay_in_it(tmp_path: Path) -> None:
    last = "torch.cuda.empty_cache()  # gpulint: ignore[GPU501]"
    save(tmp_path / "t.ipynb", SETUP, f"x = 1\n{last}", "y = 2")
    assert gpulint("--fix", "t.ipynb", cwd=tmp_path).returncode == 0
    assert sources(tmp_path / "t.ipynb")[1:] == ["x = 1\ntorch.cuda.empty_cache()", "y = 2"]
