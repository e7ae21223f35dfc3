"""Where grad is switched off: by contexts around a statement, decorators, switches, and by the calls that a frame is of."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Any

from gpulint.analysis.domain.values import UNKNOWN, UNSET, Value
from gpulint.analysis.evaluate.frames import Evaluating, Frame
from gpulint.analysis.project.file import Class, Function
from gpulint.analysis.syntax.nodes import called_on, last_name
from gpulint.analysis.syntax.remembering import remembering

_WORDS = frozenset("no_grad inference_mode enable_grad set_grad_enabled".split())

_SWITCHES = ("set_grad_enabled", "enter_context", "__enter__")


class Modes:
    """Looks at guards for an evaluator."""

    def __init__(self, evaluator: Evaluating) -> None:
        self._evaluator = evaluator
        self.answers: dict[Any, Any] = {}

    def guard(self, node: Any, frame: Frame) -> Any:
        """The node that switches grad off where a node is evaluated; None where nothing in sight does."""
        for at, where in ((node, frame), *frame.chain()):
            mode, by = self.own(at, where)
            if mode in ("on", "off"):
                return by if mode == "off" else None
        return None

    def evaluates(self, frame: Frame) -> bool:
        """Whether the calls that a frame is of run a network in eval mode: it was put into it before, or a guard switches grad off."""
        for call, where in frame.chain():
            if (mode := self.own(call, where)[0] or self._put_into(call, where)) is not None:
                return mode in ("off", "eval")
        return False

    def _put_into(self, call: ast.Call, frame: Frame) -> str | None:
        """What puts the network that a call runs into a mode, last before it and whatever way is gone: `eval` or `train`."""
        flow = frame.flow
        at, blocks = flow.order.get(flow.statement_of(call), 0), set(flow.around(call))
        puts = [one for name in ("eval", "train") for one in flow.calls.get(name, ())]
        placed = [(flow.statement_of(one), one) for one in puts]
        always = [(flow.order.get(own, 0), one) for own, one in placed if flow.blocks.get(own) in blocks]
        run = self._evaluator.value_of(call.func, frame) if always else UNKNOWN
        run = run.receiver or run
        for order, one in sorted(always, key=lambda one: -one[0]):
            put = called_on(one) if order < at else None
            if put is not None and self._evaluator.value_of(put, frame).origins & run.origins:
                return str(last_name(one.func)) if not one.args else None
        return None

    def own(self, node: Any, frame: Frame) -> tuple[str | None, Any]:
        """`on` or `off` where the node's own function says it, with what says so."""
        return self._at(frame.flow.statement_of(node), frame)

    @remembering((None, None))
    def _at(self, statement: Any, frame: Frame) -> tuple[str | None, Any]:
        found = self._in_blocks(statement, frame)
        return found if found[0] is not None else self._decorated(frame.function)

    def _in_blocks(self, statement: Any, frame: Frame) -> tuple[str | None, Any]:
        switched = self._switched(statement, frame)
        for block in frame.flow.around(statement):
            owner = block.owner
            if isinstance(owner, (ast.With, ast.AsyncWith)):
                for item in reversed(owner.items):
                    mode = self.of_context(item.context_expr, frame)
                    if mode == "open" and item.optional_vars is not None:
                        continue  # what switches grad has nothing to give a name
                    if mode is not None:
                        return mode, item.context_expr
            if switched is not None and switched[2] is block:
                return switched[0], switched[1]
        return None, None

    def _switched(self, statement: Any, frame: Frame) -> tuple[str, Any, Any] | None:
        """`torch.set_grad_enabled(False)`, or a context that is entered for good, in a statement before this one in a block around it."""
        flow = frame.flow
        calls = (call for name in _SWITCHES for call in flow.calls.get(name, ()))
        found = [(call, context) for call in calls if (context := _entered(call)) is not None]
        if not found:
            return None
        blocks = list(flow.around(statement))
        at = flow.order.get(statement, 0)
        for call, context in sorted(found, key=lambda one: -flow.order.get(flow.statement_of(one[0]), 0)):
            own = flow.statement_of(call)
            before = isinstance(own, (ast.Expr, ast.Assign)) and flow.order[own] < at
            if not before or flow.blocks[own] not in blocks:
                continue
            mode = self.of_context(context, frame)
            if own.value is not call:  # `training or torch.set_grad_enabled(False)`
                mode = self._in_expression(call, own.value, mode, frame)
            if mode is not None:
                return mode, call, flow.blocks[own]
        return None

    def _in_expression(self, call: ast.Call, whole: Any, mode: str | None, frame: Frame) -> str | None:
        """The mode that a call sets where the expression that it is a part of gets as far as that."""
        if isinstance(whole, ast.IfExp):
            holds = self._evaluator.truth(whole.test, frame)
            if holds is None:
                return "open"
            return mode if (whole.body if holds else whole.orelse) is call else None
        return "open" if isinstance(whole, ast.BoolOp) else mode

    def of_context(self, node: Any, frame: Frame) -> str | None:
        """What a context does to grad: `on`, `off`; None where it leaves it, or may."""
        return self.of_value(self._evaluator.value_of(node, frame), node, frame)

    def of_value(self, value: Value, node: Any, frame: Frame) -> str | None:
        """The same of a value; `open` where it is not seen what it does."""
        if value.kind == "object" and isinstance(value.ref, Class):
            return self._of_class(value.ref)
        if value.kind == "unknown":
            return "open" if isinstance(node, (ast.Name, ast.Call)) else None
        if value.kind != "context":
            return None
        if value.ref == "argument":
            return "open" if value.const is UNSET else ("on" if value.const else "off")
        return value.ref if value.ref in ("on", "off") else None

    def _of_class(self, cls: Class) -> str | None:
        """What a context class of the project does when it is entered."""
        method = self._evaluator.method(cls, "__enter__")
        if method is None or not method.words & _WORDS:
            return None
        return next((mode for mode in self._named(method, _WORDS) if mode in ("on", "off")), "open")

    def _named(self, function: Function, names: Iterable[str]) -> Iterator[str | None]:
        """What each call by one of these names in a function does to grad."""
        frame, calls = self._evaluator.root(function), function.flow.calls
        return (self.of_context(call, frame) for name in names for call in calls.get(name, ()))

    def _decorated(self, function: Function) -> tuple[str | None, Any]:
        """What the decorators say, the one that decides before those that are not seen."""
        nodes = function.node.decorator_list if isinstance(function.node, ast.FunctionDef) else ()
        modes = [(self._of_decorator(node, function), node) for node in nodes]
        said = (one for one in modes if one[0] is not None)
        return min(said, key=lambda one: one[0] == "open", default=(None, None))

    def _of_decorator(self, node: Any, function: Function) -> str | None:
        outer = self._evaluator.root(function.parent or function.file.body)
        value = self._evaluator.value_of(node, outer)
        if value.full_name:
            if value.full_name.startswith("."):
                return "open"  # the project's own, and not read
            row = self._evaluator.table.function(value.full_name)
            return row.mode if row is not None and row.mode in ("on", "off") else None
        if isinstance(node, ast.Call):
            made = self._evaluator.value_of(node.func, outer)
            if made.kind == "library" and value.kind != "context":
                return None  # `lru_cache(maxsize=8)`
        mode = self.of_value(value, node, outer)
        return mode if mode is not None else self._of_wrapper(value)

    def _of_wrapper(self, value: Value) -> str | None:
        """A decorator of the project whose wrapper runs the function under a guard."""
        function = value.function
        if function is None or not function.words & _WORDS:
            return None
        inside = (one for one in function.file.functions if one.parent is function)
        off = any("off" in self._named(one, ("no_grad", "inference_mode")) for one in (function, *inside))
        return "off" if off else None


def _entered(call: ast.Call) -> Any:
    """The context that a call enters."""
    if called_on(call, "enter_context") is not None:
        return call.args[0] if call.args else None
    return called_on(call, "__enter__") or call
