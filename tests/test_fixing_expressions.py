import ast
from collections.abc import Callable

import libcst as cst
import pytest
from fixing_support import Tree, changed

from gpulint.fix.canvas import RenderError
from gpulint.fix.nodes import call_method
from gpulint.rule import Change, Remove, Replace


def bare(code: str) -> cst.BaseExpression:
    """An expression without parentheses, those included that do not parse so when they stand alone."""
    if code[0] == "(":
        return cst.parse_expression(code)
    return cst.parse_expression(f"({code})").with_changes(lpar=(), rpar=())


@pytest.mark.parametrize(
    ("text", "old", "new", "result"),
    [
        ("old.attr", "old", "await a", "(await a).attr"),
        ("f'{old:>3}'", "old", "a + b", "f'{a + b:>3}'"),
        ("x = a if(old)else b", "old", "c", "x = a if c else b"),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_replaced_expression(text: str, old: str, new: str, result: str, newline: str) -> None:
    source = text.replace("\n", newline) + newline
    replacement = bare(new)
    assert changed(source, lambda tree: [Replace(tree.find(old), replacement)]) == (
        result.replace("\n", newline) + newline
    )


EXPRESSIONS = [
    "n", "1", "1.5", "'s'", "a.b", "f(x)", "f(x)[0]", "(a + b)", "a + b", "a * b", "a @ b", "a ** b", "-a", "not a",
    "a < b", "a in b", "a and b", "a or b", "a if b else c", "lambda: a", "a | b", "a & b", "a ^ b", "a << b", "[a]",
    "{a}", "{a: b}", "(a, b)", "(x for x in y)", "'s' 't'", "f'{a}'", "...", "~a", "a, b",
]  # fmt: skip
CONTEXTS = [
    "HOLE", "x = HOLE", "x += HOLE", "f(HOLE)", "f(k=HOLE)", "f(*HOLE)", "f(**HOLE)", "HOLE.a", "HOLE()", "HOLE[0]",
    "x[HOLE]", "x[HOLE:]", "x[0, HOLE]", "-HOLE", "~HOLE", "not HOLE", "HOLE ** x", "x ** HOLE", "HOLE * x", "x * HOLE",
    "HOLE + x", "x - HOLE", "x @ HOLE", "x | HOLE", "x ^ HOLE", "x & HOLE", "x << HOLE", "x < HOLE < y", "HOLE in x",
    "x and HOLE", "HOLE or x", "HOLE if x else y", "x if HOLE else y", "x if y else HOLE", "lambda: HOLE", "[HOLE]",
    "[*HOLE]", "{HOLE: x}", "{x: HOLE}", "{**HOLE}", "(x, HOLE)", "(HOLE for x in y)", "[x for x in HOLE]",
    "[x for x in y if HOLE]", "{HOLE: 1 for x in y}", "(z := HOLE)", "f'{HOLE}'", "return HOLE", "assert HOLE, x",
    "raise HOLE from x", "raise x from HOLE", "yield HOLE", "await HOLE", "x = yield from HOLE",
    "for x in HOLE: pass", "while HOLE: pass", "if HOLE: pass", "with HOLE: pass", "with HOLE as x: pass",
    "def g(x=HOLE): pass", "x: HOLE = 1", "x: int = HOLE", "class C(HOLE): pass", "@HOLE\ndef g(): pass",
]  # fmt: skip


class _Fill(ast.NodeTransformer):
    def __init__(self, value: ast.expr) -> None:
        self.value = value

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.value if node.id == "HOLE" else node


@pytest.mark.parametrize("context", CONTEXTS)
def test_parentheses_keep_the_meaning(context: str) -> None:
    """What Python reads after the change is the old program with the new expression in the hole, nothing else."""
    shell = "async def run():\n    " + context.replace("\n", "\n    ") + "\n"
    for code in EXPRESSIONS:
        if "f'" in context and "'" in code:
            continue  # quotes in quotes
        if context == "with HOLE: pass" and isinstance(cst.parse_expression(code), cst.Tuple):
            continue  # read as two managers, and a tuple is none
        replacement = cst.parse_expression(code)
        tree = Tree(shell)
        hole = tree.find("HOLE")

        def make(tree: Tree, replacement: cst.BaseExpression = replacement) -> list[Replace]:
            return [Replace(tree.find("HOLE"), replacement)]

        result = changed(shell, make)
        value = ast.parse(code, mode="eval").body
        expected = _Fill(value).visit(ast.parse(shell))
        assert _meaning(ast.parse(result)) == _meaning(expected), (context, code, result, hole)


class _Flatten(ast.NodeTransformer):
    """`(a or b) or c` is `a or b or c`."""

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.BoolOp:
        self.generic_visit(node)
        first = node.values[0]
        if isinstance(first, ast.BoolOp) and type(first.op) is type(node.op):
            node.values[:1] = first.values
        return node


def _meaning(tree: ast.AST) -> str:
    tree = _Flatten().visit(tree)
    return ast.dump(tree).replace("Store()", "Load()")


def test_a_call_over_lines_without_parentheses_gets_them() -> None:
    text = "f(a +\n  b)\n"
    bare = cst.ensure_type(cst.parse_expression("(a +\n  b)"), cst.BinaryOperation).with_changes(
        lpar=(), rpar=()
    )
    assert changed("x = old\n", lambda tree: [Replace(tree.find("old"), bare)]) == "x = (a +\n  b)\n"
    assert changed(
        text, lambda tree: [Replace(tree.find("a +\n  b"), call_method(tree.find("a +\n  b"), "item"))]
    ) == ("f((a +\n  b).item())\n")


def test_replaced_argument_and_with_item() -> None:
    text = "f(a,  b=1 , c=2)\nwith g(x) as y, h(z):\n    pass\n"
    result = changed(
        text,
        lambda tree: [
            Replace(tree.arg("b=1"), cst.Arg(cst.Name("False"), keyword=cst.Name("b"), equal=cst.AssignEqual(
                cst.SimpleWhitespace(""), cst.SimpleWhitespace("")))),
            Replace(tree.find("g(x) as y", cst.WithItem), cst.WithItem(cst.Name("q"))),
        ],
    )  # fmt: skip
    assert result == "f(a,  b=False , c=2)\nwith q, h(z):\n    pass\n"


@pytest.mark.parametrize(
    ("text", "gone", "result"),
    [
        ("f(a, b, c)", ["b"], "f(a, c)"),
        ("f(\n    a,\n    r=True,  # why\n    b=1,\n)", ["r=True"], "f(\n    a,\n    b=1,\n)"),
        ("f(\n    a,  # one\n    r=True  # why\n)", ["r=True"], "f(\n    a  # one\n)"),
        ("f(\n    r=True,  # why\n)", ["r=True"], "f(\n)"),
        ("f(a,  # one\n  r=True)", ["r=True"], "f(a  # one\n  )"),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_removed_arguments(text: str, gone: list[str], result: str, newline: str) -> None:
    def lines(code: str) -> str:
        return code.replace("\n", newline)

    found = changed(lines(text), lambda tree: [Remove(tree.arg(lines(code))) for code in gone])
    assert found == lines(result)


@pytest.mark.parametrize(
    ("text", "change", "error", "said"),
    [
        # quotes that an f-string cannot hold
        ("x = f'{old}'\n", lambda tree: replaced(tree, "old", "'a'"), RenderError, "f-string"),
        ("x = f'{old}'\n", lambda tree: replaced(tree, "old", "f['a']"), RenderError, "f-string"),
        # an argument of a class is none of a call
        ("class A(B, metaclass=C): pass\n", lambda tree: [Remove(tree.arg("B"))], RenderError, "ClassDef"),
        ("x = 1\n", lambda tree: [Replace(cst.Name("x"), cst.Name("y"))], ValueError, "does not stand"),
        ("x = f(a)\n", lambda tree: replaced(tree, "a", "b", "f(a)", "c"), RenderError, "same text"),
    ],
)
def test_what_cannot_be_done_is_refused(
    text: str, change: Callable[[Tree], list[Change]], error: type[Exception], said: str
) -> None:
    tree = Tree(text)
    with pytest.raises(error, match=said):
        tree.edits(change(tree))


def replaced(tree: Tree, *codes: str) -> list[Change]:
    """Changes that put each second of these pieces of code in the place of the one before it."""
    pairs = zip(codes[::2], codes[1::2], strict=True)
    return [Replace(tree.find(old), cst.parse_expression(new)) for old, new in pairs]
