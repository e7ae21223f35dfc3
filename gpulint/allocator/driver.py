"""Where the CUDA driver puts what `cudaMalloc` asks for.

Of free blocks of one size the caching allocator takes the one with the lowest address, so where segments come to lie has its part
in what is reserved. The driver's order was read off 24 sequences of requests and frees on an H200 (`benchmarks/driver_addresses.py` at
6e820c54), and gives each address of these. Another driver may do otherwise, and what it takes for itself, for kernels say, lies in between.
"""

from __future__ import annotations

import random
from bisect import bisect_left, insort
from dataclasses import dataclass
from typing import Final

_GRAIN: Final = 32 << 20  # bytes: addresses come from the system in multiples of it
_TOP: Final = 1 << 46

_Gap = tuple[int, int]  # address, size


@dataclass(slots=True)
class _Chunk:
    """Addresses that the driver has from the system, and those that are free of them."""

    address: int
    size: int
    gaps: list[_Gap]

    def best(self, size: int) -> _Gap | None:
        """The smallest gap that is large enough."""
        fitting = [(room, address) for address, room in self.gaps if room >= size]
        if not fitting:
            return None
        room, address = min(fitting)
        return address, room


class Driver:
    """Addresses of segments. The newest chunk that has room serves. Where none has, there is a new one: as high as a gap that is at
    least 32 MiB larger allows, otherwise below all. One that has become empty goes back."""

    def __init__(self) -> None:
        self._floor = _TOP
        self._gaps: list[_Gap] = []  # above the floor, by address
        self._chunks: dict[int, _Chunk] = {}  # by address, the newest last
        self._pieces: dict[int, tuple[int, _Chunk]] = {}  # by address: size

    def stay_below(self, address: int) -> None:
        """Give out nothing from this address on, where something lies that is not from here."""
        self._floor = min(self._floor, address // _GRAIN * _GRAIN)

    def malloc(self, size: int) -> int:
        """The address of a new segment of so many bytes."""
        found = next((one for one in reversed(self._chunks.values()) if one.best(size)), None)
        chunk = found if found is not None else self._new_chunk(-(-size // _GRAIN) * _GRAIN)
        gap = chunk.best(size)
        assert gap is not None
        address, room = gap
        chunk.gaps.remove(gap)
        if room > size:
            insort(chunk.gaps, (address + size, room - size))
        self._pieces[address] = (size, chunk)
        return address

    def free(self, address: int) -> None:
        """Take a segment back. One that is not from here is passed over."""
        if address not in self._pieces:
            return
        size, chunk = self._pieces.pop(address)
        _put_back(chunk.gaps, (address, size))
        if chunk.gaps == [(chunk.address, chunk.size)]:
            del self._chunks[chunk.address]
            _put_back(self._gaps, (chunk.address, chunk.size))
            if self._gaps[0][0] == self._floor:
                self._floor += self._gaps.pop(0)[1]

    def _new_chunk(self, size: int) -> _Chunk:
        for number in reversed(range(len(self._gaps))):
            start, room = self._gaps[number]
            if room >= size + _GRAIN:  # so much is asked for, to find a multiple of 32 MiB in it
                self._gaps[number] = (start, room - size)
                address = start + room - size
                break
        else:
            self._floor = address = self._floor - size
        chunk = self._chunks[address] = _Chunk(address, size, [(address, size)])
        return chunk


class AnyOrder(Driver):
    """Each segment anywhere, another order for each seed: how much do the figures depend on it?"""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._chance = random.Random(seed)

    def malloc(self, size: int) -> int:
        return (
            1 + self._chance.getrandbits(64)
        ) << 50  # so far from one another, and from any card's, that none touch


def _put_back(gaps: list[_Gap], gap: _Gap) -> None:
    """Add a gap to those in order of addresses, as one with its neighbours."""
    place = bisect_left(gaps, gap)
    address, size = gap
    if place < len(gaps) and gaps[place][0] == address + size:
        size += gaps.pop(place)[1]
    if place and sum(gaps[place - 1]) == address:
        address, before = gaps.pop(place - 1)
        gaps.insert(place - 1, (address, before + size))
    else:
        gaps.insert(place, (address, size))
