"""Whether a checkpoint, or a copy of a network's weights, is much beside what a training takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from gpulint.analysis.questions.size.networks import LARGE, SMALL, TINY, NetworkSizes, Size
from gpulint.analysis.torch.sizes import LARGE_PICTURES, SMALL_PICTURES, of_name
from gpulint.answers import Answer, Question, left_open, unweighed

if TYPE_CHECKING:
    from gpulint.analysis.code import ir
    from gpulint.analysis.file.program import FileAnalysis

_MOST_LAYERS_UNSEEN = 3  # of fewer, what is in sight says nothing of the whole


def checkpoint_doubts(
    ask: Callable[[Callable[[FileAnalysis], Any]], Any],
    function: ir.Function,
    owners: Sequence[str],
    with_optimizer: bool,
    restores_optimizer: bool = False,
) -> Iterator[Answer]:
    """What leaves it open whether a checkpoint is large that is restored to these networks, `with_optimizer` or without.
    Where nothing `restores_optimizer`, that it has an optimizer's state is told by what the program saves elsewhere."""
    sizes = _sizes(ask, function, owners)
    if any(size.is_large for _, size in sizes):
        return
    seen = sum(size.most.about for _, size in sizes)
    layers = sum(size.most.layers for _, size in sizes)
    if are_small(ask, function, owners):
        yield left_open(Question.SIZE, _in_words(sizes))
        if not with_optimizer or seen < TINY:
            yield left_open(Question.SIZE, "what else is in the checkpoint is not seen to be large")
    elif with_optimizer:
        if layers > _MOST_LAYERS_UNSEEN and seen < SMALL // 2:
            yield left_open(Question.SIZE, f"as far as it can be seen, {_in_words(sizes)}")
        elif _is_of_small_pictures(function.home):
            yield left_open(Question.SIZE, "networks for such small pictures are small, as a rule")
        elif not layers and restores_optimizer:
            if any((of_name(owner) or 0) >= LARGE for owner in owners):
                return
            yield unweighed(Question.SIZE, "how large the network is, the code does not say")
        elif not layers:
            clause = "that it has an optimizer's state is only told by what is saved, and how large it is by nothing"
            yield left_open(Question.SIZE, clause)
    elif seen >= LARGE:
        yield left_open(Question.SIZE, f"as far as it can be seen, {_in_words(sizes)}")
    else:
        yield left_open(Question.SIZE, "how large it is, the code does not say")
        yield left_open(Question.SIZE, "no optimizer's state is seen in it, but weights alone")


def ranks_doubts(
    ask: Callable[[Callable[[FileAnalysis], Any]], Any], function: ir.Function, owners: Sequence[str]
) -> Iterator[Answer]:
    """What leaves it open whether a checkpoint is large that every rank brings to one GPU, for these networks."""
    if are_small(ask, function, owners):
        yield left_open(
            Question.SIZE, f"all ranks load it onto one GPU, but {_in_words(_sizes(ask, function, owners))}"
        )


def copy_doubts(
    ask: Callable[[Callable[[FileAnalysis], Any]], Any], function: ir.Function, owner: str
) -> Iterator[Answer]:
    """What leaves it open whether one more copy of a network's weights is much."""
    size = ask(NetworkSizes).of(function, owner) if owner else None
    if size is None or not (size.is_large or size.most.about >= LARGE):
        known = size is not None and (size.is_small or size.looks_small)
        clause = (
            size.in_words(owner) if size is not None and known else "how large it is, the code does not say"
        )
        where = size.made_in(function.home) if size is not None and known else (None, "")
        yield left_open(Question.SIZE, clause, *where)


def held_doubts(
    ask: Callable[[Callable[[FileAnalysis], Any]], Any], function: ir.Function, name: str
) -> Iterator[Answer]:
    """What leaves it open whether what a name holds is much: a network is known to be, anything else may be."""
    size = ask(NetworkSizes).of(function, name)
    if size is None or size.most.about < SMALL:
        yield unweighed(Question.SIZE, f"how large what `{name}` holds is, the code does not say")


def are_small(
    ask: Callable[[Callable[[FileAnalysis], Any]], Any], function: ir.Function, owners: Sequence[str]
) -> bool:
    """Whether all of some networks are seen to have few weights, together as well."""
    sizes = _sizes(ask, function, owners)
    together = sum(size.most.weights for _, size in sizes)
    return len(sizes) == len(owners) > 0 and all(size.is_small for _, size in sizes) and together < SMALL


def _sizes(
    ask: Callable[[Callable[[FileAnalysis], Any]], Any], function: ir.Function, owners: Sequence[str]
) -> list[tuple[str, Size]]:
    found = ((name, ask(NetworkSizes).of(function, name)) for name in owners)
    return [(name, size) for name, size in found if size is not None]


def _in_words(sizes: Sequence[tuple[str, Size]]) -> str:
    name, size = max(sizes, key=lambda one: one[1].most.about)
    return size.in_words(name)


def _is_of_small_pictures(file: FileAnalysis) -> bool:
    words = {word for evidence in file.evidence.values() for word in (*evidence.words, *evidence.strings)}
    return bool(words & SMALL_PICTURES) and not words & LARGE_PICTURES
