from __future__ import annotations

import pytest

from gpulint.source.syntax import flaw


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
    assert found is not None
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
    assert found is not None
    assert found.too_deep
    assert found.line == 2
