"""Where a test suite's memory is measured: a GPU, or the CPU in its place. One face for both.

What is alive is told by `live`: each piece of memory with its size, the line it was born at, and an identity that outlasts the
use of its address by something else.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Final, NamedTuple, Protocol

import torch

from gpulint.runtime.holding import holders
from gpulint.runtime.probes.base import Block
from gpulint.runtime.probes.frames import Frames
from gpulint.runtime.probes.plain import live_tensors
from gpulint.runtime.record.result import Holder, Site
from gpulint.units import format_bytes

# Frameworks whose own objects lead to every test and fixture: what a fixture holds is not looked for behind them.
PYTEST: Final = ("_pytest.", "pytest.", "pluggy.", "xdist.", "execnet.")


class Piece(NamedTuple):
    """Live memory: `size` bytes, born at the site with this index. `identity` is the weak reference of its storage, None
    where no Python object stands for it."""

    size: int
    site: int
    identity: Any


Pieces = dict[Hashable, Piece]
# Told the level, in bytes, that has passed the limit; gives the next limit, or None where no more is to be told.
Crossed = Callable[[int], int | None]


class Device(Protocol):
    """What the plugin asks of a GPU, or of the CPU in its place. Between `enter` and the `leave` for it births are recorded
    with their lines; both may be nested."""

    kind: str  # cuda or cpu
    frames: Frames

    @property
    def card(self) -> str:
        """The card's name as a baseline knows it; "cpu" for the CPU."""

    def enter(self) -> None:
        """Begin to record births."""

    def leave(self) -> None:
        """End what the last `enter` began."""

    def resume(self) -> None:
        """Record births again, where somebody else has ended that."""

    def settle(self, wholly: bool = True) -> None:
        """Let go of what is only waiting to be let go of: garbage, workspaces, work in flight. Not `wholly`: garbage that is
        young, because to collect it all takes longer than most tests."""

    def levels(self) -> list[int]:
        """Bytes allocated now, card by card."""

    def live(self) -> Pieces:
        """All that is alive."""

    def key(self, tensor: Any) -> Hashable | None:
        """What identifies a tensor's memory in `live`; None if it is not on this device."""

    def card_of(self, key: Hashable) -> int:
        """The position in `levels` of the card that a piece is on."""

    def begin_peak(self, limit: int | None, crossed: Crossed) -> None:
        """Measure a peak from here on. `crossed` is called soon after the first card has more than `limit` bytes."""

    def peaks(self) -> list[int]:
        """The most bytes since `begin_peak`, card by card."""

    def reserved(self) -> int | None:
        """The most bytes reserved since `begin_peak`; None where nothing is reserved."""

    def at_peak(self, card: int) -> dict[int, int] | None:
        """What was alive at the card's peak: bytes by site's index. None where it was not recorded."""

    def end_peak(self) -> None:
        """Measure it no more."""


def told(device: Device) -> str:
    """Where it is measured, as a part of a sentence. Initializes no CUDA: a process that has may not fork users of it."""
    if device.kind == "cpu":
        return "the CPU, as it would be on a GPU"
    return device.card if torch.cuda.is_initialized() else "a GPU that nothing has used"  # type: ignore[no-untyped-call]


def identity(tensor: Any) -> Any:
    """The weak reference of a tensor's storage: the same one as long as the storage lives."""
    return weakref.ref(tensor.untyped_storage())


def tensors_on(device: Device) -> Pieces:
    """The memory of all tensors that Python's collector knows, without births: needs no recording."""
    found: Pieces = {}
    for one in live_tensors():
        key = device.key(one)
        if key is not None and key not in found:
            found[key] = Piece(one.untyped_storage().nbytes(), 0, identity(one))
    return found


def is_same(one: Piece | None, other: Piece | None) -> bool:
    """Whether two looks, at one address, saw the same piece."""
    if one is None or other is None:
        return False
    if one.identity is not None and other.identity is not None:
        return bool(one.identity is other.identity)
    return (one.size, one.site) == (other.size, other.site)


def holders_of(device: Device, pieces: Mapping[Hashable, Piece], thoroughly: bool = True) -> list[Holder]:
    """Who keeps these pieces, largest first. `thoroughly` looks at everything that there is for those that no variable of the
    user's leads to, which takes a second or more."""
    blocks = {key: Block(piece.site, "device", 0, piece.size, 1) for key, piece in pieces.items()}
    leaking = frozenset(blocks) if thoroughly else frozenset()
    return holders.find(blocks, device.key, range(0), device.frames, leaking=leaking, modules=True)


def reached_from(device: Device, roots: list[Any], pieces: Mapping[Hashable, Piece]) -> set[Hashable]:
    """Which of the pieces these objects keep alive."""
    blocks = {key: Block(piece.site, "device", 0, piece.size, 1) for key, piece in pieces.items()}
    return holders.reached(roots, blocks, device.key, PYTEST)


def place_of(site: Site, root: str) -> str:
    """`forward, src/model.py:12`, the file from `root` where it is below that."""
    if not site.file:
        return "code that no Python line of the project stands for"
    file = os.path.relpath(site.file, root) if site.file.startswith(root + os.sep) else site.file
    return f"{site.function}, {file}:{site.line}"


def births_of(device: Device, pieces: Mapping[Hashable, Piece], root: str) -> list[str]:
    """The lines that pieces were born at, with their bytes, largest first."""
    totals: dict[int, int] = {}
    for piece in pieces.values():
        totals[piece.site] = totals.get(piece.site, 0) + piece.size
    return by_line(device, totals, root, most=3)


def by_line(device: Device, totals: Mapping[int, int], root: str, most: int = 5) -> list[str]:
    """Lines with their bytes, largest first; how many more there are, at the end."""
    ranked = sorted(((size, site) for site, size in totals.items() if size > 0), reverse=True)
    said = [
        f"{format_bytes(size)} born in {place_of(device.frames.sites[site], root)}"
        for size, site in ranked[:most]
    ]
    rest = ranked[most:]
    if rest:
        said.append(
            f"{format_bytes(sum(size for size, _ in rest))} born at {len(rest)} other line{'s' * (len(rest) > 1)}"
        )
    return said
