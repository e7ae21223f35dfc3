"""Random programs, with all that a fixer may trip over in their layout, and random changes: the result means what the change says, and
nothing else moves."""

import ast
import re
from collections.abc import Callable, Collection

import libcst as cst
import pytest
from fixing_support import Tree, changed, finding
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from gpulint.findings import Finding
from gpulint.fix.fixing import fix_text
from gpulint.fix.nodes import call_method, delete, no_grad_decorator, no_grad_with
from gpulint.rule import AddImport, Change, Decorate, Insert, Remove, Replace, Wrap
from gpulint.source.edits import BOM, apply_edits

LABEL = re.compile(r"\d{3,}")
COMMENTS = ["# why", "# é 𝄞", "#", "# a; b: 'c'", '# """']


class _Writer:
    """Draws the lines of one program. Every statement but `try` has a number of its own in its first line."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.number = 100
        self.unit = draw(st.sampled_from(["    ", "  ", "\t", " ", "        "]))

    def flag(self, chance: int = 3) -> bool:
        return self.draw(st.integers(0, chance)) == 0

    def next(self) -> int:
        self.number += 1
        return self.number

    def comment(self) -> str:
        return self.draw(st.sampled_from(["", " ", "  "])) + self.draw(st.sampled_from(COMMENTS))

    def small(self) -> str:
        number = self.next()
        forms = [
            f"f({number})",
            f"f({number}, k=1, *a)",
            f"x = f({number})",
            f"x = (1,  # in\n# left\n   {number})",
            f"f({number},\n  [1,\n2]  # in\n )",
            f"s{number} = '''a\n  b\n\n# no comment\nc'''",
            f's{number} = f"""{{x}}\n  b\n"""',
            f"s{number} = 'a\\\n  b'",
            f"é{number} = 'ü𝄞\u2028\x85'",
            f"y = {number} + \\\n  1",
            f"(f({number}))",
            f"del d{number}",
        ]
        return self.draw(st.sampled_from(forms))

    def line(self) -> str:
        smalls = [self.small() for _ in range(self.draw(st.sampled_from([1, 1, 1, 2, 3])))]
        code = self.draw(st.sampled_from(["; ", ";", " ;  "])).join(smalls)
        if self.flag(6):
            code += self.draw(st.sampled_from([";", " ; "]))
        return code + (self.comment() if self.flag() else "")

    def header(self) -> str:
        number = self.next()
        forms = [
            f"for i in r({number}):",
            f"if c({number}):",
            f"if (c({number}) and\n    d):",
            f"while c({number}) :",
            f"with w({number}) as v:",
            f"def g{number}(a,\n  b=1):",
            f"async def g{number}():",
            f"class K{number}:",
        ]
        return self.draw(st.sampled_from(forms))

    def space(self, indent: str) -> list[str]:
        """Blank lines, comments at this or another depth, form feeds."""
        forms = ["", "", "   ", "\x0c", indent + "# own", "# left", indent + "      # deep", indent + "# é"]
        return [self.draw(st.sampled_from(forms)) for _ in range(self.draw(st.sampled_from([0, 0, 0, 1, 2])))]

    def suite(self, header: str, indent: str, depth: int) -> list[str]:
        if self.flag(4):
            gap = self.draw(st.sampled_from(["", " ", " \\\n  "]))
            return [indent + header + gap + self.line()]
        head = indent + header + (self.comment() if self.flag(5) else "")
        unit = self.unit if self.flag(1) else self.draw(st.sampled_from([self.unit, "  ", "\t"]))
        return [head, *self.block(indent + unit, depth + 1)]

    def compound(self, indent: str, depth: int) -> list[str]:
        if self.flag(7):
            return [
                *self.suite("try:", indent, depth),
                *self.suite("except E as e:", indent, depth),
                *(self.suite("else:", indent, depth) if self.flag(2) else []),
                *self.suite("finally :", indent, depth),
            ]
        header = self.header()
        found: list[str] = []
        if re.match(r"def|async|class", header):
            for _ in range(self.draw(st.sampled_from([0, 0, 1, 2]))):
                found.append(indent + "@dec" + (self.comment() if self.flag() else ""))
                found += [indent + "# between"] if self.flag(4) else []
        found += self.suite(header, indent, depth)
        if header.startswith("if") and self.flag():
            found += self.suite(f"elif c({self.next()}):", indent, depth)
        if re.match(r"if|for|while", header) and self.flag():
            found += self.suite("else:", indent, depth)
        return found

    def block(self, indent: str, depth: int) -> list[str]:
        found: list[str] = []
        for _ in range(self.draw(st.integers(1, 4 if depth < 2 else 2))):
            found += self.space(indent)
            if depth < 3 and self.flag(2):
                found += self.compound(indent, depth)
            else:
                found.append(indent + self.line())
        return found + self.space(indent)


@st.composite
def programs(draw: st.DrawFn) -> str:
    """A text that Python and libcst parse."""
    writer = _Writer(draw)
    lines = writer.block("", 0)
    if draw(st.integers(0, 3)) == 0:
        lines.insert(0, draw(st.sampled_from(['"""Doc."""', "#!/usr/bin/python", "# -*- coding: utf-8 -*-"])))
    text = "\n".join(lines) + draw(st.sampled_from(["\n", "\n", "", "\n\n"]))
    text = text.replace("\n", draw(st.sampled_from(["\n", "\n", "\r\n"])))
    return (BOM if draw(st.integers(0, 5)) == 0 else "") + text


def python_tree(text: str) -> ast.Module:
    return ast.parse(text.removeprefix(BOM))


def label(statement: ast.stmt) -> str | None:
    """The number of a statement; None for `try` and docstrings."""
    if isinstance(statement, ast.Try):
        return None
    bare = ast.unparse(statement)
    found = LABEL.search(bare)
    return found.group() if found else None


def statements(tree: Tree) -> dict[str, cst.CSTNode]:
    """The statements by number. An `elif` has none: it is no statement of its own."""
    found: dict[str, cst.CSTNode] = {}
    for node in tree.nodes():
        small = isinstance(node, cst.BaseSmallStatement)
        if not small and not isinstance(node, cst.BaseCompoundStatement):
            continue
        parent = tree.spans.parent(node)
        if isinstance(node, cst.Try) or (isinstance(node, cst.If) and isinstance(parent, cst.If)):
            continue
        number = LABEL.search(tree.text[slice(*tree.spans.offsets(node))])
        if number:
            found[number.group()] = node
    return found


def blocks(tree: ast.AST) -> list[tuple[ast.AST, list[ast.stmt]]]:
    """Every list of statements in the tree with its owner."""
    return [
        (owner, body)
        for owner in ast.walk(tree)
        for name in ("body", "orelse", "finalbody")
        if isinstance(body := getattr(owner, name, None), list) and body
    ]


def rewrite(tree: ast.Module, change: Callable[[list[ast.stmt]], list[ast.stmt]]) -> ast.Module:
    """The tree with `change` made to every block; an emptied one gets `pass`."""
    for owner, body in blocks(tree):
        new = change(body)
        body[:] = new if new or isinstance(owner, ast.Module) else [ast.Pass()]
    return tree


def without(text: str, gone: Collection[str]) -> str:
    """What the program means when the statements with these numbers are taken out."""
    return ast.dump(
        rewrite(python_tree(text), lambda body: [node for node in body if label(node) not in gone])
    )


# -- what a change makes of such a program -------------------------------------------------------------------

settings.register_profile(
    "fixing",
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
FIXING = settings.get_profile("fixing")

pytestmark = pytest.mark.slow

NO_GRAD = no_grad_with("torch.no_grad")


def comments(text: str) -> list[str]:
    """The comments of a text, in order."""
    import io
    import tokenize

    reader = io.StringIO(text.removeprefix(BOM), newline="").readline
    return [
        token.string.strip() for token in tokenize.generate_tokens(reader) if token.type == tokenize.COMMENT
    ]


def checked(text: str, changes: list[Change], tree: Tree) -> str:
    """The changed text, after the checks that hold for every change."""
    edits = tree.edits(changes)
    result, _ = apply_edits(text, [finding(edits)], unsafe=False)
    assert cst.parse_module(result)
    if "\r\n" in text:
        assert "\n" not in result.replace("\r\n", "")
    return result


@FIXING
@given(programs(), st.data())
def test_insert(text: str, data: st.DataObject) -> None:
    tree = Tree(text)
    found = statements(tree)
    assume(found)
    number = data.draw(st.sampled_from(sorted(found)))
    after = data.draw(st.booleans())
    block = data.draw(st.booleans())
    new = cst.parse_statement("if q:\n    del q\n") if block else delete(["q"])
    result = checked(text, [Insert(found[number], new, after)], tree)

    def insert(body: list[ast.stmt]) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        for node in body:
            extra = ast.parse("if q: del q" if block else "del q").body if label(node) == number else []
            made += [node, *extra] if after else [*extra, node]
        return made

    expected = python_tree(text)
    assert ast.dump(python_tree(result)) == ast.dump(rewrite(expected, insert))
    assert sorted(comments(result)) == sorted(comments(text))


@FIXING
@given(programs(), st.data())
def test_remove(text: str, data: st.DataObject) -> None:
    tree = Tree(text)
    found = statements(tree)
    assume(found)
    gone = data.draw(st.sets(st.sampled_from(sorted(found)), min_size=1, max_size=4))
    inside = {
        number
        for number in gone
        if any(outer is found[other] for outer in tree.spans.ancestors(found[number]) for other in gone)
    }
    gone -= inside
    result = checked(text, [Remove(found[number]) for number in gone], tree)
    assert ast.dump(python_tree(result)) == without(text, gone)


@FIXING
@given(programs(), st.data())
def test_wrap(text: str, data: st.DataObject) -> None:
    tree = Tree(text)
    found = {number: node for number, node in statements(tree).items() if not isinstance(node, cst.ClassDef)}
    assume(found)
    first = data.draw(st.sampled_from(sorted(found)))
    length = data.draw(st.integers(1, 3))
    node = found[first]
    line = tree.spans.parent(node) if isinstance(node, cst.BaseSmallStatement) else node
    partial = isinstance(line, cst.SimpleStatementSuite) or (
        isinstance(line, cst.SimpleStatementLine) and data.draw(st.booleans()) and len(line.body) > 1
    )
    block = line if partial else tree.spans.parent(line)
    body = list(getattr(block, "body", ()))
    place = next(place for place, other in enumerate(body) if other is (node if partial else line))
    wrapped = body[place : place + length]
    assume(not any(isinstance(part, cst.Try) for part in wrapped))
    members: list[cst.CSTNode] = []
    for part in wrapped:
        members += part.body if isinstance(part, cst.SimpleStatementLine) else [part]
    count = len(members)
    numbers = {number for number, part in statements(tree).items() if any(part is other for other in members)}
    assume(len(numbers) == count)  # a docstring has no number
    result = checked(text, [Wrap(tuple(wrapped), NO_GRAD)], tree)

    def wrap(body: list[ast.stmt]) -> list[ast.stmt]:
        chosen = [other for other in body if label(other) in numbers]
        if len(chosen) != count:
            return body
        start = body.index(chosen[0])
        header = ast.parse("with torch.no_grad(): pass").body[0]
        header.body = chosen
        return [*body[:start], header, *body[start + count :]]

    expected = python_tree(text)
    assert ast.dump(python_tree(result)) == ast.dump(rewrite(expected, wrap))
    assert sorted(comments(result)) == sorted(comments(text))


@FIXING
@given(programs(), st.data())
def test_replace(text: str, data: st.DataObject) -> None:
    tree = Tree(text)
    calls = [node for node in tree.nodes() if isinstance(node, cst.Call)]
    assume(calls)
    chosen = data.draw(st.lists(st.sampled_from(range(len(calls))), min_size=1, max_size=3, unique=True))
    result = checked(
        text, [Replace(calls[place], call_method(calls[place], "item")) for place in chosen], tree
    )
    assert result.count(".item()") == len(chosen)
    assert result.replace(".item()", "") == text


@FIXING
@given(programs(), st.data())
def test_decorate_and_import(text: str, data: st.DataObject) -> None:
    tree = Tree(text)
    functions = [node for node in tree.nodes() if isinstance(node, cst.FunctionDef)]
    assume(functions)
    function = data.draw(st.sampled_from(functions))
    changes: list[Change] = [Decorate(function, no_grad_decorator("torch.no_grad")), AddImport("torch")]
    result = checked(text, changes, tree)
    expected = python_tree(text)
    name = function.name.value
    for node in ast.walk(expected):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == name:
            node.decorator_list.append(ast.parse("torch.no_grad()", mode="eval").body)
    first = expected.body[0]
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    expected.body.insert(1 if documented else 0, ast.parse("import torch").body[0])
    assert ast.dump(python_tree(result)) == ast.dump(expected)
    assert sorted(comments(result)) == sorted(comments(text))
    assert changed(result, lambda tree: [AddImport("torch")]) == result


# Whole runs: a finding for each place, passes to the end, and again


def removing(text: str) -> list[Finding]:
    """A rule against statements with an even number, one finding each."""
    tree = Tree(text)
    return [
        finding(tree.edits([Remove(node)]), row=tree.spans.of(node)[0].row)
        for number, node in statements(tree).items()
        if int(number) % 2 == 0
    ]


@FIXING
@given(programs())
def test_removals_one_by_one_come_to_rest(text: str) -> None:
    gone = {number for number in statements(Tree(text)) if int(number) % 2 == 0}
    result = fix_text(text, removing, unsafe=False)
    assert result.error is None
    assert not result.remaining
    # An emptied block holds `pass`, and one left by several passes no second one.
    assert _passless(ast.dump(python_tree(result.text))) == _passless(without(text, gone))
    assert fix_text(result.text, removing, unsafe=False).text == result.text


def _passless(dump: str) -> str:
    return dump.replace("Pass(), ", "").replace(", Pass()", "")
