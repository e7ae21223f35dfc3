"""Hold the weights that gpulint counts by reading constructors against those that torch counts.

    python benchmarks/network_sizes.py CHECKOUTS --seed 1 --most 400 --json out.json

CHECKOUTS is a folder of checkouts, each with Python files in it. Classes of torch.nn.Module that can be made by their defaults
are looked for in files that are drawn at random, at most six of a checkout. Each file is imported in a process of its own, which
is killed after some seconds, and the network is made on torch's meta device, where it has no memory: run this on code that you would
run. Files that cannot be imported (what they need is not installed) are left out, and counted.
"""

from __future__ import annotations

import argparse
import ast
import datetime
import importlib
import json
import os
import platform
import random
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from gpulint.analysis.code.lower import lower
from gpulint.analysis.driver import analyse
from gpulint.analysis.file.project import Project
from gpulint.analysis.questions.size.constructing import Constructing
from gpulint.analysis.questions.size.networks import LARGE, SMALL
from gpulint.source.files import for_parser
from gpulint.source.program import top_of

_SECONDS = 12  # for one file to be imported
_MOST_OF_ONE = 6  # files of a checkout
_MOST_CLASSES = 3  # of a file, the last ones: those that use the others


def main(argv: Sequence[str] | None = None) -> None:
    """Raises `SystemExit` for wrong arguments."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkouts", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--most", type=int, default=400, help="files")
    parser.add_argument("--without", type=Path, help="an earlier result, whose files are left out")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args(argv)
    known = {(row["checkout"], row["file"]) for row in _earlier(args.without)}
    files = [file for file in _files(args.checkouts, args.seed) if file[:2] not in known][: args.most]
    rows: list[dict[str, Any]] = []
    failed = 0
    for checkout, name, classes in files:
        made = _made(args.checkouts / checkout, name, classes)
        failed += not made
        if made:
            rows += _compared(args.checkouts / checkout, name, made)
    result = {**_about(args, len(files), failed), **_summary(rows), "networks": rows}
    print(json.dumps({key: value for key, value in result.items() if key != "networks"}, indent=2))
    if args.json:
        args.json.write_text(json.dumps(result, indent=1) + "\n")


def _earlier(path: Path | None) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text())["networks"] if path is not None else []
    return found


def _files(checkouts: Path, seed: int) -> list[tuple[str, str, list[str]]]:
    """The files with such classes in a random order: checkout, path in it, names of classes."""
    paths = [path for path in sorted(checkouts.glob("*/**/*.py")) if "test" not in path.as_posix().lower()]
    random.Random(seed).shuffle(paths)
    found: list[tuple[str, str, list[str]]] = []
    count: dict[str, int] = {}
    for path in paths:
        checkout, name = (
            path.relative_to(checkouts).parts[0],
            str(Path(*path.relative_to(checkouts).parts[1:])),
        )
        if count.get(checkout, 0) < _MOST_OF_ONE and path.is_file() and path.stat().st_size < 200_000:
            classes = list(_classes(path.read_bytes()))[-_MOST_CLASSES:]
            if classes:
                found.append((checkout, name, classes))
                count[checkout] = count.get(checkout, 0) + 1
    return found


def _classes(raw: bytes) -> Iterator[str]:
    """The networks of a file that need no argument."""
    if b"nn.Module" not in raw:
        return
    try:
        body = ast.parse(for_parser(raw)).body
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in body:
        if isinstance(node, ast.ClassDef) and any("Module" in ast.unparse(base) for base in node.bases):
            made = [one for one in node.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"]
            given = made[0].args if made else None
            if given and len(given.args) - 1 <= len(given.defaults) and None not in given.kw_defaults:
                yield node.name


def _made(checkout: Path, name: str, classes: list[str]) -> dict[str, int]:
    """The weights of the classes as torch counts them, those that could be made."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        _make(checkout, name, classes, write)
    os.close(write)
    with os.fdopen(read, "rb") as stream:
        text = stream.read()
    os.waitpid(child, 0)
    found: dict[str, int] = json.loads(text) if text else {}
    return found


def _make(checkout: Path, name: str, classes: list[str], write: int) -> None:
    """Never returns: the process ends."""
    try:
        signal.alarm(_SECONDS)
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)
        path = checkout / name
        top = path.parent
        while (top / "__init__.py").exists() and top != checkout:
            top = top.parent
        sys.path[:0] = [str(path.parent), str(top), str(checkout)]
        sys.argv = [str(path)]
        module = importlib.import_module(str(path.relative_to(top).with_suffix("")).replace(os.sep, "."))
        found: dict[str, int] = {}
        for one in classes:
            try:
                with torch.device("meta"):
                    found[one] = sum(part.numel() for part in getattr(module, one)().parameters())
            except Exception:
                continue
        os.write(write, json.dumps(found).encode())
    finally:
        os._exit(0)


def _compared(checkout: Path, name: str, made: dict[str, int]) -> list[dict[str, Any]]:
    os.chdir(checkout)
    facts = analyse(lower(ast.parse(for_parser(Path(name).read_bytes()))), name, Project(top=top_of([name])))
    rows: list[dict[str, Any]] = []
    for one, weights in made.items():
        info = facts.analysis.classes.get(one)
        counted = Constructing().of_class(info) if info is not None else None
        if counted is not None:
            told = {"counted": counted.weights, "about": counted.about, "seen": counted.seen}
            row = {"checkout": checkout.name, "file": name, "class": one, "torch": weights, **told}
            rows.append({**row, "complete": counted.seen and counted.complete})
    return rows


def _about(args: argparse.Namespace, files: int, failed: int) -> dict[str, Any]:
    versions = {"python": platform.python_version(), "torch": torch.__version__}
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    return {"date": today, "seed": args.seed, **versions, "files": files, "files not imported": failed}


def _summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    complete = [row for row in rows if row["complete"]]
    small = [row for row in complete if 0 < row["counted"] < SMALL]
    large = [row for row in rows if row["counted"] >= LARGE]
    return {
        "classes": len(rows),
        "all layers seen": sum(row["seen"] for row in rows),
        "all layers and widths seen": len(complete),
        "of these within 5 % of torch's count": sum(
            _near(row["torch"], row["counted"], 1.05) for row in complete
        ),
        "within a factor of 2, guesses among them": sum(_near(row["torch"], row["about"], 2) for row in rows),
        "said to be small": len(small),
        "of these not small": sum(row["torch"] >= SMALL for row in small),
        "said to be large": len(large),
        "of these not large": sum(row["torch"] < LARGE * 0.95 for row in large),
        "large in truth": sum(row["torch"] >= LARGE for row in rows),
    }


def _near(first: int, second: int, factor: float) -> bool:
    return first == second or (min(first, second) > 0 and max(first, second) / min(first, second) <= factor)


if __name__ == "__main__":
    main()
