"""Notebooks as files: reading their JSON, putting changed cells back without touching anything else, and IPython's syntax in them."""

import ast
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import book
from support import code_cell as code

from gpulint.source.magics import HIDDEN, Hiding, cell_language
from gpulint.source.notebooks import NotebookError, read_notebook


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("", 1, "empty"),
        ("x = 1\n", 1, "Expecting value"),
        ('{\n "cells": [\n  {"cell_type": "code",}\n ]\n}', 3, "property name"),
        ('{"cells": []} {}', 1, "Extra data"),
        ("[1, 2]", 1, "no object"),
        ('{"a": 1}', 1, "no cells"),
        ('{"cells": {}}', 1, "no list"),
        ('{"cells": [\n 3]}', 2, "no object"),
        ('{"cells": [{"cell_type": "code"}]}', 1, "no source"),
        ('{"cells": [{"cell_type": "code", "source": 4}]}', 1, "neither text nor lines"),
        ("[" * 100_000, 1, "nested too deeply"),
    ],
)
def test_what_is_no_notebook_is_refused_with_its_place(text: str, line: int, said: str) -> None:
    with pytest.raises(NotebookError) as caught:
        read_notebook(text)
    assert said in caught.value.message
    assert caught.value.line == line


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"metadata": {}, "nbformat": 3, "nbformat_minor": 0, "worksheets": [{"cells": []}]}, "format 3"),
        (book(code("x <- 1"), metadata={"language_info": {"name": "R"}}), "in R"),
        (book(code("x = 1"), metadata={"kernelspec": {"language": "julia"}}), "in julia"),
    ],
)
def test_notebooks_of_others_are_passed_over_and_it_is_said_why(data: dict[str, Any], said: str) -> None:
    notebook = read_notebook(json.dumps(data))
    assert said in notebook.foreign
    assert not notebook.cells


@pytest.mark.parametrize("metadata", [None, {}, {"language_info": {"name": "python"}}, {"kernelspec": 3}])
def test_python_is_what_a_notebook_is_in_unless_it_says_otherwise(metadata: Any) -> None:
    assert len(read_notebook(json.dumps(book(code("x = 1"), metadata=metadata))).cells) == 1


def test_cells_that_an_editor_marks_as_another_language_are_left_out() -> None:
    sql = code("select 1", metadata={"vscode": {"languageId": "sql"}})
    python = code("x = 1", metadata={"vscode": {"languageId": "python"}})
    assert [cell.number for cell in read_notebook(json.dumps(book(sql, python))).cells] == [2]


STYLES = {
    "indented lists": lambda data: json.dumps(data, indent=1, ensure_ascii=False) + "\n",
    "escapes": lambda data: json.dumps(data, indent=2),
    "compact": lambda data: json.dumps(data, separators=(",", ":")),
    "sorted, with CRLF": lambda data: json.dumps(data, indent=4, sort_keys=True).replace("\n", "\r\n")
    + "\r\n",
}


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("as_list", [True, False])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a = 1\nb = 2\nc = 'é😀'", "a = 1\nb = 20\nc = 'é😀'"),
        ("a = 1\nb = 2", "import x\na = 1\nb = 2"),
        ("a = 1\nb = 2", "a = 1\nb = 2\nc = 3"),
        ("a = 1\nb = 2\nc = 3", "a = 1\nc = 3"),
        ("a = 1\nb = 2", "a = 1"),
        ("a = 1\r\nb = 2", "a = 1\r\nx = 'ü\"\\n'\r\nb = 2"),
        ("a = 1", ""),
        ("", "a = 1\nb = 2"),
    ],
)
def test_a_changed_cell_is_written_as_its_editor_would(
    style: str, as_list: bool, before: str, after: str
) -> None:
    def written(source: str) -> str:
        spelled: Any = source.splitlines(keepends=True) if as_list else source
        output = {"output_type": "stream", "name": "stdout", "text": ["ünï\n"]}
        return STYLES[style](book(code("z = 'ä'"), code(spelled, outputs=[output]), code(["q"])))

    text = written(before)
    changed = read_notebook(text).rewritten({2: after})
    assert json.loads(changed) == json.loads(written(after))
    if before and after and style != "compact" and not (style == "escapes" and before == "a = 1"):
        one_line_list = as_list and "\n" not in before
        assert changed == written(after) or one_line_list


# Any spelling of a character that JSON allows.
def spelled(letter: str, how: int) -> str:
    if how == 0 and letter not in '"\\' and letter >= " ":
        return letter
    if how == 1 or letter in '"\\' or letter < " ":
        return json.dumps(letter)[1:-1]
    units = letter.encode("utf-16-be")
    return "".join(f"\\u{units[at] << 8 | units[at + 1]:04X}" for at in range(0, len(units), 2))


TEXT = st.text(alphabet='ab =\n"\\\té😀\r{}[],:', max_size=24)


@given(
    chunks=st.lists(st.tuples(TEXT, st.integers(0, 2)), max_size=5),
    as_list=st.booleans(),
    start=st.integers(0, 120),
    length=st.integers(0, 10),
    content=TEXT,
    blank=st.sampled_from(["", " ", "\n  ", "\r\n\t"]),
)
def test_only_the_changed_characters_are_spelled_anew(
    chunks: list[tuple[str, int]], as_list: bool, start: int, length: int, content: str, blank: str
) -> None:
    if not as_list:
        chunks = chunks[:1] or [("", 0)]
    strings = ['"' + "".join(spelled(letter, how) for letter in text) + '"' for text, how in chunks]
    source = f"[{blank}" + f",{blank}".join(strings) + f"{blank}]" if as_list else strings[0]
    head = f'{{{blank}"nbformat": 4, "cells":{blank}[{{"outputs": [{{"source": "no"}}], "source":{blank}'
    tail = f'{blank}, "cell_type": "code", "metadata": {{"a\\u0062": 1.50}}}}]}}{blank}'
    text = head + source + tail
    notebook = read_notebook(text)
    before = "".join(part for part, _ in chunks)
    assert notebook.cells[0].source == before
    assert notebook.rewritten({1: before}) == text
    after = before[:start] + content + before[start + length :]
    changed = notebook.rewritten({1: after})
    assert changed.startswith(head)
    assert changed.endswith(tail)
    assert read_notebook(changed).cells[0].source == after


# -- IPython's syntax: what stands for it, and that it comes back --------------------------------------------


@pytest.mark.parametrize(
    "source",
    [
        "%matplotlib inline",
        "!echo it's",
        "!!ls",
        "?print",
        "print?",
        "model.forward??",
        "np.*load*?",
        "x = !ls",
        "x = %who_ls int",
        "files['a=b'], x[0] = !ls",
        "é = %time f(x)",
        "a, *b = !ls",
        "a: int = !ls",
        "x = y[0].z?",
        "%%time",
        "!pip install \\\n    torch \\\n    torchvision",
        "x = !ls \\\n  -l\ny = 1",
        "if x:\n    %time y = f(x)\n    !ls\nelse:\n    ?f",
        "%timeit -n 10 -r3 f(x)",
        "%time for x in y: f(x)",
        ",f a b",
        ";f a b",
        "/f a",
        "x = (a\n%b)",
        "x = '''\n%not a magic\n!nor this\n'''\n%matplotlib inline",
        "x = 'a\\\n%b'\n!ls",
        "x = 1 # it's\n!ls",
        "!ls\r\nx = 1\r\n%pwd\r\n",
        "%load_ext autoreload\n%autoreload 2\n\nimport torch\n",
        "",
    ],
)
def test_python_stands_for_it_and_it_comes_back(source: str) -> None:
    hiding = Hiding()
    hidden = hiding.hide(source)
    ast.parse("if 1:\n" + hidden if hidden.startswith("  ") else hidden)
    assert len(hidden.splitlines()) == len(source.splitlines())
    assert hiding.restore(hidden) == source


@pytest.mark.parametrize(
    "source",
    [
        "x = (a\n% b)",
        "'''\n!ls\n'''",
        "x = [\n    '%d',\n]",
        "x = f'{y=!r}'",
        'x = f"""{y=!r}\n{z=!r}"""',
        "x = y = (z\n!= 3)",
        "assert x, '?'",
    ],
)
def test_python_stays_as_it_is(source: str) -> None:
    assert Hiding().hide(source) == source


def test_columns_of_a_statement_that_a_magic_runs_stay() -> None:
    hidden = Hiding().hide("%time loss.backward()")
    assert hidden.index("loss.backward()") == len("%time ")
    assert [type(item).__name__ for item in ast.parse(hidden).body] == ["Expr", "Expr"]


def test_a_command_without_its_sign_counts_only_where_asked_for() -> None:
    assert Hiding().hide("pip install torch") == "pip install torch"
    hiding = Hiding()
    hidden = hiding.hide("pip install -q torch\ncd = 3\nrun(x)", automagic=True)
    ast.parse(hidden)
    assert hidden.endswith("\ncd = 3\nrun(x)")
    assert hiding.restore(hidden) == "pip install -q torch\ncd = 3\nrun(x)"


def test_a_hidden_line_may_be_indented_but_not_changed() -> None:
    hiding = Hiding()
    hidden = hiding.hide("!ls\nx = 1")
    assert hiding.restore("    " + hidden) == "    !ls\nx = 1"
    assert hiding.restore(hidden.replace("0#", "00#")) is None
    assert hiding.restore(hidden.replace(HIDDEN, "  # " + HIDDEN)) is None
    assert hiding.numbers(hidden) == [0]
    assert hiding.numbers("x = 1") == []


@pytest.mark.parametrize(
    ("source", "language"),
    [
        ("x = 1", ""),
        ("%%time\nx = 1", ""),
        ("\n%%capture out\nx = 1", ""),
        ("%%bash\nls", "bash"),
        ("%%writefile a.py\nx = 1", "writefile"),
        ("%%time\n%%bash\nls", "bash"),
        ("%time x\n%%bash", ""),
        ("x = 1\n%%bash", ""),
    ],
)
def test_what_a_cell_is_written_in(source: str, language: str) -> None:
    assert cell_language(source) == language


LINES = st.sampled_from(
    [
        "x = 1",
        "!ls",
        "%time f(x)",
        "x?",
        "if x:",
        "    y = '''",
        "    !ls \\",
        "  -l",
        "'''",
        "x = (",
        ")",
        "",
        "# %a",
        "y = !ls",
        '"""%a',
    ]
)


@given(st.lists(LINES, max_size=12), st.sampled_from(["\n", "\r\n", "\r"]), st.booleans())
def test_whatever_is_hidden_comes_back(lines: list[str], newline: str, automagic: bool) -> None:
    source = newline.join(lines)
    hiding = Hiding()
    hidden = hiding.hide(source, automagic)
    assert hiding.restore(hidden) == source
    assert hidden.count(newline) == source.count(newline)
