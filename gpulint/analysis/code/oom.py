"""Handlers that recover from running out of GPU memory while the traceback still holds the failed step's tensors."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gpulint.analysis.code import ir

CLEANING = frozenset({"empty_cache", "gc.collect"})

Asks = Callable[[ir.Call], bool]  # whether a call asks if an exception is about running out of memory

_OOM = re.compile(r"\bOOM\b")
# Operators that are a single call into C++.
_OPERATORS = frozenset(
    "cat stack concat concatenate hstack vstack empty zeros ones full rand randn empty_like zeros_like ones_like matmul mm "
    "bmm add mul".split()
)
_NOTES = frozenset(
    "print info debug warning warn error log format len range int str append write flush".split()
)
_OOM_TYPES = ("OutOfMemoryError", "OOMError", "CudaOutOfMemory", "CUDAOutOfMemoryError")


@dataclass(frozen=True, slots=True)
class Recovery:
    """The first statement of a handler that recovers, and how; `needs_memory`: it also does what a full GPU may refuse."""

    stmt: ir.Stmt
    why: str
    needs_memory: bool


def is_oom_handler(handler: ir.Handler, asks: Asks) -> bool:
    """Whether an `except` is about CUDA running out of memory: by its type, or by the message it looks for."""
    for kind in handler.types:
        last = kind.attr if isinstance(kind, ir.Attr) else kind.path or ""
        if last in _OOM_TYPES:
            return True
    return bool(handler.types) and (
        any(
            _mentions_oom(root, asks if isinstance(s, ir.If) else None)
            for s in handler.body
            for root in s.expressions()
        )
        or _empties_after_runtime_error(handler)
    )


def _empties_after_runtime_error(handler: ir.Handler) -> bool:
    """`except RuntimeError: torch.cuda.empty_cache(); …`: nothing else that it could mean is mended by that."""
    return all(kind.path == "RuntimeError" for kind in handler.types) and any(
        isinstance(statement, ir.ExprStmt)
        and isinstance(statement.value, ir.Call)
        and statement.value.method == "empty_cache"
        for statement in handler.body
    )


def _mentions_oom(root: ir.Expr, asks: Asks | None) -> bool:
    for expr in ir.walk(root):
        if isinstance(expr, ir.Const) and isinstance(expr.value, str):
            text = expr.value.lower()
            if "out of memory" in text or "cuda_error_out_of_memory" in text or "alloc_failed" in text:
                return True
            if _OOM.search(expr.value):
                return True
        if isinstance(expr, ir.Call):
            if "out_of_memory" in expr.method or "is_oom" in expr.method:
                return True
            if asks is not None and asks(expr):
                return True
    return False


def leaves_frames(body: list[ir.Stmt], qualified: Callable[[str | None], str | None]) -> bool:
    """Whether what a `try` runs has frames of its own, whose tensors a traceback could hold.

    An operator of torch that fails has made nothing yet, and what it was given belongs to the frame of the handler.
    """
    return any(not _is_frameless(call, qualified(call.func.path)) for _, call in ir.calls(body))


def _is_frameless(call: ir.Call, full: str | None) -> bool:
    if full is not None:
        owner, _, name = full.rpartition(".")
        return owner == "torch.cuda" or (owner == "torch" and name in _OPERATORS) or owner == "logging"
    return call.method in _NOTES


def recovery_in(
    handler: ir.Handler, recovers: Callable[[ir.Call], str | None], asks: Asks
) -> Recovery | None:
    """How the handler recovers; None where it only notes and leaves.

    A handler that re-raises at its end in any case has nothing to recover.
    """
    if _drops_traceback(handler) or _falls_back_to_host(_relevant(handler.body, asks)):
        return None
    found = list(
        _all(_relevant(handler.body, asks), lambda c: None if _names_host(c) else recovers(c), handler.name)
    )
    if not found:
        return None
    return Recovery(*found[0], any(why not in CLEANING for _, why in found))


def _drops_traceback(handler: ir.Handler) -> bool:
    """`traceback.clear_frames(e.__traceback__)`, `drop_tracebacks(e)`: the failed frames are let go of first."""
    return any(
        ("clear_frames" in call.method or ("traceback" in call.method and "format" not in call.method))
        and "print" not in call.method
        for _, call in ir.calls(handler.body)
    )


def _falls_back_to_host(block: list[ir.Stmt]) -> bool:
    """`x.to("cpu")`, `torch.device("cpu")`: what is tried next asks nothing more of the GPU."""
    on_host = any(call.method in ("to", "device") and _names_host(call) for _, call in ir.calls(block))
    return on_host and not any(call.method == "empty_cache" for _, call in ir.calls(block))


def _names_host(call: ir.Call) -> bool:
    """Whether a call is given the host by name: `step(x, mode="cpu")` asks nothing of the GPU."""
    given = (*call.args, *(value for _, value in call.keywords))
    return any(isinstance(arg, ir.Const) and arg.value == "cpu" for arg in given)


def _relevant(block: list[ir.Stmt], asks: Asks) -> list[ir.Stmt]:
    """The part of a handler that runs on OOM: of `if "out of memory" in str(e): … else: raise` the first branch."""
    for statement in block:
        if isinstance(statement, ir.If) and _mentions_oom(statement.test, asks):
            if not _denies_oom(statement.test, asks):
                return statement.body
            if statement.orelse:
                return statement.orelse
            return [other for other in block if other is not statement]
    return block


def _denies_oom(test: ir.Expr, asks: Asks) -> bool:
    """`"out of memory" not in str(e)`, not `"out of memory" in str(e) and not retried`: what is denied is the question."""
    return any(
        isinstance(part, ir.Op) and part.op in ("not", "not in", "!=") and _mentions_oom(part, asks)
        for part in ir.walk(test)
    )


def _all(
    block: list[ir.Stmt], recovers: Callable[[ir.Call], str | None], name: str | None
) -> Iterator[tuple[ir.Stmt, str]]:
    """The statements that recover, in order, each with how."""
    if block and isinstance(block[-1], ir.Jump) and block[-1].kind == "raise":
        return
    for statement in ir.statements(block):
        if name is not None and _stores(statement, name):
            yield statement, "stored"
        for part in ir.own_parts(statement):
            why = recovers(part) if isinstance(part, ir.Call) else None
            if why is not None:
                yield statement, why


def _stores(statement: ir.Stmt, name: str) -> bool:
    """Whether the exception object itself is kept: with it its traceback, its frames and their tensors."""
    if (
        isinstance(statement, ir.Assign)
        and isinstance(statement.value, ir.Name)
        and statement.value.id == name
    ):
        return any(not isinstance(target, ir.Name) for target in statement.targets)
    if isinstance(statement, ir.ExprStmt) and isinstance(statement.value, ir.Call):
        call = statement.value
        return call.method in ("append", "add", "put") and any(arg.path == name for arg in call.args)
    return False
