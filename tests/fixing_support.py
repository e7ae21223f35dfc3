"""What the tests of fixing share: nodes found by their code, and changes applied to a text."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import libcst as cst

from gpulint.findings import Edit, Finding, Fix, Severity
from gpulint.fix.rendering import render
from gpulint.rule import Change, Repair
from gpulint.source.edits import apply_edits
from gpulint.source.positions import Spans, child_nodes


class Tree:
    """A parsed text whose nodes are found by their code."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.module = cst.parse_module(text)
        self.spans = Spans(self.module, text)

    def nodes(self) -> Iterator[cst.CSTNode]:
        stack: list[cst.CSTNode] = [*reversed(self.module.body)]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(list(child_nodes(node))))

    def find(self, code: str, kind: type[cst.CSTNode] = cst.BaseExpression, nth: int = 0) -> cst.CSTNode:
        """The nth node of a kind that stands in the text as `code`."""
        found = [
            node
            for node in self.nodes()
            if isinstance(node, kind) and self.text[slice(*self.spans.offsets(node))] == code
        ]
        return found[nth]

    def small(self, code: str, nth: int = 0) -> cst.CSTNode:
        return self.find(code, cst.BaseSmallStatement, nth)

    def line(self, code: str, nth: int = 0) -> cst.CSTNode:
        """A whole statement, named by the first line of its code."""
        found = [
            node
            for node in self.nodes()
            if isinstance(node, (cst.SimpleStatementLine, cst.BaseCompoundStatement))
            and self.text[slice(*self.spans.offsets(node))].splitlines()[0] == code
        ]
        return found[nth]

    def arg(self, code: str) -> cst.CSTNode:
        return self.find(code, cst.Arg)

    def edits(self, changes: Sequence[Change]) -> tuple[Edit, ...]:
        return render(self.module, self.spans, Repair("safe", "fix", tuple(changes))).edits


def finding(
    edits: Sequence[Edit], code: str = "GPU101", row: int = 1, applicability: str = "safe"
) -> Finding:
    fix = Fix(applicability, "fix", tuple(edits))  # type: ignore[arg-type]
    return Finding(code, "name", Severity.WARNING, "message", "file.py", row, 1, row, 2, fix=fix)


def changed(text: str, make: Callable[[Tree], Sequence[Change]]) -> str:
    """`text` after the changes, which must leave it parseable and be sorted, non-overlapping edits."""
    tree = Tree(text)
    edits = tree.edits(make(tree))
    for left, right in pairwise(edits):
        assert left.end <= right.start
        assert left.start < right.start
    result, applied = apply_edits(text, [finding(edits)], unsafe=False)
    assert len(applied) == (1 if edits else 0)
    cst.parse_module(result)
    return result
