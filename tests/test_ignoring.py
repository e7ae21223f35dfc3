from __future__ import annotations

import ast
from pathlib import Path

import pytest
from support import HELD, HELD_ROW, codes, gpulint

from gpulint.findings import Finding, Severity
from gpulint.lint.ignoring import add_ignores
from gpulint.lint.suppressions import suppressed


def finding(row: int, end_row: int, code: str = "GPU101") -> Finding:
    return Finding(code, "x", Severity.ERROR, "m", "a.py", row, 1, end_row, 2)


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
    written = add_ignores(text, [finding(row, end_row)])
    assert written == expected
    ast.parse(written)
    shift = written.count("\n", 0, written.index("# gpulint")) == row - 1 and written.count(
        "\n"
    ) > text.count("\n")
    there = finding(row + shift, end_row + shift)
    assert suppressed(written, [there], lambda number: number, "a.py") == []


def test_several_on_a_line() -> None:
    both = [finding(1, 1), finding(1, 1, "GPU102"), finding(1, 1)]
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
