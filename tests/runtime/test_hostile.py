"""The search for holders runs nothing of the user's: an object graph full of classes that would tell on it."""

import collections
import functools
import gc
import sys
import types
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from gpulint.runtime.holding import holders  # noqa: E402
from gpulint.runtime.holding.walking import grad_fn_of, grad_of, saved_by  # noqa: E402
from gpulint.runtime.observing.forwards import Forwards  # noqa: E402
from gpulint.runtime.probes.base import Block  # noqa: E402
from gpulint.runtime.probes.frames import Frames  # noqa: E402
from gpulint.runtime.probes.host import HostProbe  # noqa: E402
from gpulint.runtime.probes.plain import has_parameters  # noqa: E402

RUN: list[str] = []
key_of = functools.partial(HostProbe.key, None)


def tell(what):
    """A method that is not to be called."""

    def told(*_, **__):
        RUN.append(what)
        raise RuntimeError(f"{what} was called")

    return told


NAMES = (
    "__iter__ __len__ __bool__ __eq__ __ne__ __repr__ __str__ __contains__ __getitem__ __dir__ "
    "values keys items get copy numel element_size untyped_storage"
).split()
METHODS = {name: tell(name) for name in NAMES}
LOOKS = {**METHODS, "__getattr__": tell("__getattr__"), "__hash__": object.__hash__}
LIES = {"__class__": property(tell("__class__")), "__dict__": property(tell("__dict__"))}


class Meta(type):
    """A class of classes that minds being asked."""

    def __getattr__(cls, name):
        tell(f"Meta.{name}")()

    def __instancecheck__(cls, one):
        tell("Meta.__instancecheck__")()

    def __subclasscheck__(cls, one):
        tell("Meta.__subclasscheck__")()


def graph(tensors):
    """One hostile object for each of the tensors, which it holds."""
    kept = []
    Plain = type("Plain", (), {**LOOKS, "__module__": __name__})
    Asked = type(
        "Asked", (), {**METHODS, "__getattribute__": tell("__getattribute__"), "__hash__": object.__hash__}
    )
    Liar = type("Liar", (), {**METHODS, **LIES, "__hash__": object.__hash__})
    Slotted = type("Slotted", (), {**LOOKS, "__slots__": ("held",)})
    for kind, tensor in zip((Plain, Asked, Liar, Slotted), tensors, strict=False):
        kept.append(object.__new__(kind))
        object.__setattr__(kept[-1], "held", tensor)
    more = (collections.deque, collections.OrderedDict, collections.UserDict)
    for base in (list, tuple, dict, set, frozenset, *more):
        kind = type(f"A{base.__name__}", (base,), {**METHODS, "__hash__": object.__hash__})
        tensor = tensors[len(kept)]
        if base is collections.UserDict:
            one = object.__new__(kind)
            one.__dict__["data"] = {"x": tensor}
        elif issubclass(base, dict):
            one = base.__new__(kind)
            base.__init__(one)
            dict.__setitem__(one, "x", tensor)
        elif base in (list, collections.deque):
            one = kind()
            base.append(one, tensor)
        else:
            one = base.__new__(kind, [tensor])
            if base is set:
                set.add(one, tensor)
        kept.append(one)
    made = Meta("Made", (), dict(METHODS))
    type.__setattr__(made, "held", tensors[len(kept)])
    kept.append(made)
    lazy = type("Lazy", (types.ModuleType,), {"__getattr__": tell("module")})("lazy")
    sys.modules["tests_lazy_module"] = lazy
    return kept


def blocks(tensors):
    return {key_of(tensor): Block(0, "device", number, 512) for number, tensor in enumerate(tensors)}


def test_nothing_of_the_users_runs_and_everything_is_found():
    RUN.clear()
    tensors = [torch.zeros(10) + number for number in range(13)]
    targets = blocks(tensors)
    hostile = graph(tensors)
    tensors.clear()
    try:
        found = holders.find(targets, key_of, range(0), Frames(str(Path(__file__).parent)))
    finally:
        sys.modules.pop("tests_lazy_module", None)
    assert RUN == []
    assert sum(holder.bytes for holder in found) == 512 * len(targets)
    assert {holder.variable.split("[")[0].split(".")[0] for holder in found} <= {"hostile", "self", "Made"}
    assert len(hostile) == len(targets)


def test_a_subclass_of_tensor_is_not_asked():
    class Asking(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, kinds, args=(), kwargs=None):
            RUN.append(getattr(function, "__name__", "?"))
            return super().__torch_function__(function, kinds, args, kwargs or {})

        grad_fn = property(tell("grad_fn"))

    kept = [torch.zeros(10).as_subclass(Asking)]
    targets = blocks(kept)
    RUN.clear()
    found = holders.find(targets, key_of, range(0), Frames(str(Path(__file__).parent)))
    assert RUN == []
    assert [holder.variable for holder in found] == ["kept"]


def test_no_hook_unpacks_what_a_graph_has_saved():
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return 2 * x

        @staticmethod
        def backward(ctx, gradient):
            return 2 * gradient

    unpacked: list[int] = []

    def unpack(packed):
        unpacked.append(1)
        return packed

    weight = torch.zeros(10, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda one: one, unpack):
        out = Twice.apply(weight.exp()).exp()
    nodes, seen = [out.grad_fn], []
    while nodes:
        node = nodes.pop()
        seen += list(saved_by(node))
        nodes += [after for after, _ in node.next_functions if after is not None]
    assert sum(issubclass(type(one), torch.Tensor) for one in seen) >= 3
    assert unpacked == []


def test_a_view_that_cannot_be_differentiated_any_more_is_passed_over():
    flat = torch.zeros(8, requires_grad=True)
    with torch.no_grad():
        base = flat.detach().clone()
    base.requires_grad_()
    parts = torch.split(base * 1, 4)
    with torch.no_grad():
        parts[0]._base.add_(1)
    with pytest.raises(RuntimeError, match="view"):
        parts[0].grad_fn  # noqa: B018
    assert grad_fn_of(parts[0]) is grad_of(parts[0]) is None
    found = holders.find(blocks([parts[0]]), key_of, range(0), Frames(str(Path(__file__).parent)))
    assert [holder.variable.split("[")[0] for holder in found] == ["parts"]


def test_a_network_is_not_asked_for_its_parameters():
    class Shy(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Linear(2, 2))

        parameters = tell("parameters")
        named_parameters = tell("named_parameters")

    RUN.clear()
    assert has_parameters(Shy())
    assert not has_parameters(torch.nn.Sequential(torch.nn.ReLU()))
    assert RUN == []


def test_the_profiler_knows_the_call_that_stands_in_for_a_modules():
    net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
    forwards = Forwards(Frames(str(Path(__file__).parent)), lambda module: None, lambda: 0)
    original = torch.nn.Module.__call__
    forwards.start()
    try:
        with torch.profiler.profile(
            activities=[torch.profiler.ProfilerActivity.CPU], with_stack=True
        ) as profile:
            net(torch.zeros(1, 4))
        assert torch.nn.Module.__call__.__name__ == original.__name__
    finally:
        forwards.stop()
    assert any(event.key == "aten::linear" for event in profile.key_averages())
    gc.collect()
