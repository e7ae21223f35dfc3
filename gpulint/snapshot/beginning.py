"""The state of the allocator when a trace begins, worked out backwards from the state at its end."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gpulint.allocator import Allocator, Piece
from gpulint.allocator.settings import SMALL_SEGMENT, UNLIMITED
from gpulint.snapshot.recording import MOST_OF_A_CARD, Action, Recording

_GRAIN = SMALL_SEGMENT  # every mapped range consists of whole ones
_ENDLESS = UNLIMITED >> 8  # bytes of addresses for an expandable range, as in the allocator's model
_Pool = tuple[int, bool]  # stream key, small
Pool = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Range:
    """Reserved memory: a segment, or a range of mapped pages."""

    address: int
    size: int
    stream: int
    small: bool
    expandable: bool

    @property
    def end(self) -> int:
        return self.address + self.size


class Keys:
    """A number for each pair of stream and memory pool: blocks of two such pairs never serve one another."""

    def __init__(self, recording: Recording) -> None:
        self._numbers: dict[tuple[int, Pool], int] = {}
        self.of_place = [self.of(stream, pool or (0, 0)) for stream, pool in recording.places]

    def of(self, stream: int, pool: Pool) -> int:
        return self._numbers.setdefault((stream, pool), len(self._numbers))


def ranges_at_start(recording: Recording, device: int, keys: Keys) -> list[Range]:
    """What was reserved when the trace began, by address."""
    ended = [
        Range(one.address, one.size, keys.of(one.stream, one.pool), one.small, one.expandable)
        for one in recording.segments
        if one.device == device
    ]
    fixed = {one.address: one for one in ended if not one.expandable}
    grains = {grain: one for one in ended if one.expandable for grain in _grains(one.address, one.size)}
    mapped = sorted((one for one in ended if one.expandable), key=_address)
    trace = recording.trace_of(device)
    for index in range(len(trace) - 1, -1, -1):
        action = trace.action[index]
        if Action.SEGMENT_ALLOC <= action <= Action.SEGMENT_UNMAP:
            address, size = trace.address[index], trace.size[index]
            stream = keys.of_place[trace.place[index]]
            if action == Action.SEGMENT_ALLOC:
                fixed.pop(address, None)
            elif action == Action.SEGMENT_FREE:
                fixed[address] = Range(address, size, stream, size <= SMALL_SEGMENT, False)
            elif action == Action.SEGMENT_MAP:
                for grain in _grains(address, size):
                    grains.pop(grain, None)
            else:
                one = Range(address, size, stream, _is_small(mapped, address, size), True)
                grains.update(dict.fromkeys(_grains(address, size), one))
    return sorted([*fixed.values(), *_joined(grains)], key=_address)


def _grains(address: int, size: int) -> range:
    if size > MOST_OF_A_CARD:
        raise ValueError(f"the trace maps {size} bytes at once, which no card has")
    return range(address, address + size, _GRAIN)


def _address(one: Range) -> int:
    return one.address


def _is_small(ranges: Sequence[Range], address: int, size: int) -> bool:
    """Whether an address lies in a range for small blocks: as the nearest range at the end does."""
    if not ranges:
        return size <= SMALL_SEGMENT
    place = bisect_left(ranges, address, key=_address)
    return min(ranges[max(0, place - 1) : place + 1], key=lambda one: abs(one.address - address)).small


def _joined(grains: dict[int, Range]) -> list[Range]:
    """The grains as ranges, those side by side and of one pool as one."""
    found: list[Range] = []
    for address in sorted(grains):
        kind = grains[address]
        last = found[-1] if found else None
        if (
            last is not None
            and last.end == address
            and (last.stream, last.small) == (kind.stream, kind.small)
        ):
            found[-1] = Range(last.address, last.size + _GRAIN, last.stream, last.small, True)
        else:
            found.append(Range(address, _GRAIN, kind.stream, kind.small, True))
    return found


def lay_out(model: Allocator, ranges: Iterable[Range], blocks: dict[int, int]) -> set[int]:
    """Put ranges and the blocks in them (address -> size) into the model as they lie; the addresses of the blocks that have a
    range to lie in."""
    laid: set[int] = set()
    starts = sorted(blocks)
    expandable: dict[_Pool, list[Piece]] = {}
    for one in ranges:
        pieces = list(_pieces(one, starts, blocks))
        laid |= {piece.address for piece in pieces if piece.allocated}
        if one.expandable:
            chain = expandable.setdefault((one.stream, one.small), [])
            if chain and (end := chain[-1].address + chain[-1].size) < one.address:
                chain.append(Piece(end, one.address - end, False, mapped=False))
            chain += pieces
        else:
            model.adopt(pieces, one.stream, one.small, False)
    for (stream, small), chain in expandable.items():
        end = chain[-1].address + chain[-1].size
        chain.append(Piece(end, _ENDLESS, False, mapped=False))
        model.adopt(_merged(chain), stream, small, True)
    return laid


def _pieces(one: Range, starts: list[int], blocks: dict[int, int]) -> Iterable[Piece]:
    at = one.address
    for place in range(bisect_left(starts, one.address), len(starts)):
        address = starts[place]
        if address >= one.end:
            break
        size = min(blocks[address], one.end - address)
        if address < at:
            continue
        if address > at:
            yield Piece(at, address - at, False)
        yield Piece(address, size, True)
        at = address + size
    if at < one.end:
        yield Piece(at, one.end - at, False)


def _merged(chain: list[Piece]) -> list[Piece]:
    """Free pieces side by side as one."""
    found: list[Piece] = []
    for piece in chain:
        last = found[-1] if found else None
        if last is not None and not last.allocated and not piece.allocated and last.mapped == piece.mapped:
            found[-1] = last._replace(size=last.size + piece.size)
        else:
            found.append(piece)
    return found
