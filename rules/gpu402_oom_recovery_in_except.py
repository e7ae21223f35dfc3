from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from gpulint.analysis.asked import Asked
from gpulint.analysis.evaluate.consumers import consumers_of_definition
from gpulint.analysis.evaluate.frames import Frame
from gpulint.analysis.project.file import Function
from gpulint.analysis.queries.calls import done_within
from gpulint.analysis.queries.reached import reached
from gpulint.analysis.syntax.nodes import arguments, dotted, last_name
from gpulint.answers import Answer, Question, left_open, proven, until_refuted
from gpulint.claims import Claim
from gpulint.rule import Claimed, Cost, Insert, Repair, Replace, Report, Rule

_MEMORY: Final = "out of memory"  # an event of the table, and what torch says
_CLEANS: Final = {"empties cache": "empties the cache", "collects": "collects garbage"}
_FLAG: Final = "out_of_memory"
_LEAVING: Final = (ast.Raise, ast.Return, ast.Continue, ast.Break)


class OomRecoveryInExcept(Rule):
    """
    ## What it does
    Finds recovery from CUDA running out of memory (`empty_cache()`, a retry, a smaller batch) inside the `except` block.

    Told with a doubt where the handler only cleans up: then nothing may need the memory before the block ends. Keeping the
    exception keeps its traceback, and is told as well.

    ## Why is this bad
    Inside the handler the exception's traceback holds the frames that failed, and they hold their tensors: the failed
    step's activations cannot be freed there, whatever is called, with or without `as e`. They go when the block ends.

    ## What it costs
    A step that fails after its forward: 1.07 GiB still allocated inside the `except`, after `empty_cache()`; 175 MiB, which
    is the model, once the block has ended (4-layer language model, NVIDIA H200, torch 2.11).

    ## Example
    ```python
    import torch

    def step(model: torch.nn.Module, batch, optimizer):
        try:
            loss = model(batch).mean()
            loss.backward()
        except torch.cuda.OutOfMemoryError:
            torch.cuda.empty_cache()
            step(model, batch[: len(batch) // 2], optimizer)
    ```

    ## Use instead
    ```python
    import torch

    def step(model: torch.nn.Module, batch, optimizer):
        out_of_memory = False
        try:
            loss = model(batch).mean()
            loss.backward()
        except torch.cuda.OutOfMemoryError:
            out_of_memory = True
        if out_of_memory:
            torch.cuda.empty_cache()
            step(model, batch[: len(batch) // 2], optimizer)
    ```

    ## Fix safety
    The fix moves the handler's statements behind a flag after the `try`. It is unsafe: code between the two may count
    on the handler having run, and it is only offered where the handler does not use the exception and does not leave
    by `return`, `break`, `continue` or `raise`.
    """

    code = "GPU402"
    name = "oom-recovery-in-except"
    runtime_claim = Claim("handler")
    doubts = True
    triggers = (
        (b"except",),
        (b"torch",),
        (b"OutOfMemory", b"out of memory", b"out_of_memory", b"OOM", b"is_oom", b"empty_cache"),
    )

    def claims(self, asked: Asked, options: Mapping[str, Any]) -> Iterator[Claimed]:
        for function in (one for one in asked.file.parts if "except" in one.words):
            frame = asked.root(function)
            for node in (one for one in frame.flow.of_kind(ast.ExceptHandler) if one.type is not None):
                handler = _Handler(asked, node, frame)
                found = handler.recoveries()
                if found:
                    at = frame.flow.statement_of(found[0][0])
                    answers = until_refuted(handler.answers([what for _, what in found]))
                    yield Claimed(at, handler.caught, answers, partial(_report, handler, at, found[0][1]))


@dataclass(frozen=True, slots=True)
class _Handler:
    """A handler of a `try`, in the frame of its function."""

    asked: Asked
    node: Any
    frame: Frame

    @property
    def caught(self) -> str:
        kinds = self.node.type.elts if isinstance(self.node.type, ast.Tuple) else [self.node.type]
        return next((spelled for one in kinds if (spelled := dotted(one))), "")

    def recoveries(self) -> list[tuple[Any, str]]:
        """What it does to recover, in the order of the text; nothing where it is not of a GPU that is full, or where what is tried has
        no frames: an operator of torch that fails has made nothing yet."""
        flow = self.frame.flow
        found = [(one, self.does(one)) for one in flow.every_call if self.gets_to(one)]
        kept = [one.node for one in self.uses() if one.role == "stored" and one.frame is self.frame]
        found += [(one, "keeps the exception") for one in kept if self.gets_to(one)]
        tests = [one.test for one in ast.walk(self.node) if isinstance(one, ast.If)]
        is_full = any(_asks(self.asked, one, self.frame) for one in (self.node.type, *tests))
        own = (what for one, what in found if flow.blocks[flow.statement_of(one)].owner is self.node)
        # nothing else that a `RuntimeError` may be is mended by an empty cache
        is_full = is_full or (self.caught == "RuntimeError" and _CLEANS["empties cache"] in own)
        place = ((one, what) for one, what in found if what and is_full and self.tried())
        return sorted(place, key=lambda one: (one[0].lineno, one[0].col_offset))

    def gets_to(self, node: Any) -> bool:
        """Whether it gets to a node where the GPU is full, and does not raise behind it in any case."""
        flow = self.frame.flow
        around = list(flow.around(node))
        own = next((at for at, block in enumerate(around) if block.owner is self.node), -1)
        for test, wanted in flow.conditions(node):
            is_own = any(block.owner is self.node for block in flow.around(test))
            if is_own and _holds(self.asked, test, self.frame) is (not wanted):
                return False
        last = (block.statements[-1] for block in around[: own + 1])
        leaves = next((one for one in last if isinstance(one, _LEAVING)), None)
        return own >= 0 and not isinstance(leaves, ast.Raise)

    def does(self, call: ast.Call) -> str:
        """What a call does to recover; empty where it does nothing of the kind."""
        evaluator, frame = self.asked.evaluator, self.frame
        value, target = evaluator.value_of(call, frame), evaluator.value_of(call.func, frame).ref
        runs = value.kind == "tensor" and (call, frame) in value.origins
        given = [evaluator.value_of(one, frame) for one in arguments(call)]
        anywhere = ("number",) if runs else ("number", "tensor")  # a function may move what it is given
        if any(one.const == "cpu" or (one.device == "host" and one.kind not in anywhere) for one in given):
            return ""  # on the host it asks nothing of the GPU
        if runs:
            return "runs the model again"
        if target is frame.function or any(one.node is call for one in self.asked.steps.of(frame.function)):
            return "tries the step again"
        tells = bool(given) and all(one.kind in ("number", "text") for one in given)
        for one in self.tried() if not tells else ():
            if dotted(one.func) == (dotted(call.func) or "") and {*self.tried()} <= {*ast.walk(one)}:
                return "tries the step again"  # nothing else is tried
        for event, what in _CLEANS.items():
            helps = isinstance(target, Function) and done_within(evaluator, target, {event}, depth=0)
            if helps or evaluator.does(call, frame) == event:
                return what
        return ""

    def tried(self) -> list[ast.Call]:
        """The calls of what is tried that the table does not know."""
        flow, tried = self.frame.flow, self.frame.flow.parents[self.node]
        body = flow.blocks[tried.body[0]]
        calls = (call for call in flow.every_call if body in flow.around(call))
        return [one for one in calls if not self.is_known(one)]

    def is_known(self, call: ast.Call) -> bool:
        evaluator, name = self.asked.evaluator, last_name(call.func)
        base = evaluator.value_of(getattr(call.func, "value", call.func), self.frame).kind
        known = any(evaluator.table.own(kind, name) for kind in ("tensor", "list", "dict"))
        return known or base in ("number", "text") or evaluator.row_of(call, self.frame) is not None

    def uses(self) -> list[Any]:
        """What becomes of the exception."""
        bound = self.frame.flow.definitions.get(self.node.name or "", ())
        own = next((one for one in bound if one.node is self.node), None)
        if own is None:
            return []
        return consumers_of_definition(self.asked.evaluator, own, self.frame, "object")

    def answers(self, found: list[str]) -> Iterator[Answer]:
        clause = "the traceback holds the frames that failed until the block ends"
        yield proven(Question.OUTLIVES, clause, self.node)
        for use in self.uses():
            func = getattr(use.node, "func", None)
            if use.role == "given" and isinstance(func, ast.Name) and not self.is_known(use.node):
                yield left_open(Question.OUTLIVES, f"`{func.id}` may let go of the frames of the exception")
        if set(found) <= {*_CLEANS.values()}:
            yield left_open(Question.SIZE, "nothing is tried again before the block ends")
        yield from reached(self.asked.evaluator, self.frame.function)


def _asks(asked: Asked, node: Any, frame: Frame, depth: int = 2) -> bool:
    """Whether a type is that of a GPU which is full, or a condition asks for it: by the type, by what torch says, or by a function that
    does so."""
    for value in (asked.evaluator.value_of(one, frame) for one in ast.walk(node)):
        row = asked.evaluator.table.function(value.ref)
        says = isinstance(value.const, str) and _MEMORY in value.const.lower().replace("_", " ")
        if says or (row is not None and row.does == _MEMORY):
            return True
        inner = asked.root(value.ref) if isinstance(value.ref, Function) and depth else None
        if inner is not None and _asks(asked, value.ref.node, inner, depth - 1):
            return True
    return False


def _holds(asked: Asked, test: Any, frame: Frame) -> bool | None:
    """Whether a condition holds where the GPU is full; None where it asks for something else."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = _holds(asked, test.operand, frame)
        return None if inner is None else not inner
    if isinstance(test, ast.BoolOp):
        found = [_holds(asked, one, frame) for one in test.values]
        decides = isinstance(test.op, ast.Or)
        return decides if decides in found else None if None in found else not decides
    denies = isinstance(test, ast.Compare) and isinstance(test.ops[0], (ast.NotIn, ast.NotEq, ast.IsNot))
    return not denies if _asks(asked, test, frame) else None


def _report(handler: _Handler, at: Any, does: str) -> Report:
    return Report(
        at,
        f"the handler {does} while the exception's traceback still holds the failed step's tensors",
        "inside the `except` block the frames that raised are alive; their tensors are freed when the block ends",
        Cost(
            "all that the failed step had allocated, until the block ends",
            "1.07 GiB allocated inside the block, 175 MiB after it, for a 4-layer language model; H200, torch 2.11",
        ),
        repair=lambda: _repair(handler),
    )


def _repair(handler: _Handler) -> Repair | None:
    """Move the handler's body behind the `try` under a flag; None where control or the exception stands in the way."""
    import libcst as cst

    from gpulint.fix.nodes import statement

    tried = handler.frame.flow.parents[handler.node]
    node: Any = handler.asked.node(tried)
    within = list(ast.walk(handler.node))
    used = {one.id for one in within if isinstance(one, ast.Name)} & {handler.node.name, _FLAG}
    leaves = any(isinstance(one, _LEAVING) for one in within)
    stays = tried.handlers[1:] or tried.finalbody or tried.orelse or leaves
    old = node.handlers[0]
    if used or stays or not isinstance(old.body, cst.IndentedBlock):
        return None
    raised = cst.IndentedBlock([statement(f"{_FLAG} = True")], header=old.body.header, indent=old.body.indent)
    recovery = cst.If(cst.Name(_FLAG), cst.IndentedBlock(old.body.body, indent=old.body.indent))
    flagged = node.with_changes(handlers=[old.with_changes(body=raised)], leading_lines=[])
    before = Insert(node, statement(f"{_FLAG} = False"), after=False)
    changes = (before, Replace(node, flagged), Insert(node, recovery))
    why = "code between the handler and the recovery may count on its having run"
    return Repair("unsafe", "recover after the handler, by a flag", changes, why)
