"""Public training scripts: where each is, with which arguments it is small (`scripts.toml`), and synthetic data for it.

Nothing of their source is here. What a script lacks (a dataset, a download, a seed) is made by our own code.
"""

from __future__ import annotations

import io
import pickle
import random
import shutil
import string
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from _measure import read_toml

Data = Callable[[Path], None]


@dataclass(frozen=True, slots=True)
class Script:
    """One script with small settings: some 30 to 70 training steps, in several epochs where it has any.

    `folder`: what of the repository is copied. `cwd`: where in the copy it is run. `cpu`, `cuda`: arguments
    for one kind of device. `path`: folders of the copy that PYTHONPATH must have. `needs`: packages besides
    torch and numpy. `seeds`: an import of the script, and what is run on the same line because the script does
    not seed itself; no line moves. `images`: sizes of the training and the test set.
    """

    name: str
    repository: str
    commit: str
    script: str
    arguments: tuple[str, ...] = ()
    folder: str = ""
    cwd: str = ""
    cpu: tuple[str, ...] = ()
    cuda: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    standins: tuple[str, ...] = ()
    seeds: tuple[str, str] | None = None
    data: Data | None = None
    images: tuple[int, int] = (1024, 400)
    environment: tuple[tuple[str, str], ...] = ()

    @property
    def checkout(self) -> str:
        """The folder's name among the checkouts."""
        return self.repository.replace("/", "+")

    def command(self, device: str) -> tuple[str, ...]:
        """The script's arguments on `device`."""
        return (*self.arguments, *(self.cuda if device == "cuda" else self.cpu))

    def prepare(self, checkouts: Path, copy: Path) -> Path:
        """A fresh copy with its data; the folder in which to run."""
        source = checkouts / self.checkout / self.folder
        shutil.copytree(
            source, copy / self.folder, ignore=shutil.ignore_patterns(".git", "*.png", "*.jpg", "*.gif")
        )
        if self.data is not None:
            self.data(copy / self.folder)
        if self.seeds is not None:
            _seed(copy / self.folder / self.cwd / self.script, *self.seeds)
        return copy / self.folder / self.cwd


def _seed(script: Path, after: str, statement: str) -> None:
    lines = script.read_text(encoding="utf-8").splitlines()
    number = next(i for i, line in enumerate(lines) if line.strip() == after)
    lines[number] = f"{lines[number].rstrip()}; {statement}"
    script.write_text("\n".join(lines) + "\n", encoding="utf-8")


# -- data ----------------------------------------------------------------------------------------------------


def corpus(folder: Path, at: str, train: int, other: int, words: int = 2000) -> None:
    """`train.txt`, `valid.txt` and `test.txt`: so many lines of 19 words, frequent words far more frequent."""
    source = random.Random(0)
    (folder / at).mkdir(parents=True, exist_ok=True)
    weights = [1 / rank for rank in range(1, words + 1)]
    vocabulary = [f"w{number}" for number in range(words)]
    for name, lines in (("train", train), ("valid", other), ("test", other)):
        text = "".join(" ".join(source.choices(vocabulary, weights, k=19)) + "\n" for _ in range(lines))
        (folder / at / f"{name}.txt").write_text(text, encoding="utf-8")


def characters(folder: Path, at: str, size: int = 60_000) -> None:
    """A text of random words, with capitals and some punctuation."""
    source = random.Random(0)
    parts: list[str] = []
    while size > 0:
        word = "".join(source.choices(string.ascii_letters, k=source.randint(1, 9)))
        parts.append(word + source.choice((" ", " ", " ", " ", ", ", "! ", ".\n")))
        size -= len(parts[-1])
    (folder / at).parent.mkdir(parents=True, exist_ok=True)
    (folder / at).write_text("".join(parts), encoding="utf-8")


def tokens(folder: Path, at: str, vocabulary: int = 65) -> None:
    """`train.bin` and `val.bin` of random tokens, and the size of the vocabulary in `meta.pkl`."""
    source = np.random.default_rng(0)
    (folder / at).mkdir(parents=True, exist_ok=True)
    for name, size in (("train", 200_000), ("val", 20_000)):
        source.integers(0, vocabulary, size).astype(np.uint16).tofile(folder / at / f"{name}.bin")
    (folder / at / "meta.pkl").write_bytes(pickle.dumps({"vocab_size": vocabulary}))


def names(folder: Path, at: str) -> None:
    """4000 different made-up names, one on a line."""
    source = random.Random(0)
    found = {"".join(source.choices(string.ascii_lowercase, k=source.randint(3, 9))) for _ in range(4200)}
    (folder / at).write_text("\n".join(sorted(found)[:4000]) + "\n", encoding="utf-8")


def _citations(nodes: int, features: int) -> Iterator[tuple[str, str]]:
    """The two files of a citation graph in Cora's format: name and text."""
    source = np.random.default_rng(0)
    labels = source.integers(0, 7, nodes)
    likely = source.random((7, features)) < 0.15
    rows = (source.random((nodes, features)) < 0.02 + 0.3 * likely[labels]).astype(int)
    rows[:, 0] = 1
    lines = [
        "\t".join((str(i), *map(str, row), f"C{label}"))
        for i, (row, label) in enumerate(zip(rows, labels, strict=True))
    ]
    yield "cora.content", "\n".join(lines) + "\n"
    edges = {(i, int(other)) for i in range(nodes) for other in source.integers(0, nodes, 2) if other != i}
    yield "cora.cites", "".join(f"{a}\t{b}\n" for a, b in sorted(edges))


def citations(folder: Path, at: str, nodes: int = 1800, features: int = 100) -> None:
    """A citation graph as files in a folder."""
    (folder / at).mkdir(parents=True, exist_ok=True)
    for name, text in _citations(nodes, features):
        (folder / at / name).write_text(text, encoding="utf-8")


def packed_citations(folder: Path) -> None:
    """The same as the archive that the stand-in for requests hands out."""
    with tarfile.open(folder / "cora.tgz", "w:gz") as archive:
        for name, text in _citations(1800, 100):
            entry = tarfile.TarInfo(f"cora/{name}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))


def waves(folder: Path) -> None:
    """Sine waves as an array in a file of torch.save."""
    import torch

    shifts = np.random.default_rng(0).integers(-80, 80, (12, 1))
    torch.save(np.sin((np.arange(60) + shifts) / 20.0), folder / "traindata.pt")


def sessions(folder: Path) -> None:
    """Pickled sessions of items, most of them going on with the next number, and the item that follows each."""
    source = random.Random(0)
    (folder / "datasets/sample").mkdir(parents=True, exist_ok=True)
    for name, number in (("train", 900), ("test", 300)):
        starts = [source.randint(1, 280) for _ in range(number)]
        lengths = [source.randint(2, 12) for _ in range(number)]
        items = [
            [start + step for step in range(length)] for start, length in zip(starts, lengths, strict=True)
        ]
        following = [start + length for start, length in zip(starts, lengths, strict=True)]
        (folder / f"datasets/sample/{name}.txt").write_bytes(pickle.dumps((items, following)))


def sensors(folder: Path, nodes: int, steps: int = 12) -> None:
    """Readings of neighbouring sensors, in windows, and which of them are neighbours."""
    source = np.random.default_rng(0)
    (folder / "data").mkdir(parents=True, exist_ok=True)
    (folder / "save").mkdir(exist_ok=True)
    for name, number in (("train", 640), ("val", 160), ("test", 32)):
        day = np.arange(number + 2 * steps)[:, None] / 40 + np.arange(nodes) / 8
        values = 50 + 10 * np.sin(day) + source.normal(0, 1, day.shape)
        both = np.stack([values, np.broadcast_to(day % 1, day.shape)], axis=-1)
        windows = np.stack([both[begin : begin + 2 * steps] for begin in range(number)])
        np.savez(folder / f"data/{name}.npz", x=windows[:, :steps], y=windows[:, steps:])
    near = np.abs(np.subtract.outer(np.arange(nodes), np.arange(nodes))) < 3
    names = [str(node) for node in range(nodes)]
    numbers = {name: place for place, name in enumerate(names)}
    (folder / "data/near.pkl").write_bytes(pickle.dumps((names, numbers, near.astype(np.float32))))


def folder(at: Path, name: str) -> None:
    """A folder that a script writes into without making it."""
    (at / name).mkdir(parents=True, exist_ok=True)


# -- the table -----------------------------------------------------------------------------------------------


def _data(told: dict[str, Any]) -> Data:
    """`make` is the name of a function above."""
    return partial(globals()[told.pop("make")], **told)


def _words(told: str | list[Any]) -> tuple[Any, ...]:
    return tuple(told.split() if isinstance(told, str) else told)


# How the values of the table are read: everything else stands for itself.
READ: dict[str, Callable[[Any], Any]] = {
    "data": _data,
    "environment": lambda told: tuple(told.items()),
    **dict.fromkeys("arguments cpu cuda path needs standins seeds images edits plants".split(), _words),
}


def read(told: dict[str, Any]) -> dict[str, Any]:
    """The fields of one entry of the table."""
    return {name: READ[name](value) if name in READ else value for name, value in told.items()}


def table(name: str) -> list[dict[str, Any]]:
    """The entries of `scripts.toml` under one name."""
    return [read(told) for told in read_toml("scripts.toml")[name]]


SCRIPTS = tuple(Script(**told) for told in table("script"))
SCRIPTS_WITH_FIXES = tuple(Script(**told) for told in table("fixed"))


def missing(script: Script, checkouts: Path) -> str:
    """Why a script cannot be run here, or an empty string."""
    lacking = [name for name in script.needs if find_spec(name) is None]
    if lacking:
        return f"needs {', '.join(lacking)}"
    if not (checkouts / script.checkout / script.folder / script.cwd / script.script).is_file():
        return f"there is no checkout {script.checkout}"
    return ""
