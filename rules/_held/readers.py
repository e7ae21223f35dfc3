"""What those who read what is kept ask of it: whether a number would do."""

from __future__ import annotations

import ast
from typing import Any, Final

from gpulint.analysis.asked import Asked
from gpulint.analysis.evaluate.frames import Frame
from gpulint.analysis.queries.stores.stores import Owner, Store
from gpulint.analysis.syntax.nodes import key_of, last_name

_SINKS: Final = frozenset(
    "len print float int round str format repr add_scalar add_scalars log set_postfix info debug warning error write".split()
)
_NUMERIC: Final = ("math.", "numpy.", "statistics.")
_LIKE_ARGUMENTS: Final = frozenset({"sum", "min", "max", "abs"})
_MADE_OF: Final = (ast.BinOp, ast.UnaryOp, ast.IfExp, ast.BoolOp, ast.List, ast.Tuple, ast.Dict, ast.keyword)
_FILLING: Final = frozenset({"append", "extend", "clear", "insert"})


def takes_numbers(asked: Asked, store: Store, owner: Owner | None) -> bool:
    """Whether every use of a local name of the function takes a number as well as a tensor."""
    name = _local(store, owner)
    return name is not None and _all_take(asked, name, store, set())


def _local(store: Store, owner: Owner | None) -> str | None:
    """The name of what is kept in, where it is one of the function itself, which no other function reads."""
    function = store.frame.function
    if owner is None or owner.kind not in ("local", "outer") or store.frame.caller is not None:
        return None
    if owner.key in function.flow.elsewhere:
        return None  # declared global
    inside = function.file.within(None if function.is_module else function)
    is_read = any(owner.key in one.words for one in inside)
    return owner.key if not is_read and owner.key in function.flow.definitions else None


def _all_take(asked: Asked, name: str, store: Store, seen: set[str]) -> bool:
    if name in seen:
        return True
    seen.add(name)
    flow = store.frame.flow
    if any(one.kind == "parameter" for one in flow.definitions.get(name, ())):
        return False
    own = flow.statement_of(store.at)
    uses = [one for one in flow.uses.get(name, ()) if isinstance(one, ast.Name)]
    return all(flow.statement_of(one) is own or _takes(asked, one, store, seen) for one in uses)


def _takes(asked: Asked, node: Any, store: Store, seen: set[str]) -> bool:
    """Whether a number would do where something stands."""
    frame, flow = store.frame, store.frame.flow
    above = flow.parents.get(node)
    while True:
        if isinstance(above, (ast.Compare, ast.FormattedValue, ast.Expr, ast.If, ast.While, ast.Delete)):
            return True
        if isinstance(above, ast.BinOp) and isinstance(above.op, ast.Mod) and node is above.right:
            return asked.evaluator.value_of(above.left, frame).kind == "text"
        if isinstance(above, ast.AugAssign):
            return node is above.target
        if isinstance(above, ast.Attribute):
            call = flow.parents.get(above)
            return above.attr in _FILLING and isinstance(call, ast.Call) and call.func is above
        if isinstance(above, ast.Subscript):
            if node is not above.value:
                return False
            if not isinstance(above.ctx, ast.Load):
                return True
        elif isinstance(above, ast.Call):
            if _takes_numbers(asked, above, frame):
                return True
            if key_of(above.func) not in _LIKE_ARGUMENTS or above.keywords:
                return False
        elif isinstance(above, ast.Assign):
            names = [one.id for one in above.targets if isinstance(one, ast.Name)]
            computed = not isinstance(node, (ast.Name, ast.Subscript)) and len(names) == len(above.targets)
            return computed and all(_all_take(asked, one, store, seen) for one in names)
        elif not isinstance(above, _MADE_OF):
            return False
        node, above = above, flow.parents.get(above)


def _takes_numbers(asked: Asked, call: ast.Call, frame: Frame) -> bool:
    full = asked.evaluator.value_of(call.func, frame).full_name
    return not full.startswith("torch") and (full.startswith(_NUMERIC) or last_name(call.func) in _SINKS)
