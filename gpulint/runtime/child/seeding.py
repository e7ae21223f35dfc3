"""The same random numbers in every run of a trial: the generators are seeded before the script can draw from them."""

from __future__ import annotations

import contextlib
import random
import sys
from types import ModuleType
from typing import Any

from gpulint.runtime.child.importing import ImportHook


def seed(number: int) -> None:
    """Seed python's generator now, and numpy's as soon as it is imported. The script may seed them anew."""

    def imported(numpy: ModuleType) -> None:
        with contextlib.suppress(Exception):  # a numpy that cannot be seeded is seen where two runs differ
            numpy.random.seed(number)

    random.seed(number)
    if "numpy" in sys.modules:
        imported(sys.modules["numpy"])
    else:
        ImportHook("numpy", imported).install()


def seed_torch(torch: Any, number: int) -> None:
    """Seed torch's generators, those of GPUs once they are used."""
    torch.manual_seed(number)
