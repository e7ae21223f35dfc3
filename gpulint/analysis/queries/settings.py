"""Where a program sets the allocator's environment variables, or which devices it sees, and to what; and what has started by then."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.evaluate.frames import Frame, settled
from gpulint.analysis.project.file import File
from gpulint.analysis.queries.before import first_before
from gpulint.analysis.syntax.nodes import called_on, last_name

ALLOCATOR: Final = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF")
VISIBLE: Final = "CUDA_VISIBLE_DEVICES"
_SETTERS: Final = frozenset({"setdefault", "putenv", "setenv", "__setitem__"})
_ON_GPU: Final = ("tensor", "parameter", "module", "unknown")

Started = Literal["cuda", "driver"]


@dataclass(frozen=True, slots=True)
class Setting:
    """A variable that is given a value. `text` has `{}` for what only a run can tell; `spelled` is what holds it as it is. `own` says that
    this process's own environment is meant."""

    variable: str
    value: Any
    frame: Frame
    own: bool
    text: str
    spelled: Any

    @property
    def statement(self) -> Any:
        """The statement that sets it."""
        return self.frame.flow.statement_of(self.value)

    @property
    def read_by(self) -> Started:
        """What has read it once it has started."""
        return "driver" if self.variable == VISIBLE else "cuda"


def settings(evaluator: Evaluator, file: File) -> tuple[Setting, ...]:
    """Every place of a file where one of the variables is set, in whatever environment."""
    return settled(evaluator, evaluator.root(file.body), settings, lambda: tuple(_settings(evaluator, file)))  # type: ignore[no-any-return]


def _settings(evaluator: Evaluator, file: File) -> Iterator[Setting]:
    for function in file.parts:
        frame = evaluator.root(function)
        for key, value, environment in _given(evaluator, frame):
            name = key if isinstance(key, str) else evaluator.value_of(key, frame).const
            if name == VISIBLE or name in ALLOCATOR:
                target = evaluator.value_of(environment, frame).ref if environment is not None else None
                text, spelled = text_of(evaluator, value, frame)
                yield Setting(name, value, frame, target in ("os.environ", "os.putenv"), text, spelled)


def _given(evaluator: Evaluator, frame: Frame) -> Iterator[tuple[Any, Any, Any]]:
    """What is given to what by name: the key, or its text, the value, and what is changed by it."""
    flow = frame.flow
    for store in flow.stores:
        if isinstance(store.statement, ast.Assign) and not store.path:
            yield store.target.slice, store.value, store.target.value
    for call in flow.every_call:
        of = called_on(call)
        if last_name(call.func) in _SETTERS and len(call.args) == 2:
            yield call.args[0], call.args[1], call.func if last_name(call.func) == "putenv" else of
        for named in call.keywords:
            yield named.arg, named.value, of if last_name(call.func) == "update" else None
        row = evaluator.row_of(call, frame) if call.args else None
        if row is not None and row.does == "sets allocator":
            yield ALLOCATOR[0], call.args[0], None
    for node in flow.of_kind(ast.Dict):
        above: Any = flow.parents[node]
        changed = called_on(above, "update")
        for key, value in zip(node.keys, node.values, strict=True):
            yield key, value, above.target if isinstance(above, ast.AugAssign) else changed


def text_of(evaluator: Evaluator, node: Any, frame: Frame) -> tuple[str, Any]:
    """The text that an expression gives, `{}` for what only a run can tell, and what spells it where one constant does."""
    node = frame.flow.unaliased(node)
    known = evaluator.value_of(node, frame).const
    if isinstance(known, str):
        return known, node if isinstance(node, ast.Constant) else None
    separator, parts = "", list[Any]()
    if isinstance(node, ast.JoinedStr):
        parts = node.values
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        parts = [node.left, node.right]
    elif (on := called_on(node, "join")) is not None and node.args:
        separator = text_of(evaluator, on, frame)[0]
        parts = getattr(node.args[0], "elts", [])
    return separator.join(text_of(evaluator, one, frame)[0] for one in parts) if parts else "{}", None


def started_before(evaluator: Evaluator, node: Any, frame: Frame, what: Started) -> ast.Call | None:
    """The call that has certainly started CUDA, or its driver by whatever means, when a node runs. None where none is seen."""

    def starts(call: ast.Call, where: Frame) -> bool:
        row, made = evaluator.row_of(call, where), evaluator.value_of(call, where)
        on_gpu = made.device == "cuda" and made.kind in _ON_GPU
        return row.starts in ("context", "cuda", what) if row is not None and row.starts else on_gpu

    found = first_before(evaluator, node, frame, starts)
    return found[0] if found is not None else None
