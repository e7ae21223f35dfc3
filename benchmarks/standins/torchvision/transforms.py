"""Transforms of uint8 tensors (height, width and perhaps 3 channels) and, after `ToTensor`, of float ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.nn import functional


class Compose:
    def __init__(self, transforms: Sequence[Callable[[Any], Any]]) -> None:
        self.transforms = transforms

    def __call__(self, image: Any) -> Any:
        for transform in self.transforms:
            image = transform(image)
        return image


class Lambda:
    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function

    def __call__(self, image: Any) -> Any:
        return self.function(image)


class ToTensor:
    def __call__(self, image: torch.Tensor) -> torch.Tensor:
        channels = image[None] if image.dim() == 2 else image.permute(2, 0, 1)
        return channels.float() / 255


class Normalize:
    def __init__(self, mean: Sequence[float], std: Sequence[float]) -> None:
        self.mean = torch.tensor(mean).view(-1, 1, 1)
        self.std = torch.tensor(std).view(-1, 1, 1)

    def __call__(self, image: torch.Tensor) -> torch.Tensor:
        return (image - self.mean) / self.std


class Resize:
    """To a square: synthetic pictures are square."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __call__(self, image: torch.Tensor) -> torch.Tensor:
        planes = (image[None] if image.dim() == 2 else image.permute(2, 0, 1)).float()
        planes = functional.interpolate(planes[None], (self.size, self.size))[0].to(torch.uint8)
        return planes[0] if image.dim() == 2 else planes.permute(1, 2, 0)


class Pad:
    """Around a float tensor, after `ToTensor`."""

    def __init__(self, padding: int) -> None:
        self.padding = padding

    def __call__(self, image: torch.Tensor) -> torch.Tensor:
        return functional.pad(image, (self.padding,) * 4)


class CenterCrop:
    def __init__(self, size: int) -> None:
        self.size = size

    def __call__(self, image: torch.Tensor) -> torch.Tensor:
        top, left = (image.shape[0] - self.size) // 2, (image.shape[1] - self.size) // 2
        return image[top : top + self.size, left : left + self.size]


class RandomCrop:
    def __init__(self, size: int, padding: int = 0) -> None:
        self.size, self.padding = size, padding

    def __call__(self, image: torch.Tensor) -> torch.Tensor:
        pads = (0, 0) * (image.dim() - 2) + (self.padding,) * 4
        padded = functional.pad(image, pads)
        top, left = (int(torch.randint(0, padded.shape[d] - self.size + 1, ())) for d in (0, 1))
        return padded[top : top + self.size, left : left + self.size]


class RandomResizedCrop(Resize):
    def __call__(self, image: torch.Tensor) -> torch.Tensor:
        return super().__call__(RandomCrop(image.shape[0] * 3 // 4)(image))


class RandomHorizontalFlip:
    def __call__(self, image: torch.Tensor) -> torch.Tensor:
        return image.flip(1) if torch.rand(()) < 0.5 else image
