"""What ties memory that only the collector frees, and which edge is to be cut."""

import functools
import gc
import weakref
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from gpulint.runtime.holding.cycles import collected  # noqa: E402
from gpulint.runtime.probes.base import Block  # noqa: E402
from gpulint.runtime.probes.frames import Frames  # noqa: E402
from gpulint.runtime.probes.host import HostProbe  # noqa: E402

key_of = functools.partial(HostProbe.key, None)


class Probe(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(8, 8))

        def hook(module, inputs, output):
            return output * len(self._modules)

        self.net.register_forward_hook(hook)


class Bound(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(8, 8)
        self.fc.register_forward_hook(self.save)

    def save(self, module, inputs, output):
        return None


class Child:
    def __init__(self, parent):
        self.parent = parent
        self.big = torch.zeros(64)


class Parent:
    def __init__(self):
        self.child = Child(self)


class Keeps(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.out = out = x.exp()
        return out

    @staticmethod
    def backward(ctx, gradient):
        return gradient * ctx.out


def failing():
    big = torch.zeros(64)
    try:
        raise ValueError(str(big.sum()))
    except ValueError as error:
        last = error
    return bool(last)


def applied():
    Keeps.apply(torch.zeros(64, requires_grad=True))


MADE = {
    "closure": (Probe, "`Probe.__init__.hook()` closes over `self`", "def hook("),
    "method": (Bound, "the bound method `Bound.save` holds its object", "def save("),
    "attribute": (Parent, "attribute `parent` of `Child` leads back", "self.parent ="),
    "ctx": (applied, "`ctx.out` of `Keeps`", "ctx.out = out"),
    "exception": (failing, "`last` in `failing()` is an exception", "last = error"),
}


@pytest.mark.parametrize("name", MADE)
def test_the_edge_to_cut_is_named(name):
    make, cut, line = MADE[name]
    gc.collect()
    gc.disable()
    try:
        before = {id(one) for one in gc.get_objects()}
        make()
        fresh = [
            one for one in gc.get_objects() if issubclass(type(one), torch.Tensor) and id(one) not in before
        ]
        targets = {key_of(one): Block(0, "device", 0, one.untyped_storage().nbytes()) for one in fresh}
        size = sum(block.size for block in targets.values())
        del fresh
        found = collected(targets, key_of, Frames(str(Path(__file__).parent)), gc.collect)
    finally:
        gc.enable()
    (cycle,) = found
    assert cycle.cut.startswith(cut), cycle
    assert cycle.file == str(Path(__file__))
    source = Path(__file__).read_text().splitlines()
    assert line in source[cycle.line - 1]
    assert 0 < cycle.bytes <= size
    assert cycle.chain


def test_nothing_is_kept_of_what_was_looked_at():
    flags = gc.get_debug()
    gc.collect()
    Parent()
    alive = [one for one in gc.get_objects() if type(one) is Child]
    keys = {key_of(one.big): Block(0, "device", 0, 512) for one in alive}
    assert len(alive) == 1
    alive.clear()
    (cycle,) = collected(keys, key_of, Frames(str(Path(__file__).parent)), gc.collect)
    assert cycle.chain == ("`Parent.child`", "`Child`") or cycle.chain == ("`Child.parent`", "`Parent`")
    assert not [one for one in gc.get_objects() if type(one) in (Child, Parent)]
    assert (gc.get_debug(), gc.garbage) == (flags, [])


def test_garbage_without_memory_of_interest_is_only_collected():
    Parent()
    assert collected({}, key_of, Frames(str(Path(__file__).parent)), gc.collect) == []
    assert not [one for one in gc.get_objects() if type(one) is Child]


def test_what_hangs_on_a_cycle_through_nodes_of_a_graph_is_collected_too():
    gc.collect()
    gc.disable()
    try:
        first = Keeps.apply(torch.zeros(64, requires_grad=True))
        last = Keeps.apply(Keeps.apply(first))
        storages = [weakref.ref(one.untyped_storage()) for one in (first, last)]
        targets = {key_of(one): Block(0, "device", 0, 256) for one in (first, last)}
        del first, last
        collected(targets, key_of, Frames(str(Path(__file__).parent)), gc.collect)
        assert gc.collect() == 0
        assert not any(one() is not None for one in storages)
    finally:
        gc.enable()
