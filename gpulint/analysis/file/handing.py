"""Functions that are handed on as arguments: they run under the grad mode of whoever was given them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.values.values import Grad, Kind, Val

if TYPE_CHECKING:
    from gpulint.analysis.file.entry import EntryModes


def note_handed(values: Iterable[Val], grad: Grad, receivers: Iterable[ir.Function] | None) -> None:
    """Remember under which mode functions are handed to `receivers`; None for what cannot be seen.

    A receiver that switches grad off somewhere may do so around the call. One that cannot be seen says nothing more than
    the mode around it: with grad enabled that is nothing at all.
    """
    for value in values:
        if value.kind is not Kind.FUNCTION:
            continue
        home: EntryModes = value.ref.home
        mode = grad
        if receivers is None:
            if grad is Grad.ENABLED:
                continue
        elif any(receiver.home.guards_itself(receiver) for receiver in receivers):
            mode = Grad.DISABLED if grad is Grad.DISABLED else Grad.UNKNOWN
        home.callers.setdefault(value.ref, set()).add(mode)
