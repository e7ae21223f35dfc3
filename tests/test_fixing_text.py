import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from fixing_support import finding

from gpulint.findings import Edit, Finding, Position
from gpulint.fix.fixing import MAX_PASSES, fix_text
from gpulint.source.edits import apply_edits, unified_diff


def edit(start: tuple[int, int], end: tuple[int, int], content: str) -> Edit:
    return Edit(Position(*start), Position(*end), content)


def test_edits_outside_one_another_are_applied_together() -> None:
    found = [finding([edit((1, 1), (1, 2), "xyz")]), finding([edit((1, 5), (1, 6), "")], row=2)]
    assert apply_edits("a = b\n", found, unsafe=False) == ("xyz = \n", found)


def test_the_first_by_place_wins_and_a_fix_is_whole_or_not_at_all() -> None:
    text = "abcdef\n"
    early = finding([edit((1, 1), (1, 4), "X")], row=1)
    late = finding([edit((1, 3), (1, 5), "Y"), edit((1, 6), (1, 7), "Z")], row=2)
    assert apply_edits(text, [late, early], unsafe=False) == ("Xdef\n", [early])


def test_safe_and_unsafe() -> None:
    found = [finding([edit((1, 1), (1, 2), "X")], applicability="unsafe")]
    assert apply_edits("a\n", found, unsafe=False) == ("a\n", [])
    assert apply_edits("a\n", found, unsafe=True) == ("X\n", found)


def test_equal_fixes_and_equal_new_lines_are_applied_once() -> None:
    new_import = edit((1, 1), (1, 1), "import torch\n")
    one = finding([new_import, edit((1, 1), (1, 2), "X")], row=1)
    two = finding([new_import, edit((2, 1), (2, 2), "Y")], row=2)
    again = finding([new_import, edit((2, 1), (2, 2), "Y")], row=3)
    assert apply_edits("a\nb\n", [one, two, again], unsafe=False) == (
        "import torch\nX\nY\n",
        [one, two, again],
    )


@pytest.mark.parametrize(
    ("left", "right"),
    [
        # Two calls after one expression; the second would change what the first returns.
        (edit((1, 2), (1, 2), ".item()"), edit((1, 2), (1, 2), ".cpu()")),
        (edit((1, 1), (1, 2), "x"), edit((1, 2), (1, 2), ".cpu()")),
        # The indentation of a line that another fix removes would move on to the next line.
        (edit((2, 1), (2, 1), "    "), edit((2, 1), (3, 1), "")),
        # Two blocks around the same line: one header each, but the indentation once.
        (edit((2, 1), (2, 1), "    "), edit((2, 1), (2, 1), "    ")),
    ],
)
def test_fixes_that_meet_wait_for_the_next_pass(left: Edit, right: Edit) -> None:
    first, second = finding([left], row=1), finding([right, edit((3, 1), (3, 2), "!")], row=2)
    _, applied = apply_edits("a\nb\nc\n", [first, second], unsafe=False)
    assert applied == [first]


def test_new_lines_after_a_removed_line() -> None:
    first = finding([edit((1, 1), (2, 1), "")])
    second = finding([edit((2, 1), (2, 1), "new\n")], row=2)
    assert apply_edits("a\nb\n", [first, second], unsafe=False) == ("new\nb\n", [first, second])


def test_an_edit_outside_the_text_is_an_error() -> None:
    with pytest.raises(ValueError, match="no row 9"):
        apply_edits("a\n", [finding([edit((9, 1), (9, 1), "x")])], unsafe=False)


# fix_text


def replacing(old: str, new: str, code: str = "GPU101") -> Callable[[str], list[Finding]]:
    """A rule that wants every line that is `old` to be `new`."""

    def lint(text: str) -> list[Finding]:
        found = []
        for row, line in enumerate(text.split("\n"), start=1):
            if line == old:
                found.append(finding([edit((row, 1), (row, len(line) + 1), new)], code, row))
        return found

    return lint


def both(*rules: Callable[[str], list[Finding]]) -> Callable[[str], list[Finding]]:
    return lambda text: [found for rule in rules for found in rule(text)]


def test_passes_to_a_fixpoint() -> None:
    result = fix_text("a\na\nz\n", both(replacing("a", "b"), replacing("b", "c", "GPU102")), unsafe=False)
    assert result.text == "c\nc\nz\n"
    assert [found.code for found in result.applied] == ["GPU101", "GPU101", "GPU102", "GPU102"]
    assert (result.remaining, result.passes, result.error) == ([], 2, None)


def test_a_fix_that_breaks_the_syntax_is_left_out_and_named() -> None:
    text = "a\nx\na\nb\n"
    lint = both(replacing("x", "b ) (", "GPU666"), replacing("a", "c"), replacing("b", "d", "GPU102"))
    result = fix_text(text, lint, unsafe=False)
    assert result.text == "c\nx\nc\nd\n"
    assert [found.code for found in result.remaining] == ["GPU666"]
    assert "GPU666" in result.error
    assert "GPU101" not in result.error


def test_fixes_that_undo_each_other_come_to_an_end() -> None:
    result = fix_text("a\n", both(replacing("a", "b"), replacing("b", "a", "GPU102")), unsafe=False)
    assert result.text == "b\n"
    assert result.passes == 1
    assert "GPU102" in result.error


def test_fixes_without_end_are_stopped() -> None:
    def lint(text: str) -> list[Finding]:
        return [finding([edit((1, 1), (1, 1), "a = 1\n")])]

    result = fix_text("z\n", lint, unsafe=False)
    assert (result.text, result.passes) == ("z\n", 0)
    assert "left out" in result.error


def test_fixes_that_call_for_one_another_are_stopped() -> None:
    def lint(text: str) -> list[Finding]:
        code = "GPU101" if text.count("a = 1") % 2 else "GPU102"
        return [finding([edit((1, 1), (1, 1), "a = 1\n")], code)]

    result = fix_text("z\n", lint, unsafe=False)
    assert result.passes == MAX_PASSES
    assert result.error is not None
    assert result.text == "a = 1\n" * MAX_PASSES + "z\n"


# unified_diff


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a\nb\nc\n", "a\nx\nc\n"),
        ("a\r\nb\r\n", "a\r\nx\r\n"),
        ("a\nb", "a\nx"),
        ("a\nb", "a\nb\n"),
        ("a\nb\n", "a\nb"),
        ("a\rb\r\nc\n", "a\rb\r\nx\n"),
        ("a\u2028b\x0c\x85\nc\n", "a\u2028b\x0c\x85\nx\n"),
        ("a\n", "a\nb\r\n"),
        ("a\n" * 50 + "b\n", "x\n" + "a\n" * 49 + "c\n"),
        ("é = 1\n", "é = '𝄞'\n"),
    ],
)
def test_git_applies_the_diff(old: str, new: str, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    path = tmp_path / "sub" / "file.py"
    path.write_bytes(old.encode())
    diff = unified_diff(old, new, "sub/file.py")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    command = ["git", "apply", "--whitespace=nowarn", "-"]
    done = subprocess.run(command, cwd=tmp_path, input=diff.encode(), capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    assert path.read_bytes() == new.encode()


def test_no_diff_of_equal_texts() -> None:
    assert unified_diff("a\n", "a\n", "f.py") == ""
