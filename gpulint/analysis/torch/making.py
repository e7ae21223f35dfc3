"""Functions of torch that make a tensor of nothing but numbers, by what they give on another device."""

from __future__ import annotations

from typing import Final

# The same numbers on every device.
ALIKE: Final = frozenset({"torch.zeros", "torch.ones", "torch.full", "torch.empty", "torch.eye"})
# The same but for the last digit, or other random numbers.
NEARLY: Final = frozenset(
    "torch.arange torch.linspace torch.logspace torch.rand torch.randn torch.randint torch.randperm torch.normal".split()
)
# Copied from the host wherever they are made: only to make them once helps.
COPIED: Final = frozenset(
    "torch.tensor torch.as_tensor torch.from_numpy torch.Tensor torch.FloatTensor torch.LongTensor".split()
)
MADE: Final = ALIKE | NEARLY | COPIED
RANDOM: Final = frozenset(
    "torch.rand torch.randn torch.randint torch.randperm torch.normal torch.empty".split()
)
