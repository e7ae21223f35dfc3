"""Whether what a forward saves for a backward is much: how large its network is, and how much goes through it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.questions.repeats.acting import acts
from gpulint.analysis.questions.repeats.amounts import (
    goes_through_batches,
    is_one_sample,
)
from gpulint.analysis.questions.size.networks import NARROW, SMALL, NetworkSizes, Size
from gpulint.analysis.torch import frameworks
from gpulint.analysis.torch.sizes import of_name
from gpulint.answers import Answer, Question, left_open, refuted, unweighed

if TYPE_CHECKING:
    from gpulint.analysis.file.facts import Forward
    from gpulint.analysis.file.program import FileAnalysis
_OF_ONE = "one sample at a time goes through it, and what is seen of the network is small"
_FEW_LAYERS = 16  # of a freed graph each leaves some nodes of half a kilobyte, in each step
_UNKNOWN = "how large the network is, the code does not say"


def are_mostly_frozen(forwards: Iterable[Forward]) -> bool:
    """Whether each forward is of a network that is frozen but for a small part: it saves what that part is given alone."""
    known = [str(forward.module.network) in frameworks.MOSTLY_FROZEN for forward in forwards]
    return bool(known) and all(known)


class ForwardSizes:
    """The doubts about how much the forwards of one file save."""

    def __init__(self, file: FileAnalysis) -> None:
        self._file = file
        self._sizes = NetworkSizes(file)

    def _is_much(self, function: ir.Function, call: ir.Call, path: str, size: Size | None) -> bool:
        """Whether something shows that what one call saves is worth speaking of: pictures go through convolutions, or the
        network is known to be large, or batches go through one that is not known to be narrow."""
        if _is_much(path, size):
            return True
        narrow = size is not None and size.is_narrow and not size.most.mixes
        return not narrow and goes_through_batches(self._file, function, call)

    def _is_little_of_one(self, function: ir.Function, call: ir.Call, path: str, size: Size | None) -> bool:
        """Whether one sample at a time goes through a network that is small, as far as it is seen."""
        if size is None or not _saves_little_of_one(path, size):
            return False
        return is_one_sample(self._file, function, call)

    def _of_call(
        self, function: ir.Function, call: ir.Call, path: str, network: object
    ) -> tuple[str, Size | None]:
        """The network that is called, or the one that a method is called of, `clip.encode_image(x)`, and its size."""
        size = self._sizes.of(function, path, network) if path else None
        owner = call.func.base.path if isinstance(call.func, ir.Attr) else None
        if size is None and owner is not None:
            found = self._sizes.of(function, owner)
            return (owner, found) if found is not None else (path, None)
        return path, size

    def _of_acting(
        self, function: ir.Function, call: ir.Call, path: str, size: Size | None
    ) -> Iterator[Answer]:
        if size is not None and (size.is_large or (size.most.convolutions and size.most.about >= NARROW)):
            return  # of each state it saves more than rows, or than a few small pictures
        if acts(self._file, function, call):
            why = f"`{path or call.method}` is given one state of an environment at a time"
            yield left_open(Question.SIZE, why)

    def of_step(
        self, function: ir.Function, call: ir.Call, path: str, network: object = None
    ) -> Iterator[Answer]:
        """The same of a network that a training step runs on its one batch, and lets go of at once."""
        size = self._sizes.of(function, path, network) if path else None
        if size is not None and size.is_toy_of_rows:
            yield refuted(Question.SIZE, size.in_words(path), *size.made_in(self._file))
        elif size is not None and _is_little(size):
            rows = ", in nothing but linear layers" if size.is_of_rows else ""
            yield left_open(Question.SIZE, f"{size.in_words(path)}{rows}", *size.made_in(self._file))
            yield left_open(Question.REPEATS, "it is let go of in each step, and may not matter beside it")
        elif acting := tuple(self._of_acting(function, call, path, size)):
            yield from acting
        elif not _is_much(path, size):
            yield unweighed(Question.SIZE, _UNKNOWN)
        elif size is not None and size.looks_narrow:
            yield unweighed(Question.SIZE, size.in_words(path), *size.made_in(self._file))

    def of_graph(self, forwards: Iterable[Forward]) -> Iterator[Answer]:
        """The same of the graph that some forwards make together, whose losses go backward."""
        little: list[tuple[str, Size]] = []
        others = 0
        alone = False
        for one in forwards:
            path, size = self._of_call(one.function, one.call, one.module.path, one.module.network)
            if self._is_little_of_one(one.function, one.call, path, size):
                alone = True
            elif self._is_much(one.function, one.call, path, size):
                return
            if size is not None and _is_little(size):
                little.append((path, size))
            else:
                others += 1
        if little and not others:
            path, size = max(little, key=lambda one: one[1].most.about)
            yield left_open(Question.SIZE, size.in_words(path), *size.made_in(self._file))
        else:
            yield unweighed(Question.SIZE, _OF_ONE if alone else _UNKNOWN)

    def of_nodes(self, forwards: Iterable[Forward]) -> Iterator[Answer]:
        """The same of the nodes of a graph that is freed: each layer leaves some, however wide it is."""
        named: list[str] = []
        layers = 0
        for one in forwards:
            path, size = self._of_call(one.function, one.call, one.module.path, one.module.network)
            if size is None or not size.most.seen or not size.most.layers:
                return
            layers += size.most.layers
            named.append(f"`{path}`")
        if named and layers <= _FEW_LAYERS:
            what = " and ".join(dict.fromkeys(named))
            number = "one layer" if layers == 1 else f"{layers} layers"
            yield unweighed(Question.SIZE, f"what freed graphs of {number} leave may be little: {what}")


def _is_much(path: str, size: Size | None) -> bool:
    """Whether pictures go through a network, or it is known to be large."""
    if size is not None and (size.most.convolutions or size.most.about >= SMALL):
        return True
    return (of_name(path) or 0) >= SMALL


def _saves_little_of_one(path: str, size: Size) -> bool:
    """Whether one sample seems to leave little in a network: what is seen of it, more than the layer that is put behind another
    network, is narrow where it takes pictures, small else, and neither attends nor takes points of space or volumes."""
    most = size.most
    seen = most.layers > 1 and not most.mixes and (of_name(path) or 0) < SMALL
    return seen and most.about < (NARROW if most.convolutions else SMALL)


def _is_little(size: Size) -> bool:
    return size.is_toy or size.is_of_rows or size.is_narrow
