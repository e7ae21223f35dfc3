"""Programs made at random, with all that a fixer may trip over in their layout, and what changes mean to them."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection

import libcst as cst
from fixing_support import Tree
from hypothesis import strategies as st

from gpulint.source.edits import BOM

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
