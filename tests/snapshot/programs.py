"""Programs whose allocations the tests record."""

from __future__ import annotations

import random

from torch_layout import Program

MIB = 1 << 20


def varied(program: Program, rounds: int = 120, seed: int = 1) -> None:
    """Sizes of every kind, freed in any order, some kept, and the cache emptied now and then."""
    chance = random.Random(seed)
    for round_ in range(rounds):
        got = [
            program.malloc(
                chance.randrange(1, 60 * MIB) if chance.random() < 0.6 else chance.randrange(1, MIB),
                ("/home/me/train.py", chance.randrange(1, 6), "step"),
            )
            for _ in range(15)
        ]
        chance.shuffle(got)
        for address in got[round_ % 40 == 0 :]:
            program.free(address, ("/home/me/train.py", 77, "step"))
        if round_ % 50 == 49:
            program.empty_cache()
