"""Public training scripts: where each is, with which arguments it is small, and synthetic data for it.

Nothing of their source is here. What a script lacks (a dataset, a download, a seed) is made by our own code.
"""

from __future__ import annotations

import io
import pickle
import random
import shutil
import string
import tarfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

Data = Callable[[Path], None]


@dataclass(frozen=True, slots=True)
class Loop:
    """Arguments for 200 training steps, and how the script's output tells of them: each line that matches
    `line` says that `every` more steps are done."""

    line: str
    arguments: tuple[str, ...]
    cpu: tuple[str, ...] = ()
    cuda: tuple[str, ...] = ()
    every: int = 1
    data: Data | None = None


@dataclass(frozen=True, slots=True)
class Script:
    """One script with small settings: some 30 to 70 training steps, in several epochs where it has any.

    `folder`: what of the repository is copied. `cwd`: where in the copy it is run. `cpu`, `cuda`: arguments
    for one kind of device. `path`: folders of the copy that PYTHONPATH must have. `needs`: packages besides
    torch and numpy. `seeds`: an import of the script, and what is run on the same line because the script does
    not seed itself; no line moves.
    `validates`: with an evaluation in every epoch or interval. `images`: sizes of the training and the test set.
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
    validates: bool = True
    images: tuple[int, int] = (1024, 400)
    environment: tuple[tuple[str, str], ...] = ()
    loop: Loop | None = None

    @property
    def checkout(self) -> str:
        """The folder's name among the checkouts."""
        return self.repository.replace("/", "+")

    def command(self, device: str, loop: Loop | None = None) -> tuple[str, ...]:
        """The script's arguments on `device`."""
        of = loop or self
        return (*of.arguments, *(of.cuda if device == "cuda" else of.cpu))

    def prepare(self, checkouts: Path, copy: Path, loop: Loop | None = None) -> Path:
        """A fresh copy with its data; the folder in which to run."""
        source = checkouts / self.checkout / self.folder
        shutil.copytree(
            source, copy / self.folder, ignore=shutil.ignore_patterns(".git", "*.png", "*.jpg", "*.gif")
        )
        make = (loop.data if loop else None) or self.data
        if make is not None:
            make(copy / self.folder)
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


def results(folder: Path) -> None:
    """The folder that a script writes into without making it."""
    (folder / "results").mkdir(parents=True, exist_ok=True)


# -- the table -----------------------------------------------------------------------------------------------

_EXAMPLES = ("pytorch/examples", "77f55b912142e11fcfdf5b530231fb9c52f181e8", "main.py")
_TCN = ("locuslab/TCN", "2f8c2b817050206397458dfd1f5a25ce8a32fe65")
_YUNJEY = ("yunjey/pytorch-tutorial", "0500d3df5a2a8080ccfccbc00aca0eacc21818db", "main.py")
_MINGPT = ("karpathy/minGPT", "37baab71b9abea1b76ab957409a1cc2fbfba8a26")
_VISION = ("torchvision",)
_TORCH = ("import torch", "torch.manual_seed(0)")
_NANO = ("--dataset=synthetic", "--compile=False", "--warmup_iters=20", "--gradient_accumulation_steps=1")
_NANO_SMALL = ("--n_layer=4", "--n_head=4", "--n_embd=128", "--block_size=64", "--batch_size=12")
_SHAKESPEARE = (
    "--n_layer=6",
    "--n_head=6",
    "--n_embd=384",
    "--block_size=256",
    "--batch_size=64",
    "--dropout=0.2",
)
_NANO_CPU = ("--device=cpu", "--dtype=float32")
_WORDS = partial(corpus, at="corpus", train=551, other=120)

SCRIPTS: tuple[Script, ...] = (
    Script(
        "nanoGPT",
        "karpathy/nanoGPT",
        "3adf61e154c3fe3fca428ad6bc3818b27a3b8291",
        "train.py",
        (*_NANO, *_NANO_SMALL, "--max_iters=60", "--eval_interval=10", "--eval_iters=5", "--log_interval=1"),
        cpu=_NANO_CPU,
        data=partial(tokens, at="data/synthetic"),
        loop=Loop(
            r"^iter \d+: loss",
            (*_NANO, "--max_iters=199", "--eval_interval=50", "--eval_iters=20", "--log_interval=1"),
            cpu=(*_NANO_CPU, *_NANO_SMALL),
            cuda=_SHAKESPEARE,
        ),
    ),
    Script(
        "minGPT adder",
        *_MINGPT,
        "projects/adder/adder.py",
        ("--trainer.max_iters=60", "--trainer.num_workers=2"),
        path=("",),
        loop=Loop(r"iter \d+: train loss", ("--trainer.max_iters=201", "--trainer.num_workers=2"), every=10),
    ),
    Script(
        "minGPT chargpt",
        *_MINGPT,
        "projects/chargpt/chargpt.py",
        (
            "--model.model_type=gpt-micro",
            "--trainer.max_iters=40",
            "--trainer.num_workers=0",
            "--data.block_size=64",
        ),
        path=("",),
        data=partial(characters, at="input.txt"),
    ),
    Script(
        "makemore",
        "karpathy/makemore",
        "988aa59e4d8fefa526d06f3b453ad116258398d4",
        "makemore.py",
        ("-i", "synthetic.txt", "--max-steps", "620", "--n-embd", "16", "--n-embd2", "16", "-n", "1"),
        cuda=("--device", "cuda"),
        needs=("tensorboard",),
        data=partial(names, at="synthetic.txt"),
    ),
    Script(
        "ng-video-lecture bigram",
        "karpathy/ng-video-lecture",
        "52201428ed7b46804849dea0b3ccf0de9df1a5c3",
        "bigram.py",
        data=partial(characters, at="input.txt"),
    ),
    Script(
        "examples word_language_model",
        *_EXAMPLES,
        ("--data", "corpus", "--epochs", "4", "--emsize", "64", "--nhid", "64", "--log-interval", "5"),
        folder="word_language_model",
        cuda=("--accel",),
        data=_WORDS,
        loop=Loop(
            r"^\| epoch +\d+ \| +\d+/",
            ("--data", "corpus", "--epochs", "4", "--log-interval", "1"),
            cuda=("--accel",),
            data=partial(corpus, at="corpus", train=1751, other=176, words=10_000),
        ),
    ),
    Script(
        "examples word_language_model Transformer",
        *_EXAMPLES,
        (
            *"--data corpus --epochs 4 --emsize 64 --nhid 64 --log-interval 5 --model Transformer".split(),
            *("--use-optimizer", "--lr", "0.001"),
        ),
        folder="word_language_model",
        cuda=("--accel",),
        data=_WORDS,
    ),
    Script(
        "examples mnist",
        *_EXAMPLES,
        ("--epochs", "4", "--test-batch-size", "100", "--log-interval", "5"),
        folder="mnist",
        standins=_VISION,
    ),
    Script(
        "examples mnist_rnn",
        *_EXAMPLES,
        ("--epochs", "4", "--test-batch-size", "100", "--log-interval", "5"),
        folder="mnist_rnn",
        cuda=("--accel",),
        standins=_VISION,
    ),
    Script(
        "examples mnist_forward_forward",
        *_EXAMPLES,
        ("--epochs", "40", "--train_size", "1000", "--test_size", "400"),
        folder="mnist_forward_forward",
        standins=_VISION,
        seeds=_TORCH,
        validates=False,
    ),
    Script(
        "examples vae",
        *_EXAMPLES,
        ("--epochs", "4", "--batch-size", "64", "--log-interval", "5"),
        folder="vae",
        standins=_VISION,
        data=results,
    ),
    Script(
        "examples siamese_network",
        *_EXAMPLES,
        ("--epochs", "3", "--batch-size", "32", "--test-batch-size", "50", "--log-interval", "5"),
        folder="siamese_network",
        standins=_VISION,
        seeds=("import argparse, random, copy", "random.seed(0)"),
        images=(512, 200),
    ),
    Script(
        "examples imagenet",
        *_EXAMPLES,
        ("images", "--epochs", "3", "-b", "4", "-j", "1", "-p", "5", "--seed", "0"),
        folder="imagenet",
        standins=_VISION,
        images=(60, 24),
    ),
    Script(
        "examples dcgan",
        *_EXAMPLES,
        (
            "--dataset",
            "fake",
            "--niter",
            "3",
            "--batchSize",
            "32",
            "--ngf",
            "8",
            "--ndf",
            "8",
            "--manualSeed",
            "1",
        ),
        folder="dcgan",
        cuda=("--accel",),
        standins=_VISION,
        images=(512, 0),
        validates=False,
    ),
    Script(
        "examples gcn",
        *_EXAMPLES,
        ("--epochs", "60", "--val-every", "1"),
        folder="gcn",
        standins=("requests",),
        data=packed_citations,
    ),
    Script(
        "examples gat",
        *_EXAMPLES,
        ("--epochs", "35", "--val-every", "1", "--hidden-dim", "8", "--num-heads", "2"),
        folder="gat",
        standins=("requests",),
        data=partial(citations, at="cora"),
    ),
    Script(
        "examples time_sequence_prediction",
        *_EXAMPLES[:2],
        "train.py",
        ("--steps", "4"),
        folder="time_sequence_prediction",
        standins=("matplotlib",),
        data=waves,
        environment=(("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1"),),
    ),
    Script(
        "examples regression",
        *_EXAMPLES,
        folder="regression",
        seeds=_TORCH,
        validates=False,
    ),
    Script(
        "pygcn",
        "tkipf/pygcn",
        "1600b5b748b3976413d1e307540ccc62605b4d6d",
        "train.py",
        ("--epochs", "60"),
        cwd="pygcn",
        path=("",),
        needs=("scipy",),
        data=partial(citations, at="data/cora"),
        loop=Loop(
            r"^Epoch: \d+",
            ("--epochs", "200"),
            data=partial(citations, at="data/cora", nodes=2708, features=1433),
        ),
    ),
    Script(
        "pyGAT",
        "Diego999/pyGAT",
        "3664f2dc90cbf971564c0bf186dc794f12446d0c",
        "train.py",
        ("--epochs", "35", "--hidden", "4", "--nb_heads", "2"),
        needs=("scipy",),
        data=partial(citations, at="data/cora", nodes=1500),
    ),
    Script(
        "TCN adding_problem",
        *_TCN,
        "add_test.py",
        ("--epochs", "2", "--batch_size", "2000", "--seq_len", "30", "--levels", "3", "--log-interval", "5"),
        folder="TCN",
        cwd="adding_problem",
        cpu=("--cuda",),
        path=("..",),
        seeds=("import torch", "import numpy; numpy.random.seed(0)"),
    ),
    Script(
        "TCN word_cnn",
        *_TCN,
        "word_cnn_test.py",
        (
            *"--epochs 3 --data corpus --emsize 64 --nhid 64 --levels 2 --log-interval 5 --batch_size 8".split(),
        ),
        folder="TCN",
        cwd="word_cnn",
        cpu=("--cuda",),
        path=("..",),
        environment=(("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1"),),
        data=partial(corpus, at="word_cnn/corpus", train=320, other=80),
    ),
    Script(
        "TCN mnist_pixel",
        *_TCN,
        "pmnist_test.py",
        ("--epochs", "3", "--levels", "3", "--nhid", "8", "--log-interval", "5"),
        folder="TCN",
        cwd="mnist_pixel",
        cpu=("--cuda",),
        path=("..",),
        standins=_VISION,
    ),
    Script(
        "pytorch-tutorial convolutional_neural_network",
        *_YUNJEY,
        folder="tutorials/02-intermediate/convolutional_neural_network",
        standins=_VISION,
        seeds=_TORCH,
        validates=False,
    ),
    Script(
        "pytorch-tutorial language_model",
        *_YUNJEY,
        folder="tutorials/02-intermediate/language_model",
        seeds=_TORCH,
        data=partial(corpus, at="data", train=250, other=10),
        validates=False,
    ),
    Script(
        "PyTorch-Tutorial CNN",
        "MorvanZhou/PyTorch-Tutorial",
        "dbe154a9e56635e51c6b0c2ccea8ae36cfb585a7",
        "401_CNN.py",
        folder="tutorial-contents",
        standins=("torchvision", "matplotlib"),
        seeds=_TORCH,
        images=(6000, 400),
    ),
    Script(
        "nlp-tutorial TextCNN",
        "graykode/nlp-tutorial",
        "d05e31ec81d56d70c1db89b99ab07e948f7ebc11",
        "TextCNN.py",
        folder="2-1.TextCNN",
        seeds=_TORCH,
        validates=False,
    ),
)


def missing(script: Script, importable: Callable[[str], bool], checkouts: Path) -> str:
    """Why a script cannot be run here, or an empty string."""
    lacking = [name for name in script.needs if not importable(name)]
    if lacking:
        return f"needs {', '.join(lacking)}"
    if not (checkouts / script.checkout / script.folder / script.cwd / script.script).is_file():
        return f"there is no checkout {script.checkout}"
    return ""


def chosen(names: Sequence[str], loops: bool) -> list[Script]:
    """The scripts named (all of them without names); only those with a loop of 200 steps where `loops`."""
    known = [script for script in SCRIPTS if script.loop is not None or not loops]
    unknown = [name for name in names if not any(name in script.name for script in known)]
    if unknown:
        raise ValueError(
            f"no script is called {', '.join(unknown)}; there are {', '.join(s.name for s in known)}"
        )
    return [script for script in known if not names or any(name in script.name for name in names)]
