"""Public training scripts whose findings have fixes, beside those of `_scripts.py`, and what they need for data."""

from __future__ import annotations

import pickle
import random
from functools import partial
from pathlib import Path

import numpy as np
from _scripts import Script

_GAN = ("eriklindernoren/PyTorch-GAN", "36d3c77e5ff20ebe0aeefd322326a134a279b93e")
_ADVERSARIAL = ("--n_epochs", "3", "--batch_size", "32", "--sample_interval", "10", "--n_cpu", "0")


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


SCRIPTS_WITH_FIXES = (
    Script(
        "SR-GNN",
        "CRIPAC-DIG/SR-GNN",
        "e21cfa431f74c25ae6e4ae9261deefe11d1cb488",
        "main.py",
        ("--epoch", "3", "--batchSize", "50", "--hiddenSize", "64"),
        cwd="pytorch_code",
        needs=("networkx",),
        data=sessions,
    ),
    Script(
        "Federated-Learning-PyTorch baseline",
        "AshwinRJ/Federated-Learning-PyTorch",
        "26eaec40fa8beb56777feb89756f6401c28c4736",
        "baseline_main.py",
        ("--epochs", "3", "--model", "cnn", "--dataset", "mnist"),
        cwd="src",
        cuda=("--gpu", "cuda:0"),
        needs=("tqdm",),
        standins=("torchvision", "matplotlib"),
        images=(1024, 1200),
    ),
    Script(
        "PyTorch-GAN acgan",
        *_GAN,
        "acgan.py",
        (*_ADVERSARIAL, "--img_size", "32"),
        folder="implementations/acgan",
        standins=("torchvision",),
        seeds=("import torch", "torch.manual_seed(0); np.random.seed(0)"),
        validates=False,
    ),
    Script(
        "PyTorch-GAN infogan",
        *_GAN,
        "infogan.py",
        (*_ADVERSARIAL, "--img_size", "32"),
        folder="implementations/infogan",
        standins=("torchvision",),
        seeds=("import torch", "torch.manual_seed(0); np.random.seed(0)"),
        validates=False,
    ),
    Script(
        "PyTorchZeroToAll softmax_mnist",
        "hunkim/PyTorchZeroToAll",
        "e5a260fac0b4ff1e2ec434fc6f0d962ac97fc289",
        "09_2_softmax_mnist.py",
        standins=("torchvision",),
        seeds=("import time", "import torch; torch.manual_seed(0)"),
        images=(2048, 640),
    ),
    Script(
        "MTGNN train_multi_step",
        "nnzhan/MTGNN",
        "f811746fa7022ebf336f9ecd2434af5f365ecbf6",
        "train_multi_step.py",
        (
            *"--data data --adj_data data/near.pkl --num_nodes 24 --subgraph_size 8 --epochs 3 --runs 1".split(),
            *"--batch_size 32 --print_every 5".split(),
        ),
        cpu=("--device", "cpu"),
        cuda=("--device", "cuda:0"),
        needs=("scipy",),
        data=partial(sensors, nodes=24),
    ),
)
