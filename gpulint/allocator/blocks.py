"""The blocks of the allocator's model: addresses, neighbours, free lists. No decisions."""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass, field


@dataclass(slots=True, eq=False)
class Block:
    """A piece of a segment. `mapped` is False for the part of an expandable segment without memory behind it."""

    address: int
    size: int
    stream: int
    small: bool
    segment: Segment
    previous: Block | None = None
    next: Block | None = None
    allocated: bool = False
    mapped: bool = True
    requested: int = 0
    born: int = 0  # value of the pool's counter when it became free

    @property
    def split(self) -> bool:
        return self.previous is not None or self.next is not None


@dataclass(slots=True, eq=False)
class Segment:
    """A range of addresses: one `cudaMalloc`, or an expandable range of which pages come and go."""

    address: int
    size: int
    expandable: bool


@dataclass(slots=True)
class Pool:
    """Free blocks of one size class, sorted per stream by (size, address); unmapped ones by address."""

    small: bool
    free: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    unmapped: dict[int, list[int]] = field(default_factory=dict)
    lookups: int = 0


class Heap:
    """All blocks of a device by address. A block that is free lies in its pool as well."""

    def __init__(self) -> None:
        self.blocks: dict[int, Block] = {}

    def divide(self, block: Block, size: int) -> Block:
        """Cut a block after `size` bytes; the second part."""
        place = block.stream, block.small, block.segment
        tail = Block(block.address + size, block.size - size, *place, block, block.next, mapped=block.mapped)
        if block.next is not None:
            block.next.previous = tail
        block.next = tail
        block.size = size
        self.blocks[tail.address] = tail
        return tail

    def settle(self, pool: Pool, block: Block) -> Block:
        """Put a free block into its pool, merged with its free neighbours; the result."""
        for neighbour in (block.previous, block.next):
            if neighbour is not None and not neighbour.allocated and neighbour.mapped == block.mapped:
                self.take_out(pool, neighbour)
                block = self._join(*sorted((block, neighbour), key=lambda one: one.address))
        self.insert(pool, block)
        return block

    def _join(self, first: Block, second: Block) -> Block:
        first.size += second.size
        first.next = second.next
        if second.next is not None:
            second.next.previous = first
        del self.blocks[second.address]
        return first

    def insert(self, pool: Pool, block: Block) -> None:
        if block.mapped:
            block.born = pool.lookups
            insort(pool.free.setdefault(block.stream, []), (block.size, block.address))
        else:
            insort(pool.unmapped.setdefault(block.stream, []), block.address)

    def take_out(self, pool: Pool, block: Block) -> None:
        if block.mapped:
            free = pool.free[block.stream]
            del free[bisect_left(free, (block.size, block.address))]
        else:
            unmapped = pool.unmapped[block.stream]
            del unmapped[bisect_left(unmapped, block.address)]
