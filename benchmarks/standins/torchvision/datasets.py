"""Datasets of noise around one random picture per class, the same in every run. A picture is a uint8 tensor."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import torch
from torch.utils.data import Dataset


class Synthetic(Dataset[tuple[Any, Any]]):
    """`shape` is height, width and, for colour, 3."""

    shape: tuple[int, ...] = (28, 28)
    classes: tuple[str, ...] = tuple("0123456789")

    def __init__(
        self,
        train: bool,
        transform: Callable[..., Any] | None = None,
        target: Callable[..., Any] | None = None,
    ) -> None:
        size = int(os.environ.get("STANDIN_TRAIN" if train else "STANDIN_TEST", "1000"))
        generator = torch.Generator().manual_seed(0)
        pictures = torch.randint(0, 128, (len(self.classes), *self.shape), generator=generator)
        generator.manual_seed(1 if train else 2)
        self.targets = torch.randint(0, len(self.classes), (size,), generator=generator)
        noise = torch.randint(0, 128, (size, *self.shape), generator=generator)
        self.data = (pictures[self.targets] + noise).to(torch.uint8)
        self.train = train
        self.transform = transform
        self.target_transform = target

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        image, target = self.data[index], int(self.targets[index])
        if self.transform is not None:
            image = self.transform(image)
        return image, target if self.target_transform is None else self.target_transform(target)

    # torchvision's names before 0.2, still in use
    @property
    def train_data(self) -> torch.Tensor:
        return self.data

    test_data = train_data

    @property
    def train_labels(self) -> torch.Tensor:
        return self.targets

    test_labels = train_labels


class MNIST(Synthetic):
    def __init__(
        self,
        root: Any = "",
        train: bool = True,
        transform: Callable[..., Any] | None = None,
        target_transform: Callable[..., Any] | None = None,
        download: bool = False,
    ) -> None:
        super().__init__(train, transform, target_transform)


class FashionMNIST(MNIST):
    pass


class CIFAR10(MNIST):
    shape = (32, 32, 3)


class ImageFolder(Synthetic):
    shape = (72, 72, 3)

    def __init__(
        self,
        root: Any,
        transform: Callable[..., Any] | None = None,
        target_transform: Callable[..., Any] | None = None,
    ) -> None:
        super().__init__(str(root).rstrip("/").endswith("train"), transform, target_transform)


class FakeData(Synthetic):
    def __init__(
        self,
        size: int = 1000,
        image_size: tuple[int, int, int] = (3, 224, 224),
        num_classes: int = 10,
        transform: Callable[..., Any] | None = None,
        target_transform: Callable[..., Any] | None = None,
    ) -> None:
        channels, height, width = image_size
        self.shape = (height, width, channels)
        self.classes = tuple(str(number) for number in range(num_classes))
        super().__init__(True, transform, target_transform)
