"""How large the network behind a name is: found where it is made, and counted as far as constants lead.

A network is small where all of its layers and their widths are in sight and come to few weights, and large where what is in
sight is already much; anything else is left open. What a network saves for a backward grows with what goes through it as
well: few weights alone do not say that that is little, unless nothing but rows goes through nothing but linear layers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.code.reading import unwrapped
from gpulint.analysis.file.classes import ClassInfo
from gpulint.analysis.file.lookup import are_of_one_file, called_in_project
from gpulint.analysis.questions.device.placement import calls_of
from gpulint.analysis.questions.size.built import Built
from gpulint.analysis.questions.size.constructing import Constructing

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

SMALL = 16_000_000  # weights: 64 MB, which a GPU for training does not miss
NARROW = 4_000_000  # 16 MB
FILTER = 1_000
TOY = 250_000  # 1 MB
LARGE = 40_000_000  # 160 MB; with an optimizer's state, and gradients, four times as much
_MOST_MAKERS = 12
_DEPTH = 4


@dataclass(frozen=True, slots=True)
class Size:
    """How large a network is: of all that it may be, the smallest and the largest."""

    least: Built
    most: Built

    @property
    def is_large(self) -> bool:
        return self.least.weights >= LARGE

    @property
    def is_toy(self) -> bool:
        """Whether all layers are in sight, come to next to no weights, and make rows in the end: no picture comes out. Or it
        is a filter of a few numbers."""
        most = self.most
        if most.complete and 0 < most.weights < FILTER and most.maps:
            return True
        return most.seen and most.layers > 0 and most.about < TOY and not (most.maps or most.rows)

    @property
    def is_of_rows(self) -> bool:
        """Whether it is nothing but some linear layers: each sample is a row, and what is saved of it a few more."""
        return self.most.seen and self.most.rows and self.most.layers > 0 and self.most.about < NARROW

    @property
    def is_narrow(self) -> bool:
        """Whether all layers are in sight, come to few weights, and take no pictures."""
        return self.looks_narrow and not self.most.convolutions

    @property
    def looks_narrow(self) -> bool:
        """The same of a network that may take pictures."""
        return self.most.seen and self.most.layers > 0 and self.most.about < NARROW

    @property
    def is_toy_of_rows(self) -> bool:
        """The same, with all its widths in sight, and next to none."""
        return self.is_of_rows and self.most.complete and self.most.weights < TOY

    def made_in(self, file: FileAnalysis) -> tuple[ir.Part | None, str]:
        """Where an answer of a file's points to: the place where it is made, with its file where that is another."""
        most = self.most
        return most.made, "" if most.filename == file.filename else most.filename

    def in_words(self, name: str) -> str:
        """`net` has about 40 k weights, 160 KB."""
        about = self.most.weights if self.most.complete else self.most.about
        so = "about" if self.most.complete else "some"
        return f"`{name}` has {so} {_rounded(about)} weights, {_bytes(about * 4)}"


def _rounded(number: int) -> str:
    for unit, least in ((" M", 1_000_000), (" k", 1_000)):
        if number >= least:
            value = number / least
            return f"{value:.1f}{unit}" if value < 10 else f"{value:.0f}{unit}"
    return str(number)


def _bytes(number: int) -> str:
    for unit, least in (("GB", 10**9), ("MB", 10**6), ("KB", 10**3)):
        if number >= least:
            return f"{number / least:.0f} {unit}"
    return f"{number} bytes"


class NetworkSizes:
    """The sizes of the networks of one file, each worked out when it is first asked for."""

    def __init__(self, _: FileAnalysis) -> None:  # a question is asked of a file
        self._known: dict[tuple[ir.Function, str], Size | None] = {}

    def of(self, function: ir.Function, path: str, network: object = None) -> Size | None:
        """How large the network is that a path stands for in a function; None where nothing is known of it. `network` is
        its class, where the flow of values has brought it."""
        path = path.removesuffix(".forward").removesuffix(".module")
        key = (function, path)
        if key not in self._known:
            self._known[key] = self._found(function, path, network)
        return self._known[key]

    def _found(self, function: ir.Function, path: str, network: object) -> Size | None:
        built: list[Built] = []
        done: set[int] = set()
        for place, maker in self._makers(function, path, _DEPTH):
            if id(maker) in done:
                continue
            done.add(id(maker))
            made = Constructing().made(place, maker)
            if made is None and _is_none(maker):
                continue
            built.append(made or Built(complete=False, seen=False))
            if len(built) > _MOST_MAKERS:
                return None
        built = built or list(self._parts(function, path))
        if not built and isinstance(network, ClassInfo):
            alone = Constructing().of_class(network)
            built = [alone] if alone is not None else []
        if not built:
            return None
        return Size(min(built, key=lambda one: one.weights), _most(built))

    def _parts(self, function: ir.Function, path: str) -> Iterator[Built]:
        """What `model.encoder` may be, by all that `model` may be made by; nothing where one of these does not show it."""
        whole, _, attr = path.rpartition(".")
        attrs = [attr]
        while whole and not (makers := list(self._makers(function, whole, _DEPTH))):
            whole, _, attr = whole.rpartition(".")
            attrs.insert(0, attr)
        if not whole or len(makers) > _MOST_MAKERS:
            return
        found = [Constructing().made(place, maker, attrs) for place, maker in makers if not _is_none(maker)]
        if all(one is not None and one.layers for one in found):
            yield from (one for one in found if one is not None)

    def _makers(
        self, function: ir.Function, path: str, depth: int
    ) -> tuple[tuple[ir.Function, ir.Expr], ...]:
        """The expressions that the network may have been made by, each with the function it stands in."""
        if not depth:
            return ()
        home: FileAnalysis = function.home
        key = (NetworkSizes._makers, function, path, depth)
        return home.effort.once(key, lambda: tuple(dict.fromkeys(self._found_makers(function, path, depth))))

    def _found_makers(
        self, function: ir.Function, path: str, depth: int
    ) -> Iterator[tuple[ir.Function, ir.Expr]]:
        head, _, rest = path.partition(".")
        owner = function.method
        if rest and owner is not None and owner.params and owner.params[0].name == head:
            yield from self._of_attribute(owner, rest, depth)
            return
        home: FileAnalysis = function.home
        for scope in function.scopes():
            if path in _assigned(scope):
                yield from self._of_values(scope, path, depth)
                return
            if any(param.name == path for param in scope.params):
                yield from self._of_parameter(home, scope, path, depth)
                return

    def _of_values(self, scope: ir.Function, path: str, depth: int) -> Iterator[tuple[ir.Function, ir.Expr]]:
        for value in _assigned(scope)[path]:
            inner = unwrapped(value)
            if inner.path == path:
                continue  # `net = net.cuda()`
            if inner.path is not None:
                yield from self._makers(scope, inner.path, depth - 1)
            else:
                yield scope, inner

    def _of_attribute(
        self, method: ir.Function, rest: str, depth: int
    ) -> Iterator[tuple[ir.Function, ir.Expr]]:
        home: FileAnalysis = method.home
        info = home.class_of(method)
        for one in info.ancestors() if info is not None else ():
            for other in one.cls.methods.values():
                own = other.params[0].name if other.params else ""
                if f"{own}.{rest}" in _assigned(other):
                    yield from self._of_values(other, f"{own}.{rest}", depth)

    def _of_parameter(
        self, home: FileAnalysis, function: ir.Function, name: str, depth: int
    ) -> Iterator[tuple[ir.Function, ir.Expr]]:
        """What the callers hand over: those of a constructor make an object of its class."""
        position = next(i for i, param in enumerate(function.params) if param.name == name)
        position -= 1 if function.cls is not None else 0
        for caller, call in _calls_of(home, function) if position >= 0 else ():
            given = call.argument(position, name)
            if given is None:
                continue
            inner = unwrapped(given)
            if inner.path is not None:
                yield from self._makers(caller, inner.path, depth - 1)
            else:
                yield caller, inner


def _is_none(maker: ir.Expr) -> bool:
    return isinstance(maker, ir.Const) and maker.value is None


def _most(built: list[Built]) -> Built:
    """The largest that a network may be, of several; none of them may be of rows alone, or without convolutions."""
    first = max(built, key=lambda one: (not one.seen, not one.complete, one.about))
    return replace(
        first,
        weights=max(one.weights for one in built),
        about=max(one.about for one in built),
        layers=max(one.layers for one in built),
        rows=all(one.rows for one in built),
        known=all(one.known for one in built),
        looks_up=all(one.looks_up for one in built),
        mixes=any(one.mixes for one in built),
        convolutions=max(one.convolutions for one in built),
    )


def _calls_of(home: FileAnalysis, function: ir.Function) -> Iterator[tuple[ir.Function, ir.Call]]:
    """The calls of a function in its file and, where there are none, in the files that import it."""
    found = False
    for caller, call in _calls_in(home, function):
        found = True
        yield caller, call
    if found or home.project is None:
        return
    for other in home.project.files_calling(home.filename, function) or ():
        yield from _calls_in(other, function)


def _calls_in(file: FileAnalysis, function: ir.Function) -> Iterator[tuple[ir.Function, ir.Call]]:
    if function.cls is None:
        yield from ((caller, call) for caller, _, call in calls_of(file, function))
        for caller, call in _named(file, function.name) if file is not function.home else ():
            callee = called_in_project(caller, call) if isinstance(call.func, ir.Attr) else None
            if callee is not None and are_of_one_file(callee, function):  # `tools.evaluate(net)`
                yield caller, call
        return
    wanted = function.cls.name if function.name == "__init__" else function.name
    yield from _named(file, wanted)


def _named(file: FileAnalysis, name: str) -> Iterator[tuple[ir.Function, ir.Call]]:
    for site in file.calls_named(name):
        yield site.caller, site.call


def _assigned(function: ir.Function) -> dict[str, list[ir.Expr]]:
    """The values that a function binds to its places, pairs taken apart."""
    found: dict[str, list[ir.Expr]] = {}
    for statement in ir.statements(function.body):
        if isinstance(statement, ir.Assign) and statement.value is not None:
            for target in statement.targets:
                if target.path is not None:
                    found.setdefault(target.path, []).append(statement.value)
                elif isinstance(target, ir.Seq) and isinstance(statement.value, ir.Seq):
                    for part, value in zip(target.items, statement.value.items, strict=False):
                        if part.path is not None:
                            found.setdefault(part.path, []).append(value)
                elif isinstance(target, ir.Seq):
                    for part in target.items:
                        if part.path is not None:
                            found.setdefault(part.path, []).append(statement.value)
    return found
