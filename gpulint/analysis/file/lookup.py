"""Names and strings read off the statements alone, for facts that need no values followed."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.file.classes import ClassInfo
from gpulint.analysis.values.values import Kind, Val

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis


def qualified(file: FileAnalysis, function: ir.Function, path: str | None) -> str | None:
    """What a dotted path stands for in a function: `torch.load`; None for anything that is not imported."""
    if path is None:
        return None
    head = path.partition(".")[0]
    current: ir.Function | None = function
    while current is not None and current is not file.module.body:
        if head in file.evidence[current].assigned or any(param.name == head for param in current.params):
            return None
        current = current.parent
    return file.names.qualify(path)


def called(file: FileAnalysis, function: ir.Function, call: ir.Call) -> ir.Function | None:
    """The function of this file that a call by plain name, or by `self.name`, runs."""
    path = call.func.path
    if path is None:
        return None
    head, _, attr = path.partition(".")
    info = file.class_of(function)
    if attr and info is not None and function.params and function.params[0].name == head:
        return None if "." in attr else info.method(attr)
    if attr or head in file.evidence[function].assigned:
        return None
    for other in file.call_sites.plain_functions.get(head, ()):
        file.effort.draw(ir.size(other))
        if other.parent in (file.module.body, function):
            return other
    return None


def put_in_its_place(method: ir.Function) -> Iterator[ir.Function]:
    """The methods of classes below that of a method, in its own file, which a call on the object itself may run instead."""
    home: FileAnalysis = method.home
    owner = home.class_of(method)
    for info in home.classes.values() if owner is not None else ():
        if info is not owner and owner in info.ancestors():
            other = info.cls.methods.get(method.name)
            if other is not None:
                yield other


def called_in_project(function: ir.Function, call: ir.Call) -> ir.Function | None:
    """The same, of a function that is imported from the project as well."""
    home: FileAnalysis = function.home
    callee = called(home, function, call)
    if callee is not None:
        return callee
    found = _imported(function, call.func)
    return found.ref if found is not None and isinstance(found.ref, ir.Function) else None


def are_of_one_file(one: ir.Function, other: ir.Function) -> bool:
    """Whether two functions stand in the same file, read once or twice."""
    files = {os.path.abspath(each.home.filename) for each in (one, other)}
    return len(files) == 1


def class_made(function: ir.Function, call: ir.Call) -> ClassInfo | None:
    """The class of the project that a call makes an object of; None where it is none that is seen."""
    return class_named(function, call.func)


def class_named(function: ir.Function, named: ir.Expr) -> ClassInfo | None:
    """The class of the project that goes by this name in a function."""
    home: FileAnalysis = function.home
    if named.path in home.classes:
        return home.classes[named.path]
    found = _imported(function, named)
    return found.ref if found is not None and isinstance(found.ref, ClassInfo) else None


def _imported(function: ir.Function, named: ir.Expr) -> Val | None:
    """What a name stands for that another file of the project defines: a function or a class."""
    home: FileAnalysis = function.home
    full = qualified(home, function, named.path)
    if full is not None:
        value = home.imported_value(full)
    elif isinstance(named, ir.Name) and _is_free(home, function, named.id):
        value = home.through_star(named.id)
    else:
        value = None
    return value if value is not None and value.kind in (Kind.FUNCTION, Kind.CLASS) else None


def _is_free(file: FileAnalysis, function: ir.Function, name: str) -> bool:
    """Whether a plain name is bound neither in the function nor around it."""
    return not any(
        name in file.evidence[scope].assigned or any(param.name == name for param in scope.params)
        for scope in function.scopes()
    )


def parts_given(
    function: ir.Function, call: ir.Call, target: ir.Expr, name: str
) -> list[tuple[ir.Function, ir.Return, ir.Expr]]:
    """What a name of `loss, name = step(batch)` stands for in the function that is called: with each of its returns, the
    expression at that place. Empty where one of them is not so many values side by side."""
    callee = called_in_project(function, call)
    if callee is None or callee.is_generator or not isinstance(target, ir.Seq):
        return []
    at = next((k for k, item in enumerate(target.items) if item.path == name), None)
    found: list[tuple[ir.Function, ir.Return, ir.Expr]] = []
    for statement in ir.statements(callee.body):
        if isinstance(statement, ir.Return):
            value = statement.value
            if at is None or not isinstance(value, ir.Seq) or len(value.items) != len(target.items):
                return []
            found.append((callee, statement, value.items[at]))
    return found


_PACKED = frozenset({"PackedSequence", "pack_padded_sequence", "pack_sequence", "pad_packed_sequence"})


def packs_sequences(file: FileAnalysis) -> bool:
    """Whether a file speaks of packed sequences: their `data` has a graph, unlike a tensor's."""
    return any(True for _ in with_words(file, _PACKED)) or any(
        name.rpartition(".")[2] in _PACKED for name in file.module.imports.values()
    )


def with_words(file: FileAnalysis, words: frozenset[str]) -> Iterator[ir.Function]:
    """The functions, the module's body among them, that use one of the names."""
    for function, evidence in file.evidence.items():
        if not words.isdisjoint(evidence.words):
            yield function


def template(expr: ir.Expr) -> str | None:
    """The text of a string; `{}` stands for what an f-string puts in. None for anything else."""
    if isinstance(expr, ir.Const):
        return expr.value if isinstance(expr.value, str) else None
    return _pieces(expr.origin) if isinstance(expr, ir.Text) else None


def _pieces(node: ast.JoinedStr) -> str:
    return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)


def names_only_cpu(file: FileAnalysis) -> bool:
    """Whether a file names the CPU as its device and never a GPU."""
    strings = {text for evidence in file.evidence.values() for text in evidence.strings}
    words = {word for evidence in file.evidence.values() for word in evidence.words}
    gpu = any("cuda" in text for text in strings) or any(
        "cuda" in word or "gpu" in word for word in map(str.lower, words)
    )
    return not gpu and "cpu" in strings and not brings_back_only(file)


def brings_back_only(file: FileAnalysis) -> bool:
    """Whether a file that speaks of the CPU brings things back to it, `x.to("cpu")`, `map_location="cpu"`, or has a GPU
    for the default of a parameter: neither says that it runs on the CPU."""
    for function, evidence in file.evidence.items():
        for param in function.params:
            if isinstance(param.default, ir.Const) and "cuda" in str(param.default.value):
                return True
        if "cpu" in evidence.strings and not _all_bring_back(function):
            return False
    return True


def _all_bring_back(function: ir.Function) -> bool:
    for statement in ir.statements(function.body):
        moved: set[int] = set()
        for part in ir.own_parts(statement):
            if isinstance(part, ir.Call) and part.method in ("to", "load"):
                moved |= {id(arg) for arg in part.args}
                moved |= {id(value) for name, value in part.keywords if name in ("device", "map_location")}
            elif isinstance(part, ir.Const) and part.value == "cpu" and id(part) not in moved:
                return False
    return True
