"""IPython's syntax: what stands for it, and that it comes back."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulint.source.magics import HIDDEN, Hiding, cell_language


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
