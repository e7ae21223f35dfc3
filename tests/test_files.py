import os
from pathlib import Path

import pytest

from gpulint.source.files import FileError, decode, read_source, split_lines
from gpulint.source.syntax import flaw


@pytest.mark.parametrize(
    ("raw", "encoding", "text"),
    [
        (b"", "utf-8", ""),
        (b"x = 1\r\ny = 2\r\n", "utf-8", "x = 1\r\ny = 2\r\n"),
        (b"x = 1\ry = 2\r", "utf-8", "x = 1\ry = 2\r"),
        (b"\xef\xbb\xbfx = 1\n", "utf-8", "x = 1\n"),
        ("#!/bin/sh\n# vim: set fileencoding=cp1252 :\nx='€'".encode("cp1252"), "cp1252", None),
        (b"\xef\xbb\xbf# coding: utf-8\n", "utf-8", "# coding: utf-8\n"),
        ("# -*- coding: future_fstrings -*-\nx = f'\u00e9'\n".encode(), "utf-8", None),
        (b"x = 1  # coding: latin-1 is no cookie after code\n", "utf-8", None),
    ],
)
def test_round_trip(raw: bytes, encoding: str, text: str | None) -> None:
    source = decode("a.py", raw)
    assert source.encoding == encoding
    assert source.encode(source.text) == raw
    assert source.survives_rewriting
    if text is not None:
        assert source.text == text


@pytest.mark.parametrize(
    ("raw", "line", "column", "words"),
    [
        (b"x = 1\ny = '\xff'\n", 2, 6, "not valid UTF-8: byte 0xff"),
        (b"x = '\xc3\xa9\xff'\r\n", 1, 7, "0xff"),
        (b"x = 1\ny\0 = 2\n", 2, 2, "NUL"),
        (b"# coding: nonsense-8\n", 1, 11, "unknown encoding 'nonsense-8'"),
        (b"# coding: rot13\n", 1, 11, "no text encoding"),
        (b"\xef\xbb\xbf# coding: latin-1\n", 1, 11, "byte order mark"),
        ("x = 1\n".encode("utf-16"), 1, 1, "UTF-16"),
        (b"# coding: ascii\nx = '\xe9'\n", 2, 6, "not valid ascii"),
    ],
)
def test_undecodable(raw: bytes, line: int, column: int, words: str) -> None:
    with pytest.raises(FileError, match=words) as caught:
        decode("a.py", raw)
    assert (caught.value.line, caught.value.column) == (line, column)


def test_character_that_the_encoding_lacks() -> None:
    source = decode("a.py", "# coding: latin-1\nx = 'é'\n".encode("latin-1"))
    with pytest.raises(FileError, match="iso8859-1"):
        source.encode(source.text + "€")


def test_unreadable(tmp_path: Path) -> None:
    (tmp_path / "broken.py").symlink_to("nowhere.py")
    (tmp_path / "self.py").symlink_to("self.py")
    (tmp_path / "folder.py").mkdir()
    for name, words in {
        "none.py": "no such file",
        "broken.py": "broken symbolic link: nowhere.py",
        "self.py": "leads back to itself",
        "folder.py": "is a directory",
    }.items():
        with pytest.raises(FileError, match=words):
            read_source(str(tmp_path / name))


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_forbidden(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("x = 1\n")
    path.chmod(0)
    with pytest.raises(FileError, match="permission denied"):
        read_source(str(path))


def test_lines_split_where_python_splits() -> None:
    assert split_lines("a\r\nb\rc\nd\x0ce\u2028f\n") == ["a", "b", "c", "d\x0ce\u2028f", ""]


# -- texts that parse, and texts that do not -----------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["", "x = 1\n", "\r\n\r\n", "x = '\\d'\n", "def f():\n    return 1", "x = 1\rdel x\r"]
)
def test_sound(text: str) -> None:
    assert flaw(text) is None


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("x = 1\ndef f(:\n", 2, "invalid syntax"),
        ("x = 1\n  y = 2\n", 2, "unexpected indent"),
        ("x = (1,\n", 1, "never closed"),
        ("nonlocal x\n", 1, "nonlocal"),
        ("print 'x'\n", 1, "print"),
    ],
)
def test_flawed(text: str, line: int, words: str) -> None:
    found = flaw(text)
    assert found.line == line
    assert words in found.message
    assert not found.too_deep


@pytest.mark.parametrize(
    "expression",
    [
        "(" * 3000 + ")" * 3000,
        "-" * 50_000 + "1",
        "a" + ".b" * 30_000,
        "lambda: " * 9000 + "1",
        "[" * 201 + "]" * 201,
    ],
    ids=["brackets", "operators", "attributes", "lambdas", "just too deep"],
)
def test_too_deep(expression: str) -> None:
    found = flaw(f"import torch\nx = {expression}\n")
    assert found.too_deep
    assert found.line == 2
