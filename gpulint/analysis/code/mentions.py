"""What a file does with the names of others, read off its own tree: calls them, reads them, imports or spells them."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

_LONGEST = 64  # a text of more letters names nothing
_DOTTED = re.compile(r"[\w.:/-]+")


@dataclass(frozen=True, slots=True)
class Mentions:
    """The names and the attributes that a file uses other than by calling them, what it imports, and the words of texts that
    may name something: `"eval_step"`, `"models.trainer.Trainer"`. A file that cannot be read may mention anything."""

    names: frozenset[str] = frozenset()
    attributes: frozenset[str] = frozenset()
    imported: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()
    unreadable: bool = False


def mentions_in(tree: ast.Module) -> Mentions:
    """The mentions of a file whose tree this is."""
    nodes = list(ast.walk(tree))
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    read = [
        node
        for node in nodes
        if isinstance(node, (ast.Attribute, ast.Name))
        and isinstance(node.ctx, ast.Load)
        and id(node) not in called
    ]
    imported = (
        alias.name for node in nodes if isinstance(node, (ast.Import, ast.ImportFrom)) for alias in node.names
    )
    texts = (
        node.value
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) <= _LONGEST
    )
    return Mentions(
        frozenset(node.id for node in read if isinstance(node, ast.Name)),
        frozenset(node.attr for node in read if isinstance(node, ast.Attribute)),
        frozenset(part for name in imported for part in name.split(".")),
        frozenset(word for text in texts if _DOTTED.fullmatch(text) for word in re.split(r"\W+", text)),
    )
