"""Places, changes and differences of texts, against an editor's arithmetic written apart."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol import types
from server_support import applied, offset, utf8, utf16

from gpulint.findings import Position
from gpulint.server.documents import Text, checked_path
from gpulint.server.session import read_options

UNITS = {"utf-8": utf8, "utf-16": utf16, "utf-32": len}
contents = st.text(alphabet="ab \t\n\f\x85\u2028é😀\ufeff", max_size=40)
encodings = st.sampled_from(sorted(UNITS))


def place_of(text: str, at: int, encoding: str) -> types.Position:
    before = text[:at]
    return types.Position(before.count("\n"), UNITS[encoding](before.rpartition("\n")[2]))


@given(contents, encodings, st.data())
def test_places_and_offsets_are_each_other_s_inverse(
    content: str, encoding: str, data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(content)))
    place = place_of(content, at, encoding)
    text = Text(content, encoding)
    assert text.offset(place) == at == offset(content, place, UNITS[encoding])
    row, column = place.line + 1, at - content.rfind("\n", 0, at)
    if row == 1 and content.startswith("\ufeff"):  # gpulint's columns do not count the mark
        if column == 1:
            return
        column -= 1
    assert text.place(Position(row, column)) == place


@given(contents, encodings, st.data())
def test_a_change_is_what_an_editor_makes_of_it(content: str, encoding: str, data: st.DataObject) -> None:
    first, last = sorted(data.draw(st.tuples(*[st.integers(0, len(content))] * 2)))
    new = data.draw(contents)
    where = types.Range(place_of(content, first, encoding), place_of(content, last, encoding))
    changed = Text(content, encoding).changed(types.TextDocumentContentChangePartial(where, new))
    assert changed.content == content[:first] + new + content[last:]


@given(contents, contents, encodings, st.sampled_from(["\n", "\r\n"]))
def test_a_difference_leads_from_one_text_to_the_other(old: str, new: str, encoding: str, end: str) -> None:
    old, new = old.replace("\n", end), new.replace("\n", end)
    edits = Text(old, encoding).edits_to(new)
    assert applied(old, edits, UNITS[encoding]) == new
    assert bool(edits) == (old != new)


def test_places_outside_the_text_are_at_its_ends() -> None:
    text = Text("é😀\r\nab", "utf-16")
    for line, character, expected in ((0, 99, 2), (0, 2, 1), (9, 0, 6), (1, 99, 6), (0, 0, 0), (0, 3, 2)):
        assert text.offset(types.Position(line, character)) == expected
    assert text.place(Position(9, 9)) == types.Position(1, 2)
    assert text.place(Position(1, 99)) == types.Position(0, 3)


def test_a_large_difference_is_one_edit() -> None:
    old, new = "".join(f"a{n}\n" for n in range(3_000)), "".join(f"b{n}\n" for n in range(3_000))
    (edit,) = Text("x\n" + old, "utf-16").edits_to("x\n" + new)
    assert edit.range.start == types.Position(1, 0)
    assert edit.new_text == new


@pytest.mark.parametrize(
    ("uri", "language", "path"),
    [
        ("file:///home/me/a%20b/tr%C3%A9%23in.py", "python", "/home/me/a b/tré#in.py"),
        ("file:///c%3A/Users/me/train.py", "python", "c:/Users/me/train.py"),
        ("file://server/share/train.py", "python", "//server/share/train.py"),
        ("file:///home/me/Dockerfile", "dockerfile", "/home/me/Dockerfile"),
        ("file:///home/me/train.py", "jinja", "/home/me/train.py"),
        ("file:///home/me/train", "python", "/home/me/train"),
        ("untitled:Untitled-1", "python", "/root/Untitled-1"),
        ("untitled:C%3A%5Cnew.py", "python", "/root/new.py"),
        ("file:///home/me/book.ipynb", "python", None),
        ("file:///home/me/train.pyi", "python", None),
        ("untitled:Untitled-1", "markdown", None),
        ("git:/home/me/train.py?x", "python", None),
        ("vscode-notebook-cell:/home/me/book.ipynb#W0", "python", None),
    ],
)
def test_the_path_of_a_document(uri: str, language: str, path: str | None) -> None:
    assert checked_path(uri, language, "/root") == path


def test_options_of_every_form() -> None:
    assert read_options(None).problems == ()
    read = read_options({"select": ["GPU1"], "ignore": ["GPU101"], "unsafeFixes": True})
    assert (read.overrides.select, read.overrides.ignore, read.unsafe_fixes) == (("GPU1",), ("GPU101",), True)
    assert read_options({"gpulint": {"ignore": ["GPU1"]}}).overrides.ignore == ("GPU1",)
    for wrong in ([], 1, {"gpulint": 1}, {"select": "GPU1"}, {"ignore": [1]}, {"unsafeFixes": 1}, {"x": 1}):
        read = read_options(wrong)
        assert len(read.problems) == 1
        assert (read.overrides.select, read.overrides.ignore, read.unsafe_fixes) == (None, (), False)
