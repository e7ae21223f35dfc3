import ast
from pathlib import Path

import pytest
from support import HELD, HELD_ROW, codes, gpulint

from gpulint.findings import Finding, Severity
from gpulint.lint.ignoring import add_ignores
from gpulint.lint.suppressions import directives, suppressed
from gpulint.source.edits import apply_edits
from gpulint.source.files import split_lines

CHECKED = ("GPU101", "GPU102", "GPU201")


def finding(row: int, code: str = "GPU101", end_row: int | None = None) -> Finding:
    return Finding(code, "x", Severity.ERROR, "m", "a.py", row, 1, end_row or row, 5)


def left(text: str, *found: Finding, first: dict[int, int] | None = None) -> list[tuple[str, int]]:
    kept = suppressed(text, list(found), lambda row: (first or {}).get(row, row), "a.py", CHECKED)
    return [(item.code, item.line) for item in kept]


@pytest.mark.parametrize(
    "comment",
    [
        "# gpulint: ignore[GPU101]",
        "# gpulint: ignore[GPU1]",
        "#gpulint: ignore [ GPU101 ]",
        "# gpulint: ignore[gpu101] -- kept on purpose, see #12",
        "# gpulint: ignore[held-graph]",
        "# gpulint: ignore[GPU201, Held_Graph]",
        "# gpulint: ignore",
        "# gpulint: ignore -- everything",
        "# gpulint: ignore[ALL]",
        "# gpulint: disable = GPU102, GPU101 -- as in pylint",
        "# gpulint: disable=all",
        "# gpulint: ignore=GPU1",
        "# type: ignore # gpulint: ignore[GPU101]",
        "# noqa: GPU101",
        "# noqa: E501 GPU101",
        "# noqa",
        "# noqa: GPU1",
        "# pylint: disable=all  # noqa: GPU101 for the reason above",
    ],
)
def test_comments_that_silence(comment: str) -> None:
    kept = left(f"a = 1\ntotal += loss  {comment}\nb = 2\n", finding(2))
    assert [item for item in kept if item[0] != "GPU001"] == []


@pytest.mark.parametrize(
    "comment",
    [
        "# gpulint: ignore[GPU102]",
        "# gpulint: ignore[]",
        "# gpulint: disable-next=GPU101",
        "# gpulint: skip",
        "# gpulint:",
        "# gpulint: ignore GPU101",
        "# gpulint: ignore[GPU101",
        "# gpulint: ignore: GPU101",
        "# gpulint: ignore[GPU999]",
        "# gpulint: ignore[GPU101;GPU102]",
        "# gpulint ignore[GPU101]",
        "# noqa: E501",
        "# noqa: because I say so",
        "# noqaGPU101",
        "# noqa GPU101",
        "# noqa[GPU101]",
        "# noqa: [GPU101]",
        "# noqa: held-graph",
        "# see gpulint: docs",
        "'# gpulint: ignore[GPU101]'",
        "'''# noqa'''",
    ],
)
def test_comments_that_do_not(comment: str) -> None:
    assert ("GPU101", 2) in left(f"a = 1\ntotal += loss, {comment}\n", finding(2))


def test_other_lines_are_not_silenced() -> None:
    assert left("a  # noqa\nb\n", finding(2)) == [("GPU101", 2)]


def test_inside_a_string_of_many_lines() -> None:
    text = 's = """\n# gpulint: ignore-file\n# noqa\n"""\ntotal += loss\n'
    assert left(text, finding(3), finding(5)) == [("GPU101", 3), ("GPU101", 5)]


def test_on_the_first_line_of_the_statement_and_on_the_last_of_the_span() -> None:
    text = "losses.append(  # gpulint: ignore[GPU101]\n    loss\n)\n"
    assert left(text, finding(2), first={2: 1}) == []
    assert left("losses.append(\n    loss\n)  # gpulint: ignore[GPU101]\n", finding(1, end_row=3)) == []


def test_on_a_line_of_its_own() -> None:
    text = "a = 1\n# gpulint: ignore[GPU101] -- needed\n\n# more words\ntotal += loss\ntotal += loss\n"
    assert left(text, finding(5), finding(6)) == [("GPU101", 6)]


def test_whole_file() -> None:
    assert left("# gpulint: ignore-file\nx\ny\n", finding(2), finding(3, "GPU201")) == []
    assert left("x\ny\n# gpulint: ignore-file[GPU1]\n", finding(1), finding(2, "GPU201")) == [("GPU201", 2)]


BLOCK = """\
def f():
    a()
    # gpulint: disable[GPU101]
    b()
    if c:
        d()
    # gpulint: enable[GPU101]
    e()

def g():
    h()  # gpulint: disable[GPU101]
    i()
j()
"""


@pytest.mark.parametrize(
    ("row", "silent"), [(2, False), (4, True), (6, True), (8, False), (11, True), (12, True), (13, False)]
)
def test_blocks(row: int, silent: bool) -> None:
    assert (("GPU101", row) not in left(BLOCK, finding(row))) is silent


def test_unused() -> None:
    text = "x = 1  # gpulint: ignore[GPU101]\ny = 2  # gpulint: ignore[GPU101, GPU201] -- why\n"
    assert left(text, finding(2, "GPU201")) == [("GPU001", 1), ("GPU001", 2)]
    # A rule that did not run, and other tools' comments, are none of ours to judge.
    assert left("x = 1  # gpulint: ignore[GPU503]\n") == []
    assert left("x = 1  # noqa: GPU101\n") == []
    assert suppressed(text, [], lambda row: row, "a.py", ()) == []


@pytest.mark.parametrize(
    ("comment", "said"),
    [
        ("skip", '"skip" is no suppression; write # gpulint: ignore[GPU101]'),
        ("", '"" is no suppression; write'),
        ("ignore GPU101", '"GPU101" is neither a list of codes nor a reason; write'),
        ("ignore[GPU101", '"[GPU101" is neither'),
        ("ignore[]", "it names no rule; write"),
        ("ignore[GPU999]", 'there is no rule "GPU999"; gpulint rules lists them'),
        ("ignore[GPU110]", 'there is no rule "GPU110"; did you mean "GPU101"?'),
        ("ignore[held-grpah]", 'there is no rule "held-grpah"; did you mean "held-graph"?'),
        ("disable=held_grpah", 'there is no rule "held_grpah"; did you mean "held-graph"?'),
        ("ignore[GPU101, GPU999]", 'there is no rule "GPU999"'),
        ("enable[GPU999]", 'there is no rule "GPU999"'),
    ],
)
def test_what_names_no_rule_is_told(comment: str, said: str) -> None:
    kept = suppressed(f"x = 1  # gpulint: {comment}\n", [finding(1)], lambda row: row, "a.py", CHECKED)
    (told,) = [item for item in kept if item.code == "GPU001"]
    assert said in told.message
    assert told.fix is None
    assert ("GPU101" not in [item.code for item in kept]) is (comment == "ignore[GPU101, GPU999]")


@pytest.mark.parametrize(
    ("comment", "said"),
    [
        ("# gpulint ignore[GPU101]", "it lacks the colon after gpulint"),
        ("# noqa: GPU999", 'there is no rule "GPU999"; gpulint rules lists them'),
        ("# noqa: GPU101, GPU110", 'there is no rule "GPU110"; did you mean "GPU101"?'),
        ("# noqa: held-graph", '"held-graph" is not how noqa names a rule; write noqa: GPU101'),
        ("# noqa: E501, held-graph", "write noqa: GPU101"),
        ("# noqa GPU101", '"GPU101" is not how noqa names a rule; write noqa: GPU101'),
        ("# noqa[GPU101]", "write noqa: GPU101"),
        ("# noqa: [gpu101]", "write noqa: GPU101"),
    ],
)
@pytest.mark.parametrize("found", [True, False])
def test_other_spellings_are_told_whether_or_not_there_is_something_to_silence(
    comment: str, said: str, found: bool
) -> None:
    kept = suppressed(f"x = 1  {comment}\n", [finding(1)] if found else [], lambda row: row, "a.py", CHECKED)
    (told,) = [item for item in kept if item.code == "GPU001"]
    assert said in told.message
    assert told.severity is Severity.WARNING


@pytest.mark.parametrize(
    "comment",
    [
        *("# noqa: E999", "# noqa: well-known", "# noqa", "# noqa  see GPU101", "# the gpulint docs"),
        "# gpulint: ignore[GPU101, GPU001]",  # that it is unused is silenced
    ],
)
def test_comments_of_others_are_left_alone(comment: str) -> None:
    assert left(f"x = 1  {comment}\n") == []


def test_a_rule_of_the_project_is_known() -> None:
    text = "x = 1  # gpulint: ignore[ACME7]\n"
    assert suppressed(text, [], lambda row: row, "a.py", CHECKED, {"ACME7": "acme"}) == []
    assert [item.code for item in suppressed(text, [], lambda row: row, "a.py", CHECKED)] == ["GPU001"]


AS_PYLINT = """\
def f():
    a()  # gpulint: disable=GPU101
    b()
    if c:
        # gpulint: disable=GPU101
        d()
        e()
    g()
"""


@pytest.mark.parametrize(
    ("row", "code", "silent"),
    [
        (2, "GPU101", True), (2, "GPU201", False), (3, "GPU101", False), (6, "GPU101", True), (7, "GPU101", True),
        (7, "GPU201", False), (8, "GPU101", False),
    ],
)  # fmt: skip
def test_disable_as_pylint_writes_it(row: int, code: str, silent: bool) -> None:
    assert ((code, row) not in left(AS_PYLINT, finding(row, code))) is silent


@pytest.mark.parametrize(
    ("text", "fixed"),
    [
        ("x = 1  # gpulint: ignore[GPU101]\n", "x = 1\n"),
        ("x = 1  # gpulint: ignore[GPU101] -- reason\r\ny = 2\r\n", "x = 1\r\ny = 2\r\n"),
        ("# gpulint: ignore[GPU101]\nx = 1\n", "x = 1\n"),
        ("x = 1\n    # gpulint: ignore-file", "x = 1\n"),
        ("x = 1  # gpulint: ignore[GPU101]  # type: ignore\n", "x = 1  # type: ignore\n"),
        ("x = 1  # type: ignore  # gpulint: ignore[GPU101]\n", "x = 1  # type: ignore\n"),
        ("y  # gpulint: ignore[GPU101, GPU201, GPU102]\n", "y  # gpulint: ignore[GPU201]\n"),
        ("y  # gpulint: disable=GPU101, GPU201\n", "y  # gpulint: disable=GPU201\n"),
        ("x = 1  # gpulint: disable=GPU101\n", "x = 1\n"),
    ],
)
def test_fix_of_unused(text: str, fixed: str) -> None:
    found = [finding(1, "GPU201")] if "GPU201" in text else []
    (unused,) = suppressed(text, found, lambda row: row, "a.py", CHECKED)
    assert unused.fix.applicability == "safe"
    assert apply_edits(text, [unused], unsafe=False)[0] == fixed


def test_text_that_does_not_tokenize() -> None:
    text = "x = (\n  '''\ntotal += loss  # gpulint: ignore[GPU101]\n"
    assert [item.row for item in directives(text)] == [3]
    assert left(text, finding(3)) == []


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_newlines_of_all_kinds(newline: str) -> None:
    text = newline.join(["a", "b  # gpulint: ignore[GPU101]", "c\x0c  # noqa", ""])
    assert len(split_lines(text)) == 4
    assert left(text, finding(2), finding(3)) == []


# -- comments that `--add-ignore` writes ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "row", "end_row", "expected"),
    [
        ("a\nb += c\n", 2, 2, "a\nb += c  # gpulint: ignore[GPU101]\n"),
        ("b += c  # why\n", 1, 1, "b += c  # why  # gpulint: ignore[GPU101]\n"),
        ("b  # gpulint: ignore[GPU5] -- x\n", 1, 1, "b  # gpulint: ignore[GPU5, GPU101] -- x\n"),
        ("f(\n    a,\n)\n", 1, 3, "f(  # gpulint: ignore[GPU101]\n    a,\n)\n"),
        ('f("""\nx\n""")\n', 1, 3, 'f("""\nx\n""")  # gpulint: ignore[GPU101]\n'),
        ('f("""\nx\n""", a,\n  b)\n', 1, 1, '# gpulint: ignore[GPU101]\nf("""\nx\n""", a,\n  b)\n'),
        ("if x:\n  a = b + \\\n  c\n", 2, 2, "if x:\n  # gpulint: ignore[GPU101]\n  a = b + \\\n  c\n"),
    ],
)
def test_comment_is_placed_where_it_works(text: str, row: int, end_row: int, expected: str) -> None:
    written = add_ignores(text, [finding(row, end_row=end_row)])
    assert written == expected
    ast.parse(written)
    shift = written.count("\n", 0, written.index("# gpulint")) == row - 1 and written.count(
        "\n"
    ) > text.count("\n")
    there = finding(row + shift, end_row=end_row + shift)
    assert suppressed(written, [there], lambda number: number, "a.py") == []


def test_several_on_a_line() -> None:
    both = [finding(1), finding(1, "GPU102"), finding(1)]
    assert add_ignores("a\n", both) == "a  # gpulint: ignore[GPU101, GPU102]\n"


def test_add_ignore(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_bytes(HELD.replace("\n", "\r\n").encode("utf-8-sig"))
    (tmp_path / "broken.py").write_text("def f(:\n")
    done = gpulint(".", "--add-ignore", cwd=tmp_path, status=0)
    assert b"wrote 1 comment in 1 file" in done.stderr
    raw = (tmp_path / "train.py").read_bytes()
    assert raw.startswith(b"\xef\xbb\xbfimport torch\r\n")
    assert raw.splitlines()[HELD_ROW - 1].endswith(b"total += loss  # gpulint: ignore[GPU101]")
    assert codes(".", cwd=tmp_path) == [("broken.py", "GPU000", 1)]
    assert gpulint(".", "--add-ignore", "--fix", cwd=tmp_path).returncode == 2
