from __future__ import annotations

import libcst as cst
import pytest

from gpulint.fix.nodes import assign, call_method, delete, method_chain, no_grad_decorator, no_grad_with


def code(node: cst.CSTNode) -> str:
    return cst.Module([]).code_for_node(node)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a", "a.item()"),
        ("a.b[0](c)", "a.b[0](c).item()"),
        ("a + b", "(a + b).item()"),
        ("(a + b)", "(a + b).item()"),
        ("-a", "(-a).item()"),
        ("a, b", "(a, b).item()"),
        ("1", "(1).item()"),
        ("lambda: a", "(lambda: a).item()"),
        ("[a]", "[a].item()"),
    ],
)
def test_call_method(old: str, new: str) -> None:
    assert code(call_method(cst.parse_expression(old), "item")) == new


def test_method_chain() -> None:
    assert code(method_chain(cst.Name("x"), ("detach", "cpu"))) == "x.detach().cpu()"
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
