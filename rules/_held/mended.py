"""How a tensor that stays is mended: by methods that leave its graph behind, or the device."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gpulint.analysis.asked import Asked
from gpulint.rule import Repair, Replace


def by_methods(asked: Asked, places: Iterable[Any], methods: tuple[str, ...], what: str, why: str) -> Repair:
    """The same with these methods called on it, safe unless there is something that speaks against that."""
    from gpulint.fix.nodes import method_chain

    nodes = [asked.node(one) for one in places]
    changes = tuple(Replace(node, method_chain(node, methods)) for node in nodes)
    return Repair.unless(why, what, changes)
