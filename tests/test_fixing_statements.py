from collections.abc import Callable

import libcst as cst
import pytest
from fixing_support import Tree, changed, finding

from gpulint.fix.canvas import RenderError
from gpulint.fix.nodes import assign, call_method, delete, method_chain, no_grad_decorator, no_grad_with
from gpulint.rule import AddImport, Change, Insert, Remove, Replace, Wrap
from gpulint.source.edits import apply_edits

NEWLINES = ["\n", "\r\n"]


def lines(code: str, newline: str) -> str:
    return code.replace("\n", newline)


NO_GRAD = no_grad_with("torch.no_grad")
CHANGES: dict[str, Callable[[list[cst.CSTNode]], list[Change]]] = {
    "remove": lambda nodes: [Remove(node) for node in nodes],
    "insert": lambda nodes: [Insert(node, delete(["q"])) for node in nodes],
    "wrap": lambda nodes: [Wrap(tuple(nodes), NO_GRAD)],
}


@pytest.mark.parametrize("newline", NEWLINES)
@pytest.mark.parametrize(
    ("kind", "text", "codes", "result"),
    [
        ("remove", "a()\n# part\n#####\n# why\nb()\nc()\n", ["b()"], "a()\n# part\n#####\nc()\n"),
        ("remove", "a()\n\nb()\n\nc()\n", ["b()"], "a()\n\nc()\n"),
        ("remove", "a()\n\nb()\n\n", ["b()"], "a()\n\n"),
        ("remove", "if x:\n    a()\n\n    b()\ny\n", ["b()"], "if x:\n    a()\ny\n"),
        ("remove", "if x:\n    a()\n", ["a()"], "if x:\n    pass\n"),
        ("remove", "if x:\n    # why\n    a()\n    # foot\ny\n", ["a()"], "if x:\n    pass\n    # foot\ny\n"),
        ("remove", "if x:\n\ta()\nelse:\n\tb()", ["b()"], "if x:\n\ta()\nelse:\n\tpass"),
        ("remove", "if x:\n    a()\n    b()\n    c()\n", ["a()", "b()", "c()"], "if x:\n    pass\n"),
        ("remove", "if x: a(); b()\n", ["a()", "b()"], "if x: pass\n"),
        ("remove", "if x: a(); b()\n", ["a()"], "if x: b()\n"),
        ("remove", "a(); b(); c()\n", ["a()", "c()"], "b()\n"),
        ("remove", "if x:\n    a(); b()\n", ["a()", "b()"], "if x:\n    pass\n"),
        ("insert", "a\nb\n", ["a"], "a\ndel q\nb\n"),
        ("insert", "if x:\n    a\n    # foot\ny\n", ["a"], "if x:\n    a\n    del q\n    # foot\ny\n"),
        ("insert", "if x:\n    a", ["a"], "if x:\n    a\n    del q"),
        ("insert", "a; b; c\n", ["a"], "a; del q; b; c\n"),
        ("wrap", "a\nb\nc\n", ["b"], "a\nwith torch.no_grad():\n    b\nc\n"),
        (
            "wrap",
            "x = f'''\n{q}\n  r'''\n",
            ["x = f'''\n{q}\n  r'''"],
            "with torch.no_grad():\n    x = f'''\n{q}\n  r'''\n",
        ),
        ("wrap", "if x: a  # why\n", ["a"], "if x:\n    with torch.no_grad():\n        a  # why\n"),
        ("wrap", "if x: a; b\n", ["b"], "if x:\n    a\n    with torch.no_grad():\n        b\n"),
        (
            "wrap",
            "if x:\n\ta\n\tif y:\n\t  b\n",
            ["b"],
            "if x:\n\ta\n\tif y:\n\t  with torch.no_grad():\n\t    b\n",
        ),
    ],
)
def test_changed_statements(kind: str, text: str, codes: list[str], result: str, newline: str) -> None:
    def make(tree: Tree) -> list[Change]:
        return CHANGES[kind]([tree.small(lines(code, newline)) for code in codes])

    assert changed(lines(text, newline), make) == lines(result, newline)


# Remove


def test_a_call_stands_for_its_statement() -> None:
    assert changed("a()\ngc.collect()\n", lambda tree: [Remove(tree.find("gc.collect()"))]) == "a()\n"


def test_removed_decorator() -> None:
    text = "@a\n@b(1)  # why\ndef f(): pass\n"
    assert changed(text, lambda tree: [Remove(tree.find("@b(1)", cst.Decorator))]) == "@a\ndef f(): pass\n"


# Insert


def test_an_anchor_in_an_elif_means_the_whole_if() -> None:
    text = "if a:\n    b\nelif c:\n    d\n"
    assert changed(text, lambda tree: [Insert(tree.find("c"), delete(["q"]))]) == text + "del q\n"


def test_inserted_block_splits_a_line() -> None:
    new = cst.parse_statement("if q:\n    del q\n")
    text = "if x:\n  a; b\n"
    result = "if x:\n  a\n  if q:\n    del q\n  b\n"
    assert changed(text, lambda tree: [Insert(tree.small("a"), new)]) == result
    assert changed("if x: a; b\n", lambda tree: [Insert(tree.small("a"), new)]) == (
        "if x:\n    a\n    if q:\n        del q\n    b\n"
    )


def test_several_insertions_at_one_place_keep_their_order() -> None:
    text = "if x: a\n"
    result = changed(
        text,
        lambda tree: [
            Insert(tree.small("a"), delete(["p"]), after=False),
            Insert(tree.small("a"), delete(["q"])),
            Insert(tree.small("a"), delete(["r"])),
        ],
    )
    assert result == "if x:\n    del p\n    a\n    del q\n    del r\n"


# Wrap


def test_wrapped_together_with_other_changes() -> None:
    text = "for x in y:\n    a(x)\n    b(x)\n    c(x)\nd\n"
    result = changed(
        text,
        lambda tree: [
            Wrap((tree.line("for x in y:"),), NO_GRAD),
            Replace(tree.find("a(x)"), call_method(tree.find("a(x)"), "item")),
            Remove(tree.small("b(x)")),
            Insert(tree.small("c(x)"), delete(["x"])),
            Insert(tree.line("for x in y:"), delete(["y"])),
            Insert(tree.line("for x in y:"), assign("y", "[1]"), after=False),
        ],
    )
    assert result == (
        "y = [1]\nwith torch.no_grad():\n    for x in y:\n        a(x).item()\n        c(x)\n        del x\ndel y\nd\n"
    )


@pytest.mark.parametrize(
    ("make", "waits"),
    [
        (lambda tree: Insert(tree.small("a(x)"), delete(["x"])), True),
        (lambda tree: Insert(tree.small("b(x)"), delete(["x"])), True),
        (lambda tree: Insert(tree.line("for x in y:"), delete(["x"])), False),
        (lambda tree: Replace(tree.find("a(x)"), cst.Name("b")), False),
        (lambda tree: Remove(tree.small("b(x)")), True),
    ],
    ids=["within", "last", "behind", "replaced", "removed"],
)
@pytest.mark.parametrize("rows", [(1, 2), (2, 1)])
def test_lines_of_another_fix_under_a_new_header_wait(
    make: Callable[[Tree], Change], waits: bool, rows: tuple[int, int]
) -> None:
    tree = Tree("for x in y:\n    a(x)\n    b(x)\n")
    changes = (Wrap((tree.line("for x in y:"),), NO_GRAD), make(tree))
    found = [finding(tree.edits([change]), row=row) for change, row in zip(changes, rows, strict=True)]
    _, applied = apply_edits(tree.text, found, unsafe=False)
    assert len(applied) == (1 if waits else 2)


def test_a_block_in_a_wrapped_one_is_as_deep_and_a_last_line_may_go() -> None:
    text = "for x in y:\n    if x: a; b\n    c\n    d\n"
    new = cst.parse_statement("if q:\n    del q\n")
    result = changed(
        text,
        lambda tree: [
            Wrap((tree.line("for x in y:"),), NO_GRAD),
            Insert(tree.small("a"), new),
            Insert(tree.small("c"), delete(["c"])),
            Remove(tree.small("d")),
        ],
    )
    assert result == (
        "with torch.no_grad():\n    for x in y:\n        if x:\n            a\n            if q:\n"
        "                del q\n            b\n        c\n        del c\n"
    )


def test_only_neighbours_can_be_wrapped() -> None:
    tree = Tree("a\nb\nc; d\n")
    for statements in (("a", "c"), ("b", "a"), ("b", "c")):
        with pytest.raises(RenderError, match="wrapped"):
            tree.edits([Wrap(tuple(tree.small(code) for code in statements), NO_GRAD)])
    with pytest.raises(RenderError, match="nothing"):
        tree.edits([Wrap((), NO_GRAD)])


# Replace


@pytest.mark.parametrize("newline", NEWLINES)
@pytest.mark.parametrize(
    ("text", "old", "new", "result"),
    [
        ("# k\n\na  # why\n", "a", "b = 1", "# k\n\nb = 1  # why\n"),
        ("a", "a", "b", "b"),
        ("a; b; c\n", "b", "if y:\n    b\n", "a\nif y:\n    b\nc\n"),
    ],
)
def test_replaced_statements(text: str, old: str, new: str, result: str, newline: str) -> None:
    newline = newline if "\n" in text else "\n"
    replacement = cst.parse_statement(new)

    def make(tree: Tree) -> list[Change]:
        return [Replace(tree.small(old), replacement)]

    found = changed(lines(text, newline), make)
    # A new block brings the step of indentation that it was written with, or the file's own.
    squeezed = [" ".join(line.split()) for line in found.split(newline)]
    assert squeezed == [" ".join(line.split()) for line in result.split("\n")]
    assert newline == "\n" or "\n" not in found.replace("\r\n", "")


def test_replaced_block_keeps_its_comments() -> None:
    text = "x\n\n# k\nfor a in b:\n    c  # why\n\n    d\ny\n"

    def make(tree: Tree) -> list[Change]:
        loop = tree.line("for a in b:")
        return [Replace(loop, loop.with_changes(iter=cst.Name("q")))]

    assert changed(text, make) == text.replace("in b", "in q")


# AddImport


@pytest.mark.parametrize("newline", NEWLINES)
@pytest.mark.parametrize(
    ("text", "wanted", "result"),
    [
        ("import torch\nx\n", AddImport("torch"), None),
        ("import torch.nn\nx\n", AddImport("torch"), None),
        ("import torch as th\nx\n", AddImport("torch"), "import torch as th\nimport torch\nx\n"),
        ("import torch as th\nx\n", AddImport("torch", alias="th"), None),
        ("from torch import nn\nx\n", AddImport("torch"), "from torch import nn\nimport torch\nx\n"),
        ("from torch import nn as n\n", AddImport("torch", "nn", "n"), None),
        ("from .torch import nn\n", AddImport("torch", "nn"), "from .torch import nn\nfrom torch import nn\n"),
        ("from torch import (\n  nn,\n)\nx\n", AddImport("torch", "cuda", "c"),
         "from torch import (\n  nn,\n)\nfrom torch import cuda as c\nx\n"),
        ("try:\n    import torch\nexcept E:\n    pass\n", AddImport("torch"), None),
        ("'''doc'''\nx\n", AddImport("torch"), "'''doc'''\n\nimport torch\nx\n"),
        ("'''doc'''\n\nfrom __future__ import annotations\n\nx\n", AddImport("torch"),
         "'''doc'''\n\nfrom __future__ import annotations\nimport torch\n\nx\n"),
        ("#!/usr/bin/python\n# -*- coding: utf-8 -*-\nx\n", AddImport("torch"),
         "#!/usr/bin/python\n# -*- coding: utf-8 -*-\nimport torch\n\nx\n"),
        ("import os", AddImport("torch"), "import os\nimport torch"),
        ("def f():\n    import torch\n", AddImport("torch"), "import torch\n\ndef f():\n    import torch\n"),
    ],
)  # fmt: skip
def test_added_import(text: str, wanted: AddImport, result: str | None, newline: str) -> None:
    newline = newline if "\n" in text else "\n"
    source = lines(text, newline)
    assert changed(source, lambda tree: [wanted]) == (source if result is None else lines(result, newline))


# -- nodes that fixes are made of ----------------------------------------------------------------------------


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
