"""Environment variables of CUDA and its allocator that are set when nobody reads them any more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpulint.rules.detect.alloc_conf import VISIBLE, Setting, settings

from gpulint.analysis.code import ir
from gpulint.analysis.file.lookup import called, names_cuda, qualified

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

# Seen on torch 2.11: after these the allocator's variable is not read any more. `is_available`, `device_count`,
# `manual_seed`, `memory_allocated` and `empty_cache` leave it for later.
_STARTS = frozenset(
    f"torch.cuda.{name}"
    for name in (
        "init set_device current_device current_stream get_device_name get_device_properties get_device_capability "
        "mem_get_info synchronize reset_peak_memory_stats is_bf16_supported"
    ).split()
)
# `CUDA_VISIBLE_DEVICES` is read by the driver, which this starts as well.
_STARTS_DRIVER = frozenset({"torch.cuda.is_available"})
# Whoever starts processes may set variables for them.
_FOR_CHILDREN = frozenset(
    "Popen subprocess spawn Process system start_processes Pool ProcessPoolExecutor run_cmd launch ray execv "
    "execvp execve".split()
)


@dataclass(slots=True)
class LateSetting:
    """A variable set too late: after `since` has started CUDA, or after `import torch` where that is None."""

    setting: Setting
    since: ir.Expr | None


def late_settings(file: FileAnalysis) -> list[LateSetting]:
    """The settings of this process's own environment that come too late to be read."""
    found_settings = settings(file)
    words = {word for evidence in file.evidence.values() for word in evidence.words}
    if words & _FOR_CHILDREN:
        return []
    by_statement: dict[int, list[Setting]] = {}
    for setting in found_settings:
        if setting.own:
            by_statement.setdefault(id(setting.stmt), []).append(setting)
    functions = dict.fromkeys(setting.function for setting in found_settings if setting.own)
    if not functions:
        return []
    started = _Started()
    found = list(_walk(file, file.module.body, file.module.body.body, started, by_statement))
    for function in functions:
        if function is not file.module.body:
            found += _walk(file, function, function.body, started.copy(), by_statement)
    return found


@dataclass(slots=True)
class _Started:
    """What has certainly run by now: an expression that starts CUDA, one that starts the driver, `import torch`."""

    cuda: ir.Expr | None = None
    driver: ir.Expr | None = None
    torch: bool = False

    def copy(self) -> _Started:
        return _Started(self.cuda, self.driver, self.torch)


def _walk(
    file: FileAnalysis,
    function: ir.Function,
    block: list[ir.Stmt],
    started: _Started,
    settings: dict[int, list[Setting]],
) -> Iterator[LateSetting]:
    for statement in block:
        for setting in settings.get(id(statement), ()):
            late = _late(setting, started)
            if late is not None:
                yield late
        if isinstance(statement, ir.Import):
            started.torch |= any(full.split(".")[0] == "torch" for _, full in statement.bindings)
        _note(file, function, statement, started)
        certain = isinstance(statement, (ir.With, ir.Try))
        main = isinstance(statement, ir.If) and _is_main(statement.test)
        for number, inner in enumerate(statement.blocks()):
            same = certain and number == 0
            state = started if same else started.copy()
            yield from _walk(file, function, inner, state, settings)
            if main and number == 0:
                break


def _late(setting: Setting, started: _Started) -> LateSetting | None:
    since = started.cuda
    if setting.variable == VISIBLE and since is None:
        since = started.driver
    if since is not None:
        return LateSetting(setting, since)
    if started.torch and setting.variable != VISIBLE and "backend:cudaMallocAsync" in (setting.text or ""):
        return LateSetting(setting, None)
    return None


def _note(file: FileAnalysis, function: ir.Function, statement: ir.Stmt, started: _Started) -> None:
    for root in statement.expressions():
        for part in ir.walk(root):
            if isinstance(part, ir.Call) and not _in_branch(root, part):
                name = qualified(file, function, part.func.path)
                if _starts_cuda(file, function, part, name):
                    started.cuda = started.cuda or part
                elif name in _STARTS_DRIVER:
                    started.driver = started.driver or part


def _in_branch(root: ir.Expr, call: ir.Call) -> bool:
    """Whether a part of an expression may not be evaluated: an arm of a conditional, the end of an `and`."""
    stack = [root]
    while stack:
        current = stack.pop()
        if current is call:
            return False
        if isinstance(current, ir.Op) and current.op in ("if", "and", "or"):
            stack.append(current.operands[0])
        elif not isinstance(current, ir.Comp):
            stack.extend(current.children())
    return True


def _starts_cuda(file: FileAnalysis, function: ir.Function, call: ir.Call, name: str | None) -> bool:
    if name is not None:
        if name in _STARTS:
            return True
        return name.startswith("torch.") and names_cuda(file, function, call.keyword("device"))
    if not isinstance(call.func, ir.Attr) or called(file, function, call) is not None:
        return False
    if call.method == "cuda":
        return len(call.args) <= 1
    return call.method == "to" and bool(call.args) and names_cuda(file, function, call.args[0])


def _is_main(test: ir.Expr) -> bool:
    return any(isinstance(part, ir.Name) and part.id == "__name__" for part in ir.walk(test))
