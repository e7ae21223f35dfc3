"""What a file does with the names of others, read off its own tree: calls them, reads them, imports or spells them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeGuard

PROGRAM = "<program>"  # what stands under `if __name__ == "__main__":`
BODY = "<module>"

_LONGEST = 64  # a text of more letters names nothing
_DOTTED = re.compile(r"[\w.:/-]+")


@dataclass(frozen=True, slots=True)
class Mentions:
    """The names and the attributes that a file uses other than by calling them, what it imports, and the words of texts that
    may name something: `"eval_step"`, `"models.trainer.Trainer"`. Bases of classes are left out, and what `super` is given.
    A file that cannot be read may mention anything.

    sources: the modules that it imports a name from; defined: the functions and classes at its top; decorated: those with
    decorators, who may do anything with them; called: by last name, in which of these something is called; renamed: what is
    imported under another name; looked_into: modules out of which something is taken that no text names,
    `getattr(models, args.name)`; looks_around: the same of its own names, `globals()[name]`, `eval(name)`.
    """

    names: frozenset[str] = frozenset()
    attributes: frozenset[str] = frozenset()
    imported: frozenset[str] = frozenset()
    sources: Mapping[str, frozenset[str]] = field(default_factory=dict)
    texts: frozenset[str] = frozenset()
    defined: frozenset[str] = frozenset()
    decorated: frozenset[str] = frozenset()
    called: Mapping[str, frozenset[str]] = field(default_factory=dict)
    renamed: frozenset[str] = frozenset()
    looked_into: frozenset[str] = frozenset()
    looks_around: bool = False
    unreadable: bool = False


def mentions_in(tree: ast.Module) -> Mentions:
    """The mentions of a file whose tree this is."""
    nodes = list(ast.walk(tree))
    passed = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    passed |= {id(base) for node in nodes if isinstance(node, ast.ClassDef) for base in node.bases}
    passed |= {id(arg) for node in nodes if _calls(node, "super") for arg in node.args}
    read = [
        node
        for node in nodes
        if isinstance(node, (ast.Attribute, ast.Name))
        and isinstance(node.ctx, ast.Load)
        and id(node) not in passed
    ]
    imports = [node for node in nodes if isinstance(node, (ast.Import, ast.ImportFrom))]
    aliases = [alias for node in imports for alias in node.names]
    texts = (
        node.value
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) <= _LONGEST
    )
    sources: dict[str, set[str]] = {}
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                sources.setdefault(alias.name, set()).add("." * node.level + (node.module or ""))
    bound = {local: full for node in imports for local, full in _bound(node)}
    looked_into = (_looked_into(node) for node in nodes)
    return Mentions(
        names=frozenset(node.id for node in read if isinstance(node, ast.Name)),
        attributes=frozenset(node.attr for node in read if isinstance(node, ast.Attribute)),
        imported=frozenset(part for alias in aliases for part in alias.name.split(".")),
        sources={name: frozenset(modules) for name, modules in sources.items()},
        texts=frozenset(word for text in texts if _DOTTED.fullmatch(text) for word in re.split(r"\W+", text)),
        defined=frozenset(node.name for node in tree.body if isinstance(node, _DEFINITIONS)),
        decorated=frozenset(
            node.name for node in tree.body if isinstance(node, _DEFINITIONS) and node.decorator_list
        ),
        called=_called(tree),
        renamed=frozenset(alias.name for alias in aliases if alias.asname not in (None, alias.name)),
        looked_into=frozenset(
            f"{bound[head]}.{rest}".rstrip(".")
            for head, _, rest in (owner.partition(".") for owner in looked_into if owner)
            if head in bound
        ),
        looks_around=any(_looks_around(node) for node in nodes),
    )


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def _called(tree: ast.Module) -> dict[str, frozenset[str]]:
    """By last name, in which function or class at the top of a file something is called, or in what runs with the file."""
    found: dict[str, set[str]] = {}
    for statement in tree.body:
        is_program = isinstance(statement, ast.If) and "__name__" in ast.unparse(statement.test)
        for call, place in _placed(statement, PROGRAM if is_program else BODY):
            func = call.func
            name = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
            found.setdefault(name, set()).add(place)
    return {name: frozenset(places) for name, places in found.items()}


def _placed(node: ast.AST, place: str, owner: str = "") -> Iterator[tuple[ast.Call, str]]:
    """The calls in a statement at the top of a file, each with where it stands. What decorates a definition, its defaults,
    and what stands in the body of a class, runs where the definition does."""
    if isinstance(node, ast.Call):
        yield node, place
    name = owner or getattr(node, "name", "")
    inside = node.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) else []
    for child in ast.iter_child_nodes(node):
        within = any(child is one for one in inside)
        yield from _placed(
            child, name if within else place, name if isinstance(node, _DEFINITIONS) else owner
        )


def _bound(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str]]:
    """The names that an import binds, with what they stand for."""
    for alias in node.names:
        if isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            full = f"{module}{'' if module.endswith('.') else '.'}{alias.name}"
            yield alias.asname or alias.name, full
        else:
            first = alias.name.partition(".")[0]
            yield (alias.asname, alias.name) if alias.asname is not None else (first, first)


def _calls(node: ast.AST, *names: str) -> TypeGuard[ast.Call]:
    if not isinstance(node, ast.Call):
        return False
    func = node.func
    return (func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")) in names


def _looked_into(node: ast.AST) -> str:
    """`models` of `getattr(models, name)`, `vars(models)` and `models.__dict__`."""
    owner: ast.expr | None = None
    if isinstance(node, ast.Attribute) and node.attr == "__dict__":
        owner = node.value
    elif (_calls(node, "vars", "dir", "getmembers") and node.args) or (
        _calls(node, "getattr") and len(node.args) > 1 and not isinstance(node.args[1], ast.Constant)
    ):
        owner = node.args[0]
    return ast.unparse(owner) if isinstance(owner, (ast.Name, ast.Attribute)) else ""


def _looks_around(node: ast.AST) -> bool:
    """`globals()`, `eval(name)`, `sys.modules[__name__]`."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Attribute) and node.value.attr == "modules"
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return False
    name, given = node.func.id, [*node.args, *node.keywords]
    return (
        name in ("globals", "locals")
        or (name in ("eval", "exec") and bool(given))
        or (name in ("vars", "dir") and not given)
    )
