"""Whether anybody gets to a line: a function that nothing in a bounded program calls, or names, is dead code, of which a note is enough."""

from __future__ import annotations

import ast
import builtins
import re
import sys
from collections.abc import Iterator
from typing import Any, Final

from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.evaluate.frames import settled
from gpulint.analysis.project.file import Class, File, Function
from gpulint.analysis.project.program import MOST_FOUND
from gpulint.analysis.syntax.nodes import last_name
from gpulint.answers import Answer, Question, minor, refuted

_DEEPEST: Final = 4
PYTHONS_OWN: Final = sys.stdlib_module_names | frozenset(dir(builtins))
_PROGRAM: Final = re.compile(r"^if __name__ ==", re.MULTILINE)
_RUNNERS: Final = frozenset({"pytest", "unittest"})
# Names by which frameworks, runners and Python itself call.
_CALLED_BY_OTHERS: Final = tuple(
    "__ on_ test_ configure_ training_ validation_ predict_ visit_ setup main forward".split()
)


def reached(evaluator: Evaluator, function: Function) -> Iterator[Answer]:
    """That nothing shows that a function runs at all, or that a test runner runs it."""
    if function.name.startswith("test_") and function.file.words & _RUNNERS:
        yield refuted(Question.REACHED, "it is a test", function.node)
    sources = evaluator.program.sources
    if sources is None or not sources.is_bounded(function.file.path):
        return
    if not any(_PROGRAM.search(one.text) for one in evaluator.program.searched("__name__", function.file)):
        return  # a library: who calls it is elsewhere
    outermost = function.around[-1]
    if _is_idle(evaluator, outermost, _DEEPEST, set()):
        clause = f"no call in the program leads to `{outermost.name}`"
        yield minor(Question.REACHED, clause, outermost.node)
    elif _is_never_built(evaluator, outermost):
        clause = f"nothing in the program makes a `{outermost.cls.name}`"  # type: ignore[union-attr]
        yield minor(Question.REACHED, clause, outermost.cls.node)  # type: ignore[union-attr]


def _is_idle(evaluator: Evaluator, function: Function, depth: int, seen: set[Function]) -> bool:
    if function.is_module or function.decorators or function in seen or not depth:
        return False
    if function.name.startswith(_CALLED_BY_OTHERS) and not _is_no_test(function):
        return False
    files = evaluator.program.searched(function.name, function.file)
    if len(files) > MOST_FOUND or named_otherwise(evaluator, function) or unseen_base(evaluator, function):
        return False  # of so many files not all are asked
    callers = (site.frame.function for site in evaluator.callers(function))
    return all(_is_idle(evaluator, one, depth - 1, seen | {function}) for one in callers)


def _is_no_test(function: Function) -> bool:
    """Whether a function is named like a test, and stands in a file in which pytest looks for none."""
    is_named = function.cls is None and function.name.startswith("test_")
    return is_named and "test" not in function.file.path.rpartition("/")[2]


def _is_never_built(evaluator: Evaluator, function: Function) -> bool:
    """Whether a function is a method of a class that nothing but the class itself names, and no `__init__.py` gives to others."""
    cls = function.cls
    if cls is None or not function.takes_self or cls.node.decorator_list or unseen_base(evaluator, function):
        return False
    for file in evaluator.program.searched(cls.name, function.file):
        for one in file.parts:
            if one.cls is not cls and cls.name in one.words:
                others = [each.value for each in one.flow.definitions_of("import") if each.key != cls.name]
                if any(key.rpartition(".")[2] == cls.name for key in (*one.flow.uses, *others)):
                    return False
    by_text = lambda: _is_asked_for_by_text(evaluator, cls)  # noqa: E731
    asked = settled(evaluator, evaluator.root(cls.file.body), ("by text", cls), by_text)
    return not asked and not _is_exported(evaluator, function)


def _is_asked_for_by_text(evaluator: Evaluator, cls: Class) -> bool:
    """Whether a module that has a class is asked for something by a name that is worked out: `getattr(trainers, args.trainer)`, `eval(args.runner)`."""
    for word in ("getattr", "eval", "globals"):
        for file in evaluator.program.searched(word, cls.file):
            if word != "getattr" and evaluator.program.top_level(file, cls.name) is not cls:
                continue  # before the functions that call `net.eval()` are bound
            for function, call in file.calls_named(word):
                if not isinstance(call.func, ast.Name):
                    continue
                module: Any = file
                if word == "getattr" and call.args:
                    module = evaluator.value_of(call.args[0], evaluator.root(function)).ref
                if isinstance(module, File) and evaluator.program.top_level(module, cls.name) is cls:
                    return True
    return False


def named_otherwise(evaluator: Evaluator, function: Function) -> bool:
    """Whether the program names the function other than by defining and calling it: who reads it may run it."""
    return any(True for _ in _named(evaluator, function)) or _is_exported(evaluator, function)


def handed_on(evaluator: Evaluator, function: Function) -> bool:
    """Whether the function is an argument of what is not Python's own, which may run it and differentiate what it does."""
    for use, inside in _named(evaluator, function):
        call = inside.flow.parents.get(use)
        call = inside.flow.parents.get(call) if isinstance(call, ast.keyword) else call
        if isinstance(call, ast.Call) and last_name(use) == function.name:
            made = evaluator.value_of(call.func, evaluator.root(inside))
            if not isinstance(made.ref, str) or made.ref.partition(".")[0] not in PYTHONS_OWN:
                return True
    return False


def _named(evaluator: Evaluator, function: Function) -> Iterator[tuple[Any, Function]]:
    """The uses of a function's name that are no calls of it, each with the function that it stands in."""
    name = function.name
    for file in evaluator.program.searched(name, function.file):
        for one in (each for each in file.parts if name in each.words):
            flow = one.flow
            for key, uses in flow.uses.items():
                if key == name or key.endswith(f".{name}"):
                    for use in uses:
                        if getattr(flow.parents.get(use), "func", None) is not use:
                            yield use, one


def _is_exported(evaluator: Evaluator, function: Function) -> bool:
    """Whether a package's `__init__.py` imports it, or the class that it is a method of for others, and does not call it."""
    outer = function.cls is not None and not function.name.startswith("_")
    name = function.cls.name if outer and function.cls is not None else function.name
    files = (one for one in evaluator.program.searched(name, function.file) if one is not function.file)
    inits = (one for one in files if one.path.endswith("__init__.py"))
    flows = (one.flow for file in inits for one in file.parts if name in one.words)
    several = (one.definitions.get(name, ()) for one in flows if not one.calls.get(name))
    return any(found.kind == "import" for definitions in several for found in definitions)


def unseen_base(evaluator: Evaluator, function: Function) -> str:
    """A class that a method's class derives from and that nobody sees, which may call the method; empty where there is none."""
    cls = function.cls if function.takes_self else None
    bases = (one for one in (evaluator.program.lineage(cls) if cls else ()) if isinstance(one, str))
    return next((one for one in bases if one.partition(".")[0] not in PYTHONS_OWN | {"torch"}), "")
