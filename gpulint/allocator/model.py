"""The decisions of torch's CUDA caching allocator: which block serves a request, and what to do when none does."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from gpulint.allocator.blocks import Block, Heap, Pool, Segment
from gpulint.allocator.driver import Driver
from gpulint.allocator.settings import (
    MIN_BLOCK,
    MIN_LARGE,
    ROUND_LARGE,
    SMALL_LIMIT,
    SMALL_SEGMENT,
    UNLIMITED,
    Settings,
    parse_settings,
)


class OutOfMemory(MemoryError):
    """The request could not be served."""

    def __init__(self, requested: int, figures: str) -> None:
        super().__init__(f"no room for {requested} bytes: {figures}")
        self.requested = requested


class Piece(NamedTuple):
    """A block of a segment that is taken over: allocated, free, or (of an expandable one) without memory behind it."""

    address: int
    size: int
    allocated: bool
    mapped: bool = True


class Allocator:
    """One device. `capacity` is what the driver can give (None: no end), `limit` what
    `set_per_process_memory_fraction` allows. Addresses identify allocations.

    Of free blocks of the same size the one with the lowest address is taken, so where new segments come to lie has its part in what
    is reserved. `addresses` says where, by default as the driver does.
    """

    def __init__(
        self,
        settings: Settings | str = "",
        capacity: int | None = None,
        limit: int | None = None,
        addresses: Driver | None = None,
    ) -> None:
        self.settings = parse_settings(settings) if isinstance(settings, str) else settings
        self.capacity = UNLIMITED if capacity is None else capacity
        self.limit = limit
        self.allocated = self.reserved = self.peak_allocated = self.peak_reserved = 0
        self.retries = 0
        self._pools = {True: Pool(True), False: Pool(False)}
        self._heap = Heap()
        self._next_address = 1 << 32  # of expandable ranges
        self._driver = Driver() if addresses is None else addresses

    # -- the interface -----------------------------------------------------------------------------------------

    def malloc(self, size: int, stream: int = 0) -> int:
        """The address of a block for `size` bytes. Raises OutOfMemory as torch does, after a retry."""
        rounded = self.round(size)
        pool = self._pools[rounded <= SMALL_LIMIT]
        block = self._find(pool, rounded, stream)
        if block is None:
            block = self._grow(pool, rounded, stream)
        if block is None:
            free = f"{self.reserved} reserved, {self.free_on_card} free"
            raise OutOfMemory(size, f"{self.allocated} allocated, {free}")
        block = self._cut(pool, block, rounded)
        block.allocated, block.requested = True, size
        self.allocated += block.size
        self.peak_allocated = max(self.peak_allocated, self.allocated)
        return block.address

    def free(self, address: int) -> None:
        """Give a block back to the cache. Raises KeyError for an address that is not allocated."""
        block = self._heap.blocks[address]
        if not block.allocated:
            raise KeyError(address)
        block.allocated = False
        self.allocated -= block.size
        self._heap.settle(self._pools[block.small], block)

    def adopt(self, pieces: Sequence[Piece], stream: int, small: bool, expandable: bool) -> None:
        """Take over a segment as it lies: pieces that follow one another, no two free ones side by side."""
        first, last = pieces[0], pieces[-1]
        self._driver.stay_below(first.address)
        segment = Segment(first.address, last.address + last.size - first.address, expandable)
        pool = self._pools[small]
        before: Block | None = None
        for piece in pieces:
            block = Block(piece.address, piece.size, stream, small, segment, before)
            block.allocated, block.mapped, block.requested = piece.allocated, piece.mapped, piece.size
            if before is not None:
                before.next = block
            before = self._heap.blocks[block.address] = block
            self.allocated += block.size if block.allocated else 0
            self.reserved += block.size if block.mapped else 0
            if not block.allocated:
                self._heap.insert(pool, block)
        self.reset_peak()

    def empty_cache(self) -> None:
        """Return to the driver what no tensor shares a segment with."""
        for pool in self._pools.values():
            self._release_cached(pool)

    def reset_peak(self) -> None:
        self.peak_allocated, self.peak_reserved = self.allocated, self.reserved

    @property
    def free_on_card(self) -> int:
        return self.capacity - self.reserved

    @property
    def largest_free(self) -> int:
        """The largest block that a tensor could take without anything new from the driver."""
        free = (block.size for block in self._heap.blocks.values() if block.mapped and not block.allocated)
        return max(free, default=0)

    # -- sizes -------------------------------------------------------------------------------------------------

    def round(self, size: int) -> int:
        """The size of the block that a request gets, before splitting decides."""
        if size < MIN_BLOCK:
            return MIN_BLOCK
        divisions = self.settings.divisions[min(15, max(0, size.bit_length() - 21))]
        if divisions > 1 and size > MIN_BLOCK * divisions:
            return _round_to_division(size, divisions)
        return -(-size // MIN_BLOCK) * MIN_BLOCK

    def segment_size(self, size: int) -> int:
        """What a new segment for a rounded request takes."""
        if size <= SMALL_LIMIT:
            return SMALL_SEGMENT
        if size < MIN_LARGE:
            return self.settings.large_segment
        return -(-size // ROUND_LARGE) * ROUND_LARGE

    # -- from the cache ----------------------------------------------------------------------------------------

    def _find(self, pool: Pool, size: int, stream: int) -> Block | None:
        """Best fit among the free blocks of the stream."""
        pool.lookups += 1
        free = pool.free.get(stream)
        if not free:
            return None
        place = bisect_left(free, (size, 0))
        if place == len(free):
            return None
        block = self._heap.blocks[free[place][1]]
        if block.segment.expandable:
            block, place = self._least_expandable(free, place)
        if size < self.settings.max_split <= block.size:
            return None
        if size >= self.settings.max_split and block.size >= size + self.settings.max_non_split_rounding:
            return None
        del free[place]
        return block

    def _least_expandable(self, free: list[tuple[int, int]], place: int) -> tuple[Block, int]:
        """A block at the growing end of a range counts as large as it may become."""

        def possible(block: Block) -> int:
            following = block.next
            return block.size + (following.size if following is not None and not following.mapped else 0)

        block = self._heap.blocks[free[place][1]]
        while place + 1 < len(free):
            other = self._heap.blocks[free[place + 1][1]]
            if not other.segment.expandable or possible(other) >= possible(block):
                break
            block, place = other, place + 1
        return block, place

    def _cut(self, pool: Pool, block: Block, size: int) -> Block:
        """Split off what is not needed, if the settings allow."""
        rest = block.size - size
        if pool.small or self.settings.expandable:
            worth = rest >= MIN_BLOCK
        else:
            worth = size < self.settings.max_split and rest > SMALL_LIMIT
        if worth:
            self._heap.insert(pool, self._heap.divide(block, size))
        return block

    # -- from the driver ---------------------------------------------------------------------------------------

    def _grow(self, pool: Pool, size: int, stream: int) -> Block | None:
        if self.limit is not None and self.settings.gc_threshold > 0:
            self._collect_old()
        wanted = self.segment_size(size)
        block = self._new(pool, size, wanted, stream)
        if block is None and self._release_oversize(pool, size, stream):
            block = self._new(pool, size, wanted, stream)
        if block is None:
            self.empty_cache()
            self.retries += 1
            block = self._new(pool, size, wanted, stream)
        return block

    def _new(self, pool: Pool, size: int, wanted: int, stream: int) -> Block | None:
        if self.limit is not None and self.reserved + wanted > self.limit:
            return None
        if self.settings.expandable:
            return self._expand(pool, size, stream)
        if not self._reserve(wanted):
            return None
        address = self._driver.malloc(wanted)
        block = Block(address, wanted, stream, pool.small, Segment(address, wanted, False))
        self._heap.blocks[address] = block
        return block

    def _reserve(self, size: int) -> bool:
        if self.reserved + size > self.capacity:
            return False
        self.reserved += size
        self.peak_reserved = max(self.peak_reserved, self.reserved)
        return True

    def _addresses(self, size: int) -> int:
        address = self._next_address
        self._next_address += -(-size // ROUND_LARGE) * ROUND_LARGE + ROUND_LARGE
        return address

    # -- expandable segments -----------------------------------------------------------------------------------

    def _expand(self, pool: Pool, size: int, stream: int) -> Block | None:
        """Map pages behind the lowest address where free and unmapped blocks together give enough room."""
        block: Block | None = self._room(pool, size, stream)
        while block is not None and not (block.mapped and block.size >= size):
            unmapped = block.next if block.mapped else block
            assert unmapped is not None
            wanted = size - block.size if block.mapped else size
            block = self._map(pool, unmapped, min(wanted, unmapped.size))
        if block is not None:
            self._heap.take_out(pool, block)
        return block

    def _room(self, pool: Pool, size: int, stream: int) -> Block:
        for address in pool.unmapped.get(stream, ()):
            block = self._heap.blocks[address]
            before = block.previous
            if before is not None and not before.allocated:
                block = before
            if self._fits(block, size):
                return block
        # Torch reserves 9/8 of the card's memory as addresses for each range; here there is no such end.
        length = UNLIMITED >> 8
        address = self._addresses(length)
        block = Block(address, length, stream, pool.small, Segment(address, length, True), mapped=False)
        self._heap.blocks[address] = block
        self._heap.insert(pool, block)
        return block

    @staticmethod
    def _fits(block: Block | None, size: int) -> bool:
        room = 0
        while block is not None and not block.allocated and room < size:
            room += block.size
            block = block.next
        return room >= size

    def _map(self, pool: Pool, block: Block, size: int) -> Block | None:
        """Put memory behind the first `size` bytes of an unmapped block, in whole pages; the free block that
        results, merged with its free neighbours. None when the driver has none left."""
        page = SMALL_SEGMENT if pool.small else self.settings.large_segment
        start = block.address - block.segment.address
        end = -(-(start + size) // page) * page
        length = min(end - start, block.size)
        if not self._reserve(length):
            return None
        self._heap.take_out(pool, block)
        if length < block.size:
            self._heap.insert(pool, self._heap.divide(block, length))
        block.mapped = True
        return self._heap.settle(pool, block)

    def _unmap(self, pool: Pool, block: Block) -> None:
        """Take the memory from the whole pages inside a free block."""
        page = SMALL_SEGMENT if pool.small else self.settings.large_segment
        base = block.segment.address
        start = -(-(block.address - base) // page) * page + base
        end = (block.address + block.size - base) // page * page + base
        if end <= start:
            return
        self._heap.take_out(pool, block)
        if start > block.address:
            head, block = block, self._heap.divide(block, start - block.address)
            self._heap.insert(pool, head)
        if end < block.address + block.size:
            self._heap.insert(pool, self._heap.divide(block, end - block.address))
        self.reserved -= block.size
        block.mapped = False
        self._heap.settle(pool, block)

    # -- giving back -------------------------------------------------------------------------------------------

    def _release(self, pool: Pool, block: Block) -> None:
        self._heap.take_out(pool, block)
        del self._heap.blocks[block.address]
        self._driver.free(block.address)
        self.reserved -= block.size

    def _release_cached(self, pool: Pool) -> None:
        free = [self._heap.blocks[address] for blocks in pool.free.values() for _, address in blocks]
        for block in free:
            if block.segment.expandable:
                self._unmap(pool, block)
            elif not block.split:
                self._release(pool, block)

    def _release_oversize(self, pool: Pool, size: int, stream: int) -> bool:
        """With max_split_size set: return the best oversize block, or the largest ones until there are enough."""
        most = self.settings.max_split
        free = pool.free.get(stream, [])
        if most == UNLIMITED or not free or self.settings.expandable:
            return False
        needed = max(size, most)
        place = bisect_left(free, (needed, 0))
        if place < len(free):
            self._release(pool, self._heap.blocks[free[place][1]])
            return True
        released = 0
        for block_size, address in reversed(free.copy()):
            if released >= needed or block_size < most:
                break
            self._release(pool, self._heap.blocks[address])
            released += block_size
        return released >= needed

    def _collect_old(self) -> None:
        """Return unsplit large segments that were not used for long, until the threshold is kept."""
        assert self.limit is not None
        pool = self._pools[False]
        target = self.reserved - int(self.settings.gc_threshold * self.limit)
        if target <= 0:
            return
        candidates = [
            block
            for blocks in pool.free.values()
            for _, address in blocks
            if not (block := self._heap.blocks[address]).split and not block.segment.expandable
        ]
        age = sum(pool.lookups - block.born for block in candidates)
        reclaimed, progress = 0, True
        while candidates and progress and reclaimed < target:
            threshold = age / len(candidates)
            progress = False
            for block in candidates.copy():  # all of that age, also beyond the target
                if pool.lookups - block.born >= threshold:
                    progress = True
                    reclaimed += block.size
                    age -= pool.lookups - block.born
                    candidates.remove(block)
                    self._release(pool, block)


def _round_to_division(size: int, divisions: int) -> int:
    """Up to the next of `divisions` steps between two powers of two."""
    if size & (size - 1) == 0:
        return size
    floor = 1 << (size.bit_length() - 1)
    step = floor >> (divisions.bit_length() - 1)
    if step == 0:
        return floor << 1
    return -(-size // step) * step
