"""Names of torch's memory interface that have newer ones, and where a program still calls the old."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gpulint.analysis.code import ir
from gpulint.analysis.file.lookup import qualified

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis


@dataclass(frozen=True, slots=True)
class Renamed:
    """The newer name, the version of torch since which the old one is deprecated, and the one that brought the newer
    name, where that was earlier.

    `device` is what the newer name is told first. `order` are the old call's parameters in their order: where the newer
    one has another order, what was given by position is given by name.
    """

    new: str
    since: str
    device: str | None = None
    order: tuple[str, ...] | None = None
    decorator: bool = False
    brought: str = ""

    @property
    def known_since(self) -> str:
        return self.brought or self.since


_AUTOCAST = ("enabled", "dtype", "cache_enabled")

DEPRECATED: Final = {
    "torch.cuda.memory_cached": Renamed("torch.cuda.memory_reserved", "1.4"),
    "torch.cuda.memory.memory_cached": Renamed("torch.cuda.memory_reserved", "1.4"),
    "torch.cuda.max_memory_cached": Renamed("torch.cuda.max_memory_reserved", "1.4"),
    "torch.cuda.memory.max_memory_cached": Renamed("torch.cuda.max_memory_reserved", "1.4"),
    "torch.cuda.reset_max_memory_allocated": Renamed("torch.cuda.reset_peak_memory_stats", "1.4"),
    "torch.cuda.memory.reset_max_memory_allocated": Renamed("torch.cuda.reset_peak_memory_stats", "1.4"),
    "torch.cuda.reset_max_memory_cached": Renamed("torch.cuda.reset_peak_memory_stats", "1.4"),
    "torch.cuda.memory.reset_max_memory_cached": Renamed("torch.cuda.reset_peak_memory_stats", "1.4"),
    "torch.cuda.amp.autocast": Renamed("torch.amp.autocast", "2.4", "cuda", _AUTOCAST, brought="1.13"),
    "torch.cuda.amp.autocast_mode.autocast": Renamed(
        "torch.amp.autocast", "2.4", "cuda", _AUTOCAST, brought="1.13"
    ),
    "torch.cpu.amp.autocast": Renamed("torch.amp.autocast", "2.4", "cpu", _AUTOCAST, brought="1.13"),
    "torch.cuda.amp.GradScaler": Renamed("torch.amp.GradScaler", "2.4", "cuda", brought="2.3"),
    "torch.cuda.amp.grad_scaler.GradScaler": Renamed("torch.amp.GradScaler", "2.4", "cuda", brought="2.3"),
    "torch.cuda.amp.custom_fwd": Renamed("torch.amp.custom_fwd", "2.4", "cuda", decorator=True),
    "torch.cuda.amp.custom_bwd": Renamed("torch.amp.custom_bwd", "2.4", "cuda", decorator=True),
}
_WORDS = frozenset(name.rsplit(".", 1)[-1] for name in DEPRECATED)
# Under a test that asks for one of these, the program chooses between old and new itself.
_CHOOSING = frozenset({"version", "__version__", "hasattr", "parse", "Version", "find_spec", "TORCH_VERSION"})
# `TORCH_GE_2`, `IS_TORCH24`, `PT2`: constants named for a version.
_VERSIONED = re.compile(
    r"^[A-Z0-9_]*(?:TORCH|PT)_?(?:GE|GT|LT|LE|AT_LEAST)?_?[0-9V]|^[A-Z0-9_]*_(?:GE|LT)_?[0-9]"
)


@dataclass(slots=True)
class OldCall:
    """A call, or a decorator without one, by a deprecated name."""

    function: ir.Function
    func: ir.Expr
    call: ir.Call | None
    name: str
    renamed: Renamed


class _Versions:
    """Tells tests that choose by torch's version from others."""

    def __init__(self, file: FileAnalysis) -> None:
        self.file = file
        self.known: dict[str, bool] = {}

    def choose(self, test: ir.Expr) -> bool:
        for part in ir.walk(test):
            word = part.attr if isinstance(part, ir.Attr) else part.id if isinstance(part, ir.Name) else ""
            if word in _CHOOSING or "version" in word.lower() or _VERSIONED.search(word):
                return True
            if isinstance(part, ir.Name) and word.isupper() and self._is_by_version(word):
                return True
        return False

    def _is_by_version(self, constant: str) -> bool:
        """A constant of the file that is computed from a version, or one from elsewhere, of which nothing is known."""
        known = self.known.get(constant)
        if known is None:
            self.known[constant] = False  # asked for within itself
            known = self.known[constant] = self._computed(constant)
        return known

    def _computed(self, constant: str) -> bool:
        body = self.file.module.body
        if constant not in self.file.evidence[body].assigned:
            return constant in self.file.names.imports
        return any(
            statement.value is not None and self.choose(statement.value)
            for statement in ir.statements(body.body)
            if isinstance(statement, ir.Assign) and any(t.path == constant for t in statement.targets)
        )


def old_calls(file: FileAnalysis) -> list[OldCall]:
    """The calls and decorators of a file that go by a deprecated name, those aside that ask for the version first."""
    imports = file.names.imports
    if not any(full == "torch" or full.startswith("torch.") for full in imports.values()):
        return []
    words = _WORDS | {local for local, full in imports.items() if full in DEPRECATED}
    found: list[OldCall] = []
    versions = _Versions(file)
    for function, evidence in file.evidence.items():
        if not words.isdisjoint(evidence.words):
            for expr in _unguarded(function.body, versions):
                found += _old(file, function, expr, words, versions)
        for decorator in function.decorators:
            found += _old(file, function, decorator, words, versions, decorates=True)
    if not found:
        return []
    chosen = _chosen_imports(file)
    return [
        old for old in found if (old.func.path or "").partition(".")[0] not in chosen and not _passes_on(old)
    ]


def sets_autocast(file: FileAnalysis) -> bool:
    """Whether anything in the file sets for the whole process what autocast does."""
    return any(
        name.startswith(("set_autocast", "autocast_increment"))
        for evidence in file.evidence.values()
        for name in evidence.called
    )


def asks_for_type(file: FileAnalysis, name: str) -> bool:
    """Whether the file asks if something is an instance of a class of this name."""
    return any(
        call.method in ("isinstance", "issubclass")
        and len(call.args) == 2
        and any(qualified(file, function, part.path) == name for part in ir.walk(call.args[1]) if part.path)
        for function, evidence in file.evidence.items()
        if evidence.called & {"isinstance", "issubclass"}
        for _, call in ir.calls(function.body)
    )


def _passes_on(old: OldCall) -> bool:
    """`def memory_cached(self): return torch.cuda.memory_cached()`: the old name is what is offered."""
    return old.function.name == old.name.rpartition(".")[2]


def _chosen_imports(file: FileAnalysis) -> set[str]:
    """The names that the file has from more than one place, or that it can do without: the version of torch decides."""
    origins: dict[str, set[str]] = {}
    spared = {function.name for function in file.module.functions if function.cls is None}
    for function in file.module.functions:
        for statement in ir.statements(function.body):
            if isinstance(statement, ir.Import):
                for local, full in statement.bindings:
                    origins.setdefault(local, set()).add(full)
            elif isinstance(statement, ir.Try) and any(map(_is_fallback, statement.handlers)):
                for inner in statement.body:
                    if isinstance(inner, ir.Import):
                        spared |= {local for local, full in inner.bindings if full in DEPRECATED}
    return spared | {local for local, found in origins.items() if len(found) > 1}


def _old(
    file: FileAnalysis,
    function: ir.Function,
    expr: ir.Expr,
    words: frozenset[str],
    versions: _Versions,
    decorates: bool = False,
) -> Iterator[OldCall]:
    if any(
        isinstance(part, ir.Op) and part.op == "if" and versions.choose(part.operands[0])
        for part in ir.walk(expr)
    ):
        return
    for part in ir.walk(expr):
        if isinstance(part, ir.Call) and part.method in words:
            name = qualified(file, function, part.func.path)
            if name in DEPRECATED and name is not None:
                yield OldCall(function, part.func, part, name, DEPRECATED[name])
        elif decorates and part is expr and isinstance(part, (ir.Name, ir.Attr)):
            name = qualified(file, function, part.path)
            if name in DEPRECATED and name is not None and DEPRECATED[name].decorator:
                yield OldCall(function, part, None, name, DEPRECATED[name])


def _unguarded(block: list[ir.Stmt], versions: _Versions) -> Iterator[ir.Expr]:
    """The expressions of a block, without those in branches that a version decides about."""
    for statement in block:
        if isinstance(statement, ir.If) and versions.choose(statement.test):
            continue
        if isinstance(statement, ir.Try) and any(_is_fallback(handler) for handler in statement.handlers):
            continue
        yield from statement.expressions()
        for inner in statement.blocks():
            yield from _unguarded(inner, versions)


def _is_fallback(handler: ir.Handler) -> bool:
    lasts = {kind.attr if isinstance(kind, ir.Attr) else kind.path for kind in handler.types}
    return bool(lasts & {"ImportError", "AttributeError", "ModuleNotFoundError", "TypeError"})
