"""How a fix that switches grad off spells it in a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpulint.rule import AddImport

if TYPE_CHECKING:
    from gpulint.analysis.file.asking import FileFacts


def no_grad(facts: FileFacts) -> tuple[str, tuple[AddImport, ...]] | None:
    """What the file calls `torch.no_grad`, and the import that it takes; None where the file is written for a torch that
    has none: there the fix would raise."""
    from gpulint.analysis.questions.grad.old_torch import predates_no_grad

    if facts.ask(predates_no_grad):
        return None
    name = facts.torch_name("no_grad")
    return (name, ()) if name is not None else ("torch.no_grad", (AddImport("torch"),))
