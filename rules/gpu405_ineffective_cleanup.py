from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import takewhile
from typing import Any, Final

from gpulint.analysis.asked import Asked
from gpulint.analysis.domain.values import Value
from gpulint.analysis.evaluate.frames import Frame, given_for
from gpulint.analysis.evaluate.weights import SMALL, weight
from gpulint.analysis.project.file import Class, Function
from gpulint.analysis.queries.networks.placed import placed
from gpulint.analysis.queries.reached import reached
from gpulint.analysis.syntax.nodes import arguments
from gpulint.answers import Answer, Question, minor, proven, refuted, until_refuted
from gpulint.claims import Claim
from gpulint.rule import Claimed, Cost, Insert, RelatedNode, Remove, Repair, Report, Rule

_EMPTIES: Final = "empties cache"
_OF_DELETED: Final = Cost(
    "what the `del` frees stays reserved",
    "6,760 MiB reserved, 6,260 MiB in the other order, for a 4-layer language model; H200, torch 2.11",
)


class IneffectiveCleanup(Rule):
    """
    ## What it does
    Finds clean-ups that free nothing: `del` of a parameter, just before `empty_cache()`, in a function that only cleans up
    or whose callers in the file all keep a name for what they hand over; `del` of a loop's variable; `empty_cache()` just
    before the `del`, or the `gc.collect()`, that it should follow, or just before a loop's name, which holds the last round's, is given the
    next: of the collector a note, as nothing shows what it finds.
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
    Emptying the cache after the `del`, or the collector, instead of before it changes no result: safe. Unsafe where what stands between the two
    reads figures of memory, or resets them. A helper has no fix: let the caller
    say `del`, and the helper empty the cache after it.
    """

    code = "GPU405"
    name = "ineffective-cleanup"
    runtime_claim = Claim("useless")
    triggers = ((b"empty_cache",),)

    def claims(self, asked: Asked, options: Mapping[str, Any]) -> Iterator[Claimed]:
        helpers = {one.name for one in asked.file.functions if "empty_cache" in one.words}
        for function in (asked.file.body, *asked.file.functions):
            frame = asked.root(function)
            for statement in frame.flow.order if function.words & {"empty_cache", *helpers} else ():
                if isinstance(statement, ast.Delete):
                    yield from _of_held(asked, statement, frame)
                elif isinstance(statement, ast.Expr) and _does(asked, statement, frame) == _EMPTIES:
                    yield from _of_early(asked, statement, frame)


def _does(asked: Asked, statement: ast.stmt, frame: Frame) -> str:
    """What a statement that is a call does by the table, also where it is of a function that only cleans up and empties the cache."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call):
        return ""
    target = asked.evaluator.value_of(call.func, frame).ref
    if isinstance(target, Function) and not arguments(call) and target is not frame.function:
        return _EMPTIES if _only_cleans(asked, asked.root(target)) else ""
    row = asked.evaluator.row_of(call, frame)
    return row.does if row is not None else ""


def _only_cleans(asked: Asked, frame: Frame) -> bool:
    """Whether a function empties the cache, and neither runs anything else that needs memory nor gives anything."""
    flow = frame.flow
    gives = any(not isinstance(one.value, (ast.Constant, type(None))) for one in flow.returns)
    empties = bool(flow.calls.get("empty_cache")) and not (gives or frame.function.is_module)
    return empties and all(_is_cheap(asked, one, frame) for one in flow.every_call)


def _is_cheap(asked: Asked, call: ast.Call, frame: Frame) -> bool:
    """Whether a call takes no memory of a device, nor gives what does."""
    row = asked.evaluator.row_of(call, frame)
    return row is not None and row.graph == "none" and row.gives in ("number", "none")


def _after(asked: Asked, statement: ast.stmt, frame: Frame) -> Iterator[ast.stmt]:
    """The statements of its block that follow one, up to the first that does not clean up, or say something."""
    statements = frame.flow.blocks[statement].statements
    for one in statements[statements.index(statement) + 1 :]:
        calls = (each for each in ast.walk(one) if isinstance(each, ast.Call))
        cheap = all(_is_cheap(asked, each, frame) for each in calls)
        tidy = cheap and isinstance(one, (ast.Delete, ast.Expr))
        if not tidy and _does(asked, one, frame) != _EMPTIES:
            return
        yield one


# -- what is still held


def _of_held(asked: Asked, statement: ast.Delete, frame: Frame) -> Iterator[Claimed]:
    for name in (one for one in statement.targets if isinstance(one, ast.Name)):
        holder = _holder(asked, name, statement, frame)
        if holder:
            answers = until_refuted(_while_held(asked, name, holder, frame))
            yield Claimed(statement, name.id, answers, partial(_held, statement, name, holder, frame))


def _holder(asked: Asked, name: ast.Name, statement: ast.stmt, frame: Frame) -> str:
    """Who else holds what a name stands for: all callers that are seen, or what a loop runs over; empty where nobody is known to."""
    function, definitions = frame.function, frame.flow.reaching(name)
    if all(one.kind == "loop" for one in definitions) and _only_cleans(asked, frame):
        return "what the loop runs over"
    if name.id == function.self_name or any(one.kind != "parameter" for one in definitions):
        return ""
    given = [given_for(function, name.id, site.call) for site in asked.evaluator.callers(function)]
    named = [isinstance(one, (ast.Name, ast.Attribute)) for one in given if one is not None]
    emptied = named and any(_does(asked, one, frame) == _EMPTIES for one in _after(asked, statement, frame))
    return "the caller's own name" if all(named) and (emptied or _only_cleans(asked, frame)) else ""


def _while_held(asked: Asked, name: ast.Name, holder: str, frame: Frame) -> Iterator[Answer]:
    yield proven(Question.OUTLIVES, f"{holder} still holds it")
    if _place(asked, name, frame) == "host":
        yield refuted(Question.DEVICE, f"`{name.id}` is on the host then")
    yield from _matters(asked, name, asked.evaluator.value_of(name, frame))
    yield from reached(asked.evaluator, frame.function)


def _place(asked: Asked, node: Any, frame: Frame) -> str:
    """The device that something is on, or what an object has from its beginning; `moved` where it is moved to one that the code does not name."""
    value = asked.evaluator.value_of(node, frame)
    if value.kind == "tensor":  # moved, it is another
        return value.device
    made = asked.evaluator.constructed(value, value.ref) if isinstance(value.ref, Class) else None
    if made is not None and value.kind == "object":
        own = (one for key, several in made.flow.definitions.items() if "." in key for one in several)
        places = {_place(asked, one.value, made) for one in own if isinstance(one.value, ast.Call)}
        return next((one for one in ("cuda", "moved") if one in places), "?")
    where = placed(asked.evaluator, node, frame)
    return where.how if where.how == "moved" and where.device == "?" else where.device


def _matters(asked: Asked, name: ast.Name, value: Value) -> Iterator[Answer]:
    if weight(asked.evaluator, value).least < SMALL:
        yield minor(Question.SIZE, f"how large what `{name.id}` holds is, the code does not say")


# -- what goes only afterwards


def _of_early(asked: Asked, emptied: ast.Expr, frame: Frame) -> Iterator[Claimed]:
    found = _released_next(asked, emptied, frame)
    if found is not None:
        answers = until_refuted(_before_release(asked, emptied, *found, frame))
        yield Claimed(emptied, _subject(found[1]), answers, partial(_early, asked, emptied, *found, frame))


def _released_next(asked: Asked, emptied: ast.Expr, frame: Frame) -> tuple[ast.stmt, ast.Name | None] | None:
    """The `del` of a name that follows with nothing but cleaning in between, or what gives a name the next round's in place of the last
    one's, or else the run of the collector, which has not run just before; None where the cache is emptied after that as well."""
    statements = frame.flow.blocks[emptied].statements
    at = statements.index(emptied)
    if any(_does(asked, one, frame) == _EMPTIES for one in statements[at + 1 :]):
        return None
    rest = list(_after(asked, emptied, frame))
    for one in rest:
        for name in one.targets if isinstance(one, ast.Delete) else ():
            if isinstance(name, ast.Name) and _place(asked, name, frame) in ("cuda", "moved"):
                return one, name
    for one in statements[at + 1 + len(rest) :][:1]:
        target = one.targets[0] if isinstance(one, ast.Assign) else None
        if isinstance(one, ast.Assign) and isinstance(target, ast.Name):
            given = frame.flow.definitions.get(target.id, ())
            last = any(each.statement is one and frame.flow.holds_from_before(each) for each in given)
            holds = last and asked.evaluator.value_of(one.value, frame).kind in ("module", "object")
            if holds and _place(asked, one.value, frame) in ("cuda", "moved"):
                return one, target
    return next(((one, None) for one in rest if _does(asked, one, frame) == "collects"), None)


def _before_release(
    asked: Asked, emptied: ast.Expr, released: Any, name: ast.Name | None, frame: Frame
) -> Iterator[Answer]:
    ways = asked.multiplicity.of(emptied.value, frame) if not isinstance(released, ast.Delete) else ()
    if any(one.rate in ("step", "every nth") for one in ways):
        yield refuted(Question.REPEATS, "it is emptied between steps, which costs more than it misses")
    if name is not None:
        yield proven(Question.OUTLIVES, f"`{name.id}` still holds it when the cache is emptied")
        given = released.value if isinstance(released, ast.Assign) else name
        yield from _matters(asked, name, asked.evaluator.value_of(given, frame))
    else:
        yield minor(Question.SIZE, "nothing shows what the collector finds")
    yield from reached(asked.evaluator, frame.function)


def _subject(name: ast.Name | None) -> str:
    return name.id if name is not None else "gc.collect()"


# -- reports


def _held(statement: ast.Delete, name: ast.Name, holder: str, frame: Frame) -> Report:
    return Report(
        statement,
        f"`del {name.id}` frees nothing: {holder} still holds it when `{frame.function.name}` empties the cache",
        "`del` takes away a name; memory is free when the last reference is gone",
        Cost(
            "all that it was meant to free",
            "675 MiB allocated after such a helper, 175 MiB where the last name goes, for a 4-layer language model; H200, torch 2.11",
        ),
    )


def _early(
    asked: Asked, emptied: ast.Expr, released: ast.stmt, name: ast.Name | None, frame: Frame
) -> Report:
    event = f"`{name.id}` is deleted" if name is not None else "`gc.collect()` runs"
    event = f"`{_subject(name)}` is given the next" if isinstance(released, ast.Assign) else event
    mended = partial(_repair, asked, emptied, released, frame)
    return Report(
        emptied,
        f"the cache is emptied before {event}: what that frees stays in the cache",
        "`empty_cache()` gives back only what is free when it is called",
        _OF_DELETED if name is not None else Cost("what reference cycles hold stays reserved"),
        repair=mended if not isinstance(released, ast.Assign) else None,
        related=(RelatedNode(f"{event} here", released),),
    )


def _repair(asked: Asked, emptied: ast.Expr, released: ast.stmt, frame: Frame) -> Repair:
    from gpulint.fix.nodes import statement

    between = takewhile(lambda one: one is not released, _after(asked, emptied, frame))
    calls = [call for one in between for call in ast.walk(one) if isinstance(call, ast.Call)]
    rows = ((asked.evaluator.row_of(one, frame), one) for one in calls)
    sees = [asked.called(one) for row, one in rows if row is not None and row.does == "reads memory"]
    why_unsafe = f"`{sees[0]}` in between sees the cache before it is emptied" if sees else ""
    last = "the `del`" if isinstance(released, ast.Delete) else "`gc.collect()`"
    call = statement(asked.source(emptied.value, 200))
    changes = (Remove(asked.node(emptied)), Insert(asked.line(released), call))
    return Repair.unless(why_unsafe, f"empty the cache after {last}", changes)
