"""What is alive on the device where a test suite's memory is measured: a GPU, or the CPU in its place."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping
from typing import Any, Final

import torch

from gpulint.runtime.holding import holders
from gpulint.runtime.probes.base import Block
from gpulint.runtime.probes.crests import by_site
from gpulint.runtime.probes.plain import live_tensors
from gpulint.runtime.record.result import Holder, Site
from gpulint.testing.cpu import Piece, Pieces, identity
from gpulint.testing.gpu import Device
from gpulint.units import format_bytes

# Frameworks whose own objects lead to every test and fixture: what a fixture holds is not looked for behind them.
PYTEST: Final = ("_pytest.", "pytest.", "pluggy.", "xdist.", "execnet.")


def told(device: Device) -> str:
    """Where it is measured, as a part of a sentence. Initializes no CUDA: a process that has may not fork users of it."""
    if device.kind == "cpu":
        return "the CPU, as it would be on a GPU"
    return device.card if torch.cuda.is_initialized() else "a GPU that nothing has used"  # type: ignore[no-untyped-call]


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
    leaking = frozenset(pieces) if thoroughly else frozenset()
    return holders.find(_blocks(pieces), device.key, range(0), device.frames, leaking=leaking, modules=True)


def reached_from(device: Device, roots: list[Any], pieces: Mapping[Hashable, Piece]) -> set[Hashable]:
    """Which of the pieces these objects keep alive."""
    return holders.reached(roots, _blocks(pieces), device.key, PYTEST)


def _blocks(pieces: Mapping[Hashable, Piece]) -> dict[Hashable, Block]:
    return {key: Block(piece.site, "device", 0, piece.size, 1) for key, piece in pieces.items()}


def place_of(site: Site, root: str) -> str:
    """`forward, src/model.py:12`, the file from `root` where it is below that."""
    if not site.file:
        return "code that no Python line of the project stands for"
    file = os.path.relpath(site.file, root) if site.file.startswith(root + os.sep) else site.file
    return f"{site.function}, {file}:{site.line}"


def births_of(device: Device, pieces: Mapping[Hashable, Piece], root: str) -> list[str]:
    """The lines that pieces were born at, with their bytes, largest first."""
    return by_line(device, by_site((piece.size, piece.site) for piece in pieces.values()), root, most=3)


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
