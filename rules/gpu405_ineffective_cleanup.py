from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from gpulint.rules.detect.cleanup import IdleCleanup

from gpulint.answers import doubts_of
from gpulint.claims import Claim
from gpulint.findings import Severity
from gpulint.rule import Cost, Insert, RelatedNode, Remove, Repair, Report, Rule

if TYPE_CHECKING:
    from gpulint.analysis.code import ir
    from gpulint.analysis.file.asking import FileFacts


class IneffectiveCleanup(Rule):
    """
    ## What it does
    Finds clean-ups that free nothing: `del` of a parameter, just before `empty_cache()`, in a function that only cleans up
    or whose callers in the file all keep a name for what they hand over; `del` of a loop's variable; `empty_cache()` just
    before the `del`, or the `gc.collect()`, that it should follow: of the collector a note, as nothing shows what it finds.
    Confidence is high where what is deleted is known to be a large network, and
    medium else.

    ## Why is this bad
    `del` takes away one name. The caller's name still holds what was handed to a helper, and the list still holds what
    a loop runs over, so nothing is freed. `empty_cache()` gives back memory that is free already: what the next
    statement lets go of stays in the cache.

    ## What it costs
    Logits of 500 MiB, handed to a helper that deletes its parameter and empties the cache: 675 MiB allocated after it
    as before it; 175 MiB, which is the model, where the caller deletes its own name first. `del` of a loop's variable:
    674 MiB, and 174 MiB once the list is emptied. `empty_cache()` and then `del` of the logits leaves 6,760 MiB
    reserved, `del` and then `empty_cache()` 6,260 MiB (4-layer language model, NVIDIA H200, torch 2.11).

    ## Example
    ```python
    import torch
    from torchvision.models import resnet50


    def compare(paths, score):
        scores = {}
        for path in paths:
            model = resnet50().cuda()
            model.load_state_dict(torch.load(path, map_location="cpu"))
            scores[path] = score(model)
            torch.cuda.empty_cache()
            del model
        return scores
    ```

    ## Use instead
    ```python
    import torch
    from torchvision.models import resnet50


    def compare(paths, score):
        scores = {}
        for path in paths:
            model = resnet50().cuda()
            model.load_state_dict(torch.load(path, map_location="cpu"))
            scores[path] = score(model)
            del model
            torch.cuda.empty_cache()
        return scores
    ```

    ## Fix safety
    Emptying the cache after the `del`, or the collector, instead of before it changes no result: safe. Unsafe where what stands between the two
    reads figures of memory, or resets them. A helper has no fix: let the caller
    say `del`, and the helper empty the cache after it.
    """

    code = "GPU405"
    name = "ineffective-cleanup"
    severity = Severity.WARNING
    runtime_claim = Claim("useless")
    triggers = ((b"empty_cache",), (b"del ", b"collect"))
    doubts = True

    def check(self, facts: FileFacts, options: Mapping[str, Any]) -> Iterator[Report]:
        from gpulint.rules.detect.cleanup import idle_cleanups

        for cleanup in facts.ask(idle_cleanups):
            yield (
                _helper(facts, cleanup)
                if cleanup.emptied is None
                else _order(facts, cleanup, cleanup.emptied)
            )


def _doubts(facts: FileFacts, cleanup: IdleCleanup) -> tuple[str, ...]:
    from gpulint.analysis.questions.size.states import held_doubts

    return doubts_of(held_doubts(facts.ask, cleanup.function, cleanup.name))


def _helper(facts: FileFacts, cleanup: IdleCleanup) -> Report:
    holder = "the caller's own name" if cleanup.what == "parameter" else "what the loop runs over"
    return Report(
        cleanup.stmt,
        f"`del {cleanup.name}` frees nothing: {holder} still holds it when `{cleanup.function.name}` empties the cache",
        "`del` takes away a name; memory is free when the last reference is gone",
        Cost(
            "all that it was meant to free",
            "675 MiB allocated after such a helper, 175 MiB where the last name goes, for a 4-layer language model; H200, torch 2.11",
        ),
        doubts=_doubts(facts, cleanup),
        subject=cleanup.name,
    )


def _order(facts: FileFacts, cleanup: IdleCleanup, emptied: ir.ExprStmt) -> Report:
    collects = cleanup.what == "collector"
    event = f"`{cleanup.name}` runs" if collects else f"`{cleanup.name}` is deleted"
    figure = (
        "6,760 MiB reserved, 6,260 MiB in the other order, for a 4-layer language model; H200, torch 2.11"
    )
    return Report(
        emptied,
        f"the cache is emptied before {event}: what that frees stays in the cache",
        "`empty_cache()` gives back only what is free when it is called",
        Cost("what reference cycles hold stays reserved")
        if collects
        else Cost("what the `del` frees stays reserved", figure),
        Severity.INFO if collects else None,
        repair=lambda: _repair(facts, cleanup),
        doubts=() if collects else _doubts(facts, cleanup),
        subject=cleanup.name,
        related=(RelatedNode(f"{event} here", cleanup.stmt),),
    )


def _repair(facts: FileFacts, cleanup: IdleCleanup) -> Repair | None:
    from gpulint.fix.nodes import statement

    assert cleanup.emptied is not None
    call = statement(facts.source(cleanup.emptied.value, 200))
    changes = (Remove(cleanup.emptied.node), Insert(cleanup.stmt.line, call))
    last = f"`{cleanup.name}`" if cleanup.what == "collector" else "the `del`"
    return Repair.unless(cleanup.unproven, f"empty the cache after {last}", changes)
