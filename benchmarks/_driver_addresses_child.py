"""One process of driver_addresses.py: asks the driver for memory and gives some back, and prints where each piece came to lie.

python _driver_addresses_child.py SEED
"""

from __future__ import annotations

import ctypes
import json
import random
import sys
from collections.abc import Iterator

MIB = 1 << 20
# What torch asks the driver for: 2 and 20 MiB, and from 10 MiB on multiples of 2 MiB.
SIZES = {
    0: lambda chance: 2,
    1: lambda chance: 20,
    2: lambda chance: chance.choice((2, 20)),
    3: lambda chance: 2 * chance.randrange(5, 20),
    4: lambda chance: 2 * chance.randrange(16, 90),
    5: lambda chance: 2 * chance.randrange(64, 160),
    6: lambda chance: chance.choice(
        (2, 2, 20, 20, 2 * chance.randrange(5, 30), 2 * chance.randrange(30, 300))
    ),
    7: lambda chance: chance.choice((2, 20, 20, 24, 32, 126, 128, 134, 440, 500, 558)),
}


def requests(seed: int) -> Iterator[int]:
    """Sizes in bytes to ask for; negative: the number of the piece, less one, that is given back."""
    chance = random.Random(seed)
    size = SIZES[seed % 8]
    frees = (0.0, 0.3, 0.6)[seed // 8 % 3]
    live: list[int] = []
    for number in range(240):
        yield size(chance) * MIB
        live.append(number)
        if (
            number % 40 == 39 and frees
        ):  # as empty_cache does: several in order of size, which is none of addresses
            gone = chance.sample(live, int(frees * len(live)))
            for one in gone:
                live.remove(one)
                yield -one - 1


def main() -> None:
    import torch

    torch.cuda.init()
    torch.cuda.synchronize()
    with open("/proc/self/maps") as file:
        library = next((line.split()[-1] for line in file if "libcudart" in line), "libcudart.so.13")
    runtime = ctypes.CDLL(library)
    addresses: list[int] = []
    events: list[list[int]] = []
    for request in requests(int(sys.argv[1])):
        if request < 0:
            address = addresses[-request - 1]
            status = runtime.cudaFree(ctypes.c_void_p(address))
            events.append([request, address])
        else:
            got = ctypes.c_void_p()
            status = runtime.cudaMalloc(ctypes.byref(got), ctypes.c_size_t(request))
            addresses.append(got.value or 0)
            events.append([request, addresses[-1]])
        if status:
            raise RuntimeError(f"CUDA error {status} after {len(events)} requests")
    print(json.dumps(events))


if __name__ == "__main__":
    main()
