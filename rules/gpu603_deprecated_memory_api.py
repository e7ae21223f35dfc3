from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from gpulint.analysis.asked import Asked
from gpulint.analysis.evaluate.frames import Frame
from gpulint.analysis.models.table import Renamed
from gpulint.analysis.project.file import Function
from gpulint.analysis.project.requirements import oldest_torch, torch_of, version_of
from gpulint.analysis.syntax.flow import Definition, Flow
from gpulint.analysis.syntax.nodes import dotted, last_name
from gpulint.answers import Answer, Question, proven, refuted, until_refuted
from gpulint.claims import Claim
from gpulint.findings import Severity
from gpulint.rule import Claimed, Option, Repair, Replace, Report, Rule

# A torch older than this is not asked about.
_EVERYWHERE: Final = (1, 10)
# What is caught where a name may be missing.
_FALLBACKS: Final = frozenset({"ImportError", "ModuleNotFoundError", "AttributeError", "TypeError"})
_SETS_AUTOCAST: Final = ("set_autocast", "autocast_increment")


class DeprecatedMemoryApi(Rule):
    """
    ## What it does
    Finds deprecated names of torch's memory and mixed-precision interface: `memory_cached`, `max_memory_cached`,
    `reset_max_memory_allocated`, `reset_max_memory_cached`, `torch.cuda.amp.autocast`, `torch.cuda.amp.GradScaler`,
    `custom_fwd`, `custom_bwd`. A name is told once in a file, with its other places.

    ## Why is this bad
    Each call warns, and the names will go. "Cached" memory is what is called *reserved* since torch 1.4. The two
    `reset_max_…` reset all peaks, not one.

    ## What it costs
    No memory: a FutureWarning at every call. 9 names were called, 9 warnings seen (torch 2.11).

    ## Example
    ```python
    import torch

    scaler = torch.cuda.amp.GradScaler()
    print(torch.cuda.memory_cached())
    ```

    ## Use instead
    ```python
    import torch

    scaler = torch.amp.GradScaler("cuda")
    print(torch.cuda.memory_reserved())
    ```

    ## Fix safety
    The newer name does the same: safe. `torch.amp.autocast` needs torch 1.13, `torch.amp.GradScaler` torch 2.3,
    `torch.amp.custom_fwd` and `custom_bwd` torch 2.4: where nothing says which versions the program runs with, the change
    to these is unsafe. So it is where the program asks for the old type, `isinstance(x, torch.cuda.amp.GradScaler)`, which
    the newer name makes no instance of, and where it sets autocast's dtype or cache for the whole process.

    ## Options
    `target-torch`: the oldest version of torch that the program must run with; names that are newer are not asked for.
    It is taken from `target-torch` of the configuration where that is set, else from what the project requires:
    `"torch>=2.2"` in its `pyproject.toml`, `setup.cfg`, `setup.py`, `requirements.txt` or conda's `environment.yml`. A project that
    requires an older torch than the one that deprecates a name, `"torch==2.0.1"`, hears nothing about it; no more does one whose
    README speaks of none that is newer, or that imports what newer ones do not have, `torch._six`.
    """

    code = "GPU603"
    name = "deprecated-memory-api"
    severity = Severity.INFO
    costs_when_run = False
    of_names = True
    runtime_claim = Claim("code")
    in_tests = True
    triggers = ((b"torch",), (b"memory_cached", b"reset_max_memory", b"cuda.amp", b"cpu.amp", b"import amp"))
    options = (Option("target-torch", "", (), "the oldest version of torch that the program must run with"),)

    def claims(self, asked: Asked, options: Mapping[str, Any]) -> Iterator[Claimed]:
        chosen = version_of(options.get("target-torch"))
        target = chosen or oldest_torch(asked.program.sources, asked.filename)
        newest = None if chosen else torch_of(asked.program, asked.file)
        for node, frame, now, old in _old_names(asked):
            needed = version_of(now.brought or now.since) or _EVERYWHERE
            since = version_of(now.since) or _EVERYWHERE
            if (newest is None or newest >= since) and (target is None or target >= needed):
                known = target is not None or needed < _EVERYWHERE
                answers = until_refuted(_answers(asked, node, frame, now, old))
                yield Claimed(node, old, answers, partial(_report, asked, node, now, old, known))


def _old_names(asked: Asked) -> Iterator[tuple[Any, Frame, Renamed, str]]:
    """The calls, and the decorators without one, by a deprecated name: with the newer one, and the full old one."""
    for function in asked.file.parts:
        frame = asked.root(function)
        for key, uses in frame.flow.uses.items():
            bound = _bound(asked, function, key)[1]
            if bound and not any(one.kind == "import" and one.value.startswith("torch") for one in bound):
                continue
            for use in uses:
                above: Any = frame.flow.parents.get(use)
                called = getattr(above, "func", None) is use
                if called or use in getattr(above, "decorator_list", ()):
                    ref = asked.evaluator.value_of(use, frame).ref
                    row = asked.evaluator.table.function(ref)
                    if row is not None and row.now is not None:
                        yield above if called else use, frame, row.now, ref


def _bound(asked: Asked, function: Function, key: str) -> tuple[Function, list[Definition]]:
    """What the first name of a key is bound to, and where."""
    name = key.partition(".")[0]
    home = function if name in function.flow.definitions else asked.file.body
    return home, home.flow.definitions.get(name, [])


def _answers(asked: Asked, node: Any, frame: Frame, now: Renamed, old: str) -> Iterator[Answer]:
    if frame.function.name == old.rpartition(".")[2]:
        yield refuted(Question.MEANT, "the old name is what the function offers")
    if _may_be_missing(frame.flow, node) or _has_newer(asked, node, frame, now):
        yield refuted(Question.MEANT, "the version of torch decides which name is used")
    home, bound = _bound(asked, frame.function, dotted(getattr(node, "func", node)) or "")
    missing = any(_may_be_missing(home.flow, one.statement) for one in bound if one.value != "torch")
    if missing or len({one.value for one in bound}) > 1:
        yield refuted(Question.MEANT, "where the name comes from is decided by what there is to import")
    yield proven(Question.READS, "the old name warns at every call")


def _may_be_missing(flow: Flow, node: Any) -> bool:
    """Whether a node is in a `try` that expects a name to be missing."""
    owners: list[Any] = [block.owner for block in flow.around(node)]
    handlers = [one for owner in owners for one in getattr(owner, "handlers", (owner,))]
    caught = [one.type for one in handlers if getattr(one, "type", None) is not None]
    return any(last_name(one) in _FALLBACKS for kinds in caught for one in ast.walk(kinds))


def _has_newer(asked: Asked, node: Any, frame: Frame, now: Renamed) -> bool:
    """Whether a function that comes to a node under a condition uses the newer name as well."""
    flow = frame.flow
    if not flow.conditions(node) and not any(isinstance(one, ast.IfExp) for one in flow.ancestors(node)):
        return False
    last = now.name.rpartition(".")[2]
    several = (uses for key, uses in flow.uses.items() if key.rpartition(".")[2] == last)
    for use in (one for uses in several for one in uses):
        first = getattr(flow.parents.get(use), "args", [])[:1]
        other = any(isinstance(one, ast.Constant) and one.value != now.first.strip('"') for one in first)
        if not other and asked.evaluator.value_of(use, frame).ref == now.name:
            return True
    return False


def _report(asked: Asked, node: Any, now: Renamed, old: str, known: bool) -> Report:
    new = now.name + (f"({now.first}, …)" if now.first else "")
    return Report(
        node,
        f"`{old}` is deprecated: since torch {now.since} it is `{new}`",
        "the old name warns at every call",
        "no memory; a FutureWarning",
        repair=lambda: _repair(asked, node, now, _why_unsafe(asked, now, old, known)),
    )


def _why_unsafe(asked: Asked, now: Renamed, old: str, known: bool) -> str:
    """In a clause, what the newer name may do otherwise in this file."""
    if not known:
        return f"`{now.name}` needs torch {now.brought or now.since}, and nothing says which one the program runs with"
    for function, call in (*asked.file.calls_named("isinstance"), *asked.file.calls_named("issubclass")):
        kinds = (one for one in ast.walk(call.args[-1]) if isinstance(one, (ast.Name, ast.Attribute)))
        if any(asked.evaluator.value_of(one, asked.root(function)).ref == old for one in kinds):
            return f"the program asks whether something is a `{old}`, which the newer one makes no more"
    if now.order and any(word.startswith(_SETS_AUTOCAST) for word in asked.file.words):
        return "the newer one takes over the dtype and the cache that the program has set for autocast"
    return ""


def _repair(asked: Asked, node: Any, now: Renamed, why_unsafe: str) -> Repair | None:
    """The call by the newer name; nothing where its arguments cannot be told."""
    import libcst as cst

    from gpulint.fix.nodes import expression

    name, missing = asked.torch_name(now.name.removeprefix("torch."), node)
    if missing or not name or not isinstance(node, ast.Call) or "=" in now.first:
        return None
    call = cst.ensure_type(asked.node(node), cst.Call)
    args = list(call.args)
    if now.first:
        if any(one.star for one in args):
            return None
        equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
        for position, keyword in enumerate(now.order.split()[: len(node.args)]):
            args[position] = args[position].with_changes(keyword=cst.Name(keyword), equal=equal)
        comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" ")) if args else cst.MaybeSentinel.DEFAULT
        args.insert(0, cst.Arg(cst.SimpleString(asked.quoted(now.first.strip('"'))), comma=comma))
    new = call.with_changes(func=expression(name), args=args)
    return Repair.unless(why_unsafe, f"use `{now.name}`", (Replace(call, new),))
