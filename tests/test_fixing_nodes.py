from __future__ import annotations

import libcst as cst
import pytest

from gpulint.fix.nodes import assign, delete, method_chain, no_grad_decorator, no_grad_with


def code(node: cst.CSTNode) -> str:
    return cst.Module([]).code_for_node(node)


def test_a_method_is_called_of_an_expression() -> None:
    with pytest.raises(TypeError, match="Pass is no expression"):
        method_chain(cst.Pass(), ("detach",))


def test_statements() -> None:
    assert code(assign("h, c", "h.detach(), c.detach()")) == "h, c = h.detach(), c.detach()\n"
    assert code(delete(["a", "b"])) == "del a, b\n"
    with pytest.raises(ValueError, match="no statement"):
        delete([])
    with pytest.raises(ValueError, match="no statement"):
        assign("1", "2 +")


@pytest.mark.parametrize("context", ["torch.no_grad", "torch.no_grad()"])
def test_no_grad(context: str) -> None:
    assert code(no_grad_with(context)).startswith("with torch.no_grad():")
    assert code(no_grad_decorator(context)) == "@torch.no_grad()\n"
    with pytest.raises(ValueError, match="no expression"):
        no_grad_with("with")
