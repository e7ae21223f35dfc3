"""Whether the weights of a network want gradients."""

from __future__ import annotations

import ast
from typing import Any

from gpulint.analysis.domain.values import Value
from gpulint.analysis.evaluate.consumers import PARAMETERS, Use, consumers_of_definition
from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.project.file import Class
from gpulint.analysis.queries.effects import uses_since_made
from gpulint.analysis.syntax.nodes import argument


def frozen(evaluator: Evaluator, value: Value) -> Any:
    """The node that takes the weights of a network out of autograd, all of them and for good; None where nothing does."""
    by = None
    for origin in value.origins:
        found = _frozen_since(evaluator, uses_since_made(evaluator, origin), origin) or _by_itself(
            evaluator, value, origin
        )
        if found is None:
            return None
        by = by or found
    return by


def _frozen_since(evaluator: Evaluator, uses: list[Use], origin: Any = None) -> Any:
    by = None
    for use in uses:
        if _is_of_part(evaluator, use, origin):
            continue
        off = switches_weights(evaluator, use)
        if off is False:
            return None  # and another switches them on again
        by = use.node if off and by is None else by
    return by


def _by_itself(evaluator: Evaluator, value: Value, origin: Any) -> Any:
    """What in its constructor freezes a network."""
    node, frame = origin
    if not isinstance(value.ref, Class) or frame is None:
        return None
    init = evaluator.method(value.ref, "__init__")
    if init is None or not init.takes_self:
        return None
    inner = evaluator.enter(init, node, frame, value) if isinstance(node, ast.Call) else None
    inner = inner or evaluator.root(init)
    for one in init.flow.definitions.get(init.self_name, ()):
        if one.kind == "parameter":
            found = _frozen_since(evaluator, consumers_of_definition(evaluator, one, inner, "object"))
            if found is not None:
                return found
    return None


def _is_of_part(evaluator: Evaluator, use: Use, origin: Any) -> bool:
    """Whether a call is one of a part of the network: `net.backbone.requires_grad_(False)`, also under another name."""
    base = (
        use.node.func.value
        if isinstance(use.node, ast.Call) and isinstance(use.node.func, ast.Attribute)
        else None
    )
    if isinstance(base, ast.Call) and isinstance(base.func, ast.Attribute):
        base = base.func.value  # `net.backbone.parameters()`
    if isinstance(base, ast.Name) and use.frame.caller is not None:
        made = evaluator.value_of(base, use.frame).origins
        return bool(made) and origin is not None and origin not in made
    if not isinstance(base, ast.Attribute) or base.attr == "module":
        return False
    row = evaluator.table.own("module.attributes", base.attr)
    return (
        row is not None
        and row.gives == "module"
        and evaluator.value_of(base.value, use.frame).kind == "module"
    )


def switches_weights(evaluator: Evaluator, use: Use) -> bool | None:
    """Whether a use of a network switches off (True) or on (False) that its weights want gradients: `net.requires_grad_(False)`, or
    `p.requires_grad = False` in a loop through its parameters."""
    if use.row is not None and use.row.does in ("freezes", "unfreezes"):
        return use.row.does == "freezes"
    if (use.row is not None and use.row.does == "requires grad") or (
        use.path[:1] == (PARAMETERS,) and use.name == "parameters.requires_grad_"
    ):
        given = argument(use.node, 0, "requires_grad")
        return given is not None and evaluator.value_of(given, use.frame).const is False
    if use.path[:1] != (PARAMETERS,) or use.role != "set" or use.name != "requires_grad":
        return None
    flow = use.frame.flow
    statement = flow.statement_of(use.node)
    whole = flow.blocks[statement].is_rounds
    const = evaluator.value_of(getattr(statement, "value", use.node), use.frame).const
    return (const is False) if whole else None


def of_unseen_package(evaluator: Evaluator, network: Value) -> bool:
    """Whether a network is made by what is not seen, which may have frozen it."""
    made = evaluator.calling.made_by(network)
    calls = [node for node, _ in network.origins if isinstance(node, ast.Call)]
    return bool(calls) and made is None and network.ref is None
