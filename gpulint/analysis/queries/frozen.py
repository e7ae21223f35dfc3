"""Whether the weights of a network want gradients."""

from __future__ import annotations

import ast
from typing import Any

from gpulint.analysis.domain.values import Value
from gpulint.analysis.evaluate.consumers import PARAMETERS, Use
from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.queries.effects import Place, may_be_before, origins_of, uses_since_made
from gpulint.analysis.syntax.nodes import argument


def frozen(evaluator: Evaluator, value: Value, before: Place | None = None) -> Any:
    """The node that takes the weights of a network out of autograd, all of them and for good, anywhere or before a place; None where
    nothing does."""
    by = None
    for origin in origins_of(evaluator, value):
        uses = uses_since_made(evaluator, origin)
        if before is not None:
            uses = [one for one in uses if one.path or one.row]
            uses = [one for one in uses if may_be_before(evaluator, one, before)]
        found = _frozen_since(evaluator, uses, origin)
        if found is None and not isinstance(origin[0], ast.arg):
            return None  # what nobody is seen to give says nothing
        by = by or found
    return by


def _frozen_since(evaluator: Evaluator, uses: list[Use], origin: Any) -> Any:
    by = None
    for use in uses:
        if _is_of_part(evaluator, use, origin):
            continue
        off = switches_weights(evaluator, use)
        if off is False:
            return None  # and another switches them on again
        by = use.node if off and by is None else by
    return by


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
        return bool(made) and origin not in made
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
