"""Mutated files and configurations against the linter: whatever stands in them is an answer, never an internal error.

    python benchmarks/fuzz.py --files 5000 --configurations 1000 --seed 35 --out benchmarks/results/fuzz-DATE.json

Files are made from those of `fixtures` and `tests/cases`: bytes flipped, lines moved, two files joined, what parsers
stumble over put in, some as notebooks. Each is linted, and fixed with the unsafe fixes too; what compiled before must compile
after. Configurations are made from the settings there are and from values of all kinds. The same seed and commit give the same
run; with `--only N` one file or configuration is made, shown and run again.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import random
import re
import signal
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from _measure import ROOT, hardware
from _parts import write

from gpulint.cli._dispatch import run as run_command
from gpulint.config import KEYS, Config
from gpulint.lint.checking import Checker
from gpulint.lint.results import Task
from gpulint.version import __version__

WORD: Final = re.compile(rb"[A-Za-z_]\w*")
LONGEST: Final = 60  # seconds of the processor, after which one input counts as a hang
PIECES: Final[tuple[bytes, ...]] = (
    *(b"\0", b"\f", b"\r", b"\r\n", b"\v", b"\x1a", b"\t", b"\\\n", b"\\", b"#", b"'", b'"', b'"""', b"'''"),
    *(b"\xff\xfe", b"\xef\xbb\xbf", b"\xed\xa0\x80", "\u2028".encode(), "\u202e".encode(), b"\x1b[31m"),
    *b"# -*- coding: utf-7 -*-\n|# gpulint: ignore[|# gpulint: ignore-file\n|%%time\n|!ls\n".split(b"|"),
    *(b"(" * 250, b"[" * 250, b")", b"]", b"lambda: " * 90, b"not " * 300, b".relu()" * 300, b"9" * 5000),
    *b"if x:\n|else:\n|async |await |yield |return\n|match x:\n|class A(A): pass\n".split(b"|"),
    *b"for x in x:\n |with torch.no_grad():\n|@torch.no_grad()\n|loss.backward()\n|:=|*|**".split(b"|"),
    *b"def f(f=f): return f(f)\n|del total\n|global loss\n|nonlocal loss\n|from . import *\n".split(b"|"),
    *(b"import torch as print\n", b"total += loss\n", b"f'{x!r:{y}}'", b"\xc3\xa9", "\U0001f4a5".encode()),
)
VALUES: Final = (
    *(
        "true", "-1", "0", "9" * 30, "9" * 5000, "1e999", "nan", "1979-05-27", "[]", "{}", '""', '"\\u0000"',
        '"GPU1"',
    ),
    *(
        '["GPU101"]', '["ALL", "x"]', '"\\u001b[31m\\u202e"', "[1, [2]]", '["*a*a*a*a*a*a*b", "[z-a]", "!"]',
        "[" * 500,
    ),
    *('{ GPU101 = "error" }', '{ "**/a" = ["GPU5"] }', "{ GPU401 = { min = 1 } }"),
    *('"../.."', '"/dev/zero"', '"2.4"'),
    *(
        '["nowhere.py"]', '"text"', '"error"', '"low"', "'''\n'''", '"' + "a" * 100_000 + '"',
        '"gpulint.toml"',
    ),
)  # fmt: skip


def mutated(texts: list[bytes], dice: random.Random) -> bytes:
    raw = bytearray(dice.choice(texts))
    for _ in range(dice.choice((1, 1, 1, 1, 2, 2, 3, 8))):
        at = dice.randrange(len(raw) + 1)
        end = min(len(raw), at + dice.choice((1, 2, 8, 40, 300)))
        how = dice.randrange(16)
        if how == 0 and raw:
            raw[at % len(raw)] = dice.randrange(256)
        elif how == 1:
            del raw[at:end]
        elif how == 2:
            raw[at:at] = raw[at:end] * dice.choice((1, 2, 20))
        elif how in (3, 4):
            raw[at:at] = dice.choice(PIECES)
        elif how == 5:
            lines = bytes(raw).splitlines(keepends=True)
            if lines:
                lines.insert(dice.randrange(len(lines)), lines.pop(dice.randrange(len(lines))))
            raw = bytearray(b"".join(lines))
        elif how == 6:
            other = dice.choice(texts)
            raw = raw[:at] + other[dice.randrange(len(other) + 1) :]
        elif how == 7:
            raw = raw.replace(
                b"\n", dice.choice((b"\r", b"\r\n", b"\n\n", b"\n ", b"\n\f")), dice.choice((-1, 1, 5))
            )
        else:  # a word in place of another: still Python, most of the time
            words = list(WORD.finditer(raw))
            if words:
                old, new = dice.choice(words), dice.choice(words)[0]
                raw[old.start() : old.end()] = new
    return bytes(raw[:200_000])


def as_notebook(raw: bytes, dice: random.Random) -> bytes:
    text = raw.decode("utf-8", "replace")
    source: Any = dice.choice((text, text.splitlines(keepends=True), [text, text], 5, None))
    cell = {"cell_type": "code", "source": source, "metadata": {}, "outputs": [], "execution_count": None}
    book = json.dumps({"cells": [cell, cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode()
    return book if dice.random() < 0.7 else mutated([book], dice)


def configuration(dice: random.Random) -> bytes:
    names = [*KEYS, "nonsense", '"\\u001b"']
    lines = [
        f"{dice.choice(names)} = {dice.choice(VALUES)}".encode() for _ in range(dice.choice((1, 1, 2, 3)))
    ]
    text = b"\n".join(lines) + b"\n"
    return mutated([text], dice) if dice.random() < 0.4 else text


def compiles(raw: bytes) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(raw, "fuzz.py", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
        return False
    return True


class Linter:
    """Each file as `gpulint --diff --unsafe-fixes --confidence low` has it."""

    def __init__(self, folder: str, texts: list[bytes]) -> None:
        self._folder, self._texts = folder, texts
        config = Config.from_mapping({"confidence": "low"}, folder)
        self._checker = Checker((config,), "diff", True, hashing=False)

    def file(self, dice: random.Random) -> tuple[str, bytes]:
        raw = mutated(self._texts, dice)
        return ("fuzz.ipynb", as_notebook(raw, dice)) if dice.random() < 0.2 else ("fuzz.py", raw)

    def run(self, name: str, raw: bytes) -> tuple[str, str]:
        """What became of it, and what was wrong."""
        path = os.path.join(self._folder, name)
        result = self._checker.check_bytes(
            raw, Task(path, 0, len(raw), self._checker.passes_gate(raw, path, 0))
        )
        if result.internal or "internal error" in str(result.findings):
            return "internal error", result.trace or str(result.findings)[:500]
        if result.outcome is not None and result.outcome.text != result.before:
            if (
                name.endswith(".py")
                and compiles(raw)
                and not compiles(result.outcome.text.encode("utf-8", "replace"))
            ):
                return "broken by a fix", result.outcome.text
            return "fixed", ""
        kinds = {"refused" if finding.code == "GPU000" else "findings" for finding in result.findings}
        return next(iter(sorted(kinds, reverse=True)), "clean"), ""


class Settings:
    """Each configuration in a project of one file, by the command itself."""

    def __init__(self, folder: str, text: bytes) -> None:
        self._folder = os.path.join(folder, "project")
        os.makedirs(self._folder)
        Path(self._folder, "train.py").write_bytes(text)

    def file(self, dice: random.Random) -> tuple[str, bytes]:
        raw = configuration(dice)
        return ("pyproject.toml", b"[tool.gpulint]\n" + raw) if dice.random() < 0.3 else ("gpulint.toml", raw)

    def run(self, name: str, raw: bytes) -> tuple[str, str]:
        path = Path(self._folder, name)
        path.write_bytes(raw)
        said = io.StringIO()
        try:
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                status = run_command(["check", "--no-cache", self._folder])
        finally:
            path.unlink()
        words = said.getvalue()
        if status not in (0, 1, 2) or "internal error" in words or "Traceback" in words:
            return "internal error", words[-2000:]
        if any(sign in words for sign in "\x1b\u202e\0"):
            return "obeyed by a terminal", words[-2000:]
        return ("refused" if status == 2 else "taken"), ""


class Hang(BaseException):
    """Not to be taken for a failure of the linter's that it could report."""


def hung(*_: object) -> None:
    raise Hang


def runs(kind: Linter | Settings, seed: str, count: int) -> tuple[Counter[str], list[dict[str, Any]]]:
    became: Counter[str] = Counter()
    wrong: list[dict[str, Any]] = []
    for number in range(count):
        name, raw = kind.file(random.Random(f"{seed} {number}"))
        signal.setitimer(signal.ITIMER_VIRTUAL, LONGEST)
        try:
            what, why = kind.run(name, raw)
        except Hang:
            what, why = "hang", ""
        except Exception as error:
            what, why = "exception", repr(error)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        became[what] += 1
        if why or what == "hang":
            wrong.append({"number": number, "file": name, "what": what, "why": why[-1500:]})
            print(f"{seed} {number}: {what}: {why[-300:]}", file=sys.stderr, flush=True)
    return became, wrong


def texts() -> Iterator[bytes]:
    for pattern in ("fixtures/**/*.py", "tests/cases/**/*.py"):
        for path in sorted(ROOT.glob(pattern)):
            yield path.read_bytes()


def command_line() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--files", type=int, default=5000)
    parser.add_argument("--configurations", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=35)
    parser.add_argument("--only", type=int, help="one file or configuration, by its number")
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


def show(kind: Linter | Settings, seed: str, number: int) -> None:
    name, raw = kind.file(random.Random(f"{seed} {number}"))
    print(name, raw.decode("utf-8", "replace"), *kind.run(name, raw), sep="\n")


def started() -> int:
    wanted = command_line()
    signal.signal(signal.SIGVTALRM, hung)
    known = list(texts())
    with tempfile.TemporaryDirectory() as folder:
        kinds: dict[str, tuple[Linter | Settings, int]] = {
            "files": (Linter(folder, known), wanted.files),
            "configurations": (Settings(folder, known[0]), wanted.configurations),
        }
        if wanted.only is not None:
            for name, (kind, count) in kinds.items():
                if count:
                    show(kind, f"{wanted.seed} {name}", wanted.only)
            return 0
        result: dict[str, Any] = {"hardware": hardware(), "gpulint": __version__, "seed": wanted.seed}
        wrong = 0
        for name, (kind, count) in kinds.items():
            became, failures = runs(kind, f"{wanted.seed} {name}", count)
            result[name] = {"count": count, "became": dict(sorted(became.items())), "wrong": failures}
            wrong += len(failures)
    print(json.dumps(result, indent=1))
    if wanted.out is not None:
        write(wanted.out, result)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(started())
