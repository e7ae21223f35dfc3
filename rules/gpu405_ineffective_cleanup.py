from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from gpulint.analysis.asked import Asked
from gpulint.analysis.evaluate.frames import Frame, given_for
from gpulint.analysis.evaluate.weights import SMALL, weight
from gpulint.analysis.queries.networks.placed import placed
from gpulint.analysis.queries.reached import reached
from gpulint.analysis.syntax.nodes import last_name
from gpulint.answers import Question, minor, proven
from gpulint.claims import Claim
from gpulint.rule import Claimed, Cost, Insert, RelatedNode, Remove, Repair, Report, Rule

_HOLDERS: Final = {"loop": "what the loop runs over", "parameter": "the caller's own name"}
_OF_HELD: Final = Cost(
    "all that it was meant to free",
    "675 MiB allocated after such a helper, 175 MiB where the last name goes, for a 4-layer language model; H200, torch 2.11",
)
_OF_DELETED: Final = Cost(
    "what the `del` frees stays reserved",
    "6,760 MiB reserved, 6,260 MiB in the other order, for a 4-layer language model; H200, torch 2.11",
)


class IneffectiveCleanup(Rule):
    """
    ## What it does
    Finds clean-ups that free nothing: `del` of a parameter, or of a loop's variable, in a function that only cleans up; and `empty_cache()`
    just before the `del` that it should follow.
    It is a warning where what is deleted is known to be a large network, and
    a note else.

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
    Emptying the cache after the `del` instead of before it changes no result: safe. A helper has no fix: let the caller
    say `del`, and the helper empty the cache after it.
    """

    code = "GPU405"
    name = "ineffective-cleanup"
    runtime_claim = Claim("useless")
    triggers = ((b"empty_cache",),)

    def claims(self, asked: Asked, options: Mapping[str, Any]) -> Iterator[Claimed]:
        for function in (one for one in asked.file.functions if "empty_cache" in one.words):
            if _only_cleans(asked, asked.root(function)):
                yield from _held(asked, asked.root(function))
        for call, frame in asked.calls("torch.cuda.empty_cache"):
            yield from _early(asked, frame.flow.parents[call], frame)


def _held(asked: Asked, frame: Frame) -> Iterator[Claimed]:
    """The names that a function deletes: those of loops, and of parameters for which all callers that are seen have a name."""
    for statement in (one for one in frame.flow.blocks if isinstance(one, ast.Delete)):
        for name in (one for one in statement.targets if isinstance(one, ast.Name)):
            kinds = {one.kind for one in frame.flow.reaching(name)}
            holder = next((holder for kind, holder in _HOLDERS.items() if kinds == {kind}), "")
            sites = asked.evaluator.callers(frame.function)
            given = [given_for(frame.function, name.id, site.call) for site in sites]
            if holder and all(isinstance(one, (ast.Name, ast.Attribute, type(None))) for one in given):
                report = Report(
                    statement,
                    f"`del {name.id}` frees nothing: {holder} still holds it when `{frame.function.name}` empties the cache",
                    "`del` takes away a name; memory is free when the last reference is gone",
                    _OF_HELD,
                )
                yield _claimed(asked, name, report, frame)


def _only_cleans(asked: Asked, frame: Frame) -> bool:
    """Whether a function neither runs anything that needs memory nor gives anything."""
    gives = any(not isinstance(one.value, (ast.Constant, type(None))) for one in frame.flow.returns)
    rows = [asked.evaluator.row_of(one, frame) for one in frame.flow.every_call]
    cheap = (row is not None and row.graph == "none" and row.gives in ("number", "none") for row in rows)
    return not gives and all(cheap)


def _early(asked: Asked, emptied: Any, frame: Frame) -> Iterator[Claimed]:
    """Where a name of what is on a GPU is deleted at once after the cache is emptied; not where that is done again later."""
    statements = frame.flow.blocks[emptied].statements if isinstance(emptied, ast.Expr) else []
    later = statements[statements.index(emptied) + 1 :] if statements else []
    calls = {last_name(each.func) for one in later for each in ast.walk(one) if isinstance(each, ast.Call)}
    again = [one for one in asked.file.functions if one.name in calls and "empty_cache" in one.words]
    for deleted in later[:1] if not again and "empty_cache" not in calls else ():
        targets = deleted.targets if isinstance(deleted, ast.Delete) else []
        names = [one for one in targets if isinstance(one, ast.Name) and _is_on_device(asked, one, frame)]
        for name in names[:1]:
            report = Report(
                emptied,
                f"the cache is emptied before `{name.id}` is deleted: what that frees stays in the cache",
                "`empty_cache()` gives back only what is free when it is called",
                _OF_DELETED,
                repair=partial(_repair, asked, emptied, deleted),
                related=(RelatedNode(f"`{name.id}` is deleted here", deleted),),
            )
            yield _claimed(asked, name, report, frame)


def _is_on_device(asked: Asked, node: ast.expr, frame: Frame) -> bool:
    value = asked.evaluator.value_of(node, frame)
    if value.kind == "tensor":  # moved, it is another
        return value.device == "cuda"
    where = placed(asked.evaluator, node, frame)
    return where.how == "moved" and where.device != "host"


def _claimed(asked: Asked, name: ast.Name, report: Report, frame: Frame) -> Claimed:
    held = proven(Question.OUTLIVES, "something still holds it when the cache is emptied")
    answers = [held, *reached(asked.evaluator, frame.function)]
    if weight(asked.evaluator, asked.evaluator.value_of(name, frame)).least < SMALL:
        answers.append(minor(Question.SIZE, f"how large what `{name.id}` holds is, the code does not say"))
    return Claimed(report.at, name.id, tuple(answers), lambda: report)


def _repair(asked: Asked, emptied: Any, deleted: Any) -> Repair:
    from gpulint.fix.nodes import statement

    call = statement(asked.source(emptied.value, 200))
    changes = (Remove(asked.node(emptied)), Insert(asked.line(deleted), call))
    return Repair("safe", "empty the cache after the `del`", changes)
