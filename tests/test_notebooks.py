"""Notebooks as files: reading their JSON, and putting changed cells back without touching anything else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import book
from support import code_cell as code

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
