"""What operators touch while they are followed, and who holds what they leave alone."""

import copy
import functools
import json
import sys
import threading
from pathlib import Path

import pytest
import starting
import warm

torch = pytest.importorskip("torch")

from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack  # noqa: E402

from gpulint.runtime.holding.idle import idle, tensors_of  # noqa: E402
from gpulint.runtime.probes.base import Block  # noqa: E402
from gpulint.runtime.probes.dispatch import Trace  # noqa: E402
from gpulint.runtime.probes.frames import Frames  # noqa: E402
from gpulint.runtime.probes.host import HostProbe  # noqa: E402
from gpulint.runtime.probes.plain import live_tensors  # noqa: E402

HOME = str(Path(__file__).parent)
key_of = functools.partial(HostProbe.key, None)


def network():
    return torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.GELU(), torch.nn.Linear(32, 8))


# -- the trace -----------------------------------------------------------------------------------------------


def test_forward_backward_and_optimizer_touch_and_copies_do_not():
    net, teacher = network(), network().eval()
    optimizer = torch.optim.AdamW(net.parameters())
    average = [weight.detach().clone() for weight in net.parameters()]

    def step():
        x = torch.randn(4, 8)
        with torch.no_grad():
            wanted = teacher(x)
        (net(x) - wanted).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        with torch.no_grad():
            torch._foreach_lerp_(average, list(net.parameters()), 0.1)

    step()
    old = [weight.detach().clone() for weight in net.parameters()]
    trace = Trace()
    assert trace.begin()
    assert trace.on
    step()
    states = [state["exp_avg"] for state in optimizer.state.values()]
    used = [*net.parameters(), *teacher.parameters(), *average, *states]
    assert trace.end([*used, *old]) == [True] * len(used) + [False] * len(old)
    assert not trace.on


def test_a_view_touches_all_of_its_storage():
    whole = torch.zeros(100)
    trace = Trace()
    trace.begin()
    whole[3:5].add_(1)
    assert trace.end([whole]) == [True]


class Own(TorchDispatchMode):
    """One that a script has entered."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append(func)
        return func(*args, **(kwargs or {}))


def test_modes_of_the_scripts_own_stay_as_they_are():
    trace, own = Trace(), Own()
    with own:
        assert not trace.begin()  # its end must find it on top
    assert trace.begin()
    with own:
        whole = torch.zeros(3)
        assert trace.end([whole, torch.Tensor.clone(whole)]) == [True, True]
        assert not trace.on
        before = len(own.seen)
        whole.exp()
        assert own.seen[before:] == [torch.ops.aten.exp.default]
    assert _get_current_dispatch_mode_stack() == []


def test_a_trace_ended_on_another_thread_says_nothing():
    trace, said = Trace(), []
    assert trace.begin()
    other = threading.Thread(target=lambda: said.append(trace.end([torch.zeros(3)])))
    other.start()
    other.join()
    assert said == [None]
    trace.drop()
    assert _get_current_dispatch_mode_stack() == []


def test_a_sparse_tensor_touches_what_it_is_made_of():
    indices, values = torch.tensor([[0, 1], [0, 1]]), torch.ones(2)
    sparse = torch.sparse_coo_tensor(indices, values, (2, 2))
    trace = Trace()
    trace.begin()
    sparse @ torch.ones(2, 1)
    assert trace.end([values]) == [True]


# -- who holds it --------------------------------------------------------------------------------------------


class Finder:
    def __init__(self, net, optimizer):
        self.net, self.optimizer = net, optimizer
        self.before = copy.deepcopy(net.state_dict())


def found_among(used, holders):
    """What is told of all tensors but those that `used` leads to; `holders` is there to hold them."""
    used = list(used)
    taken = {key_of(tensor) for tensor in used}
    sizes = {key_of(one): one.untyped_storage().nbytes() for one in torch_tensors() if one.numel()}
    alive = {key: Block(0, "device", -1, size) for key, size in sizes.items()}
    unused = {key for key in tensors_of(alive, key_of) if key not in taken}
    del used, holders  # or these would be the holders
    frames = Frames(HOME)
    return [one for one, _ in idle(alive, unused, key_of, frames, 1024)]


def torch_tensors():
    found = live_tensors()
    return found + [one.grad for one in found if one.is_leaf and one.grad is not None]


def told(found, written):
    (one,) = (one for one in found if one.written == written)
    return one


def test_a_copy_is_told_by_its_attribute_and_not_by_the_object_that_holds_what_is_used_too():
    net = network()
    finder = Finder(net, torch.optim.SGD(net.parameters()))
    one = told(found_among(net.parameters(), finder), "finder.before")
    assert one.bytes == one.freed == 4 * (8 * 32 + 32 + 32 * 8 + 8)
    assert one.others == ()
    assert one.text.startswith("`finder.before` in `test_a_copy_is_told")
    assert one.line == next(
        n for n, text in enumerate(Path(__file__).read_text().splitlines(), 1) if "self.before =" in text
    )


def test_what_is_not_used_at_all_is_told_as_a_whole():
    net, learner = network(), {"net": network(), "name": "old"}
    found = found_among(net.parameters(), learner)
    assert told(found, "learner").count == 4


def test_what_something_else_holds_too_is_not_given_back():
    net, checkpoint = network(), {"model": network().state_dict()}
    best = list(checkpoint["model"].values())[:1]
    found = found_among(net.parameters(), (checkpoint, best))
    one, shared = told(found, "checkpoint"), told(found, "best")
    assert one.freed == one.bytes == 4 * (32 + 32 * 8 + 8)
    assert (shared.bytes, shared.freed, shared.others) == (4 * 8 * 32, 0, ("`checkpoint['model']`",))


def test_a_leftover_gradient_is_written_as_a_person_would():
    net, frozen = network(), network()
    frozen(torch.ones(2, 8)).sum().backward()
    others = [weight.grad for weight in frozen.parameters() if weight is not frozen[0].weight]
    found = found_among([*net.parameters(), *frozen.parameters(), *others], frozen)
    assert told(found, "frozen[0].weight.grad").count == 1


# -- as a user runs it ---------------------------------------------------------------------------------------

PROGRAM = """
import copy
import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
net = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 128)).to(device)
optimizer = torch.optim.Adam(net.parameters())
best = copy.deepcopy(net.state_dict())
for step in range(60):
    x = torch.randn(16, 128, device=device)
    loss = (net(x) - x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_a_copy_that_nothing_touches_is_reported_and_can_be_limited(tmp_path):
    starting.write(tmp_path, PROGRAM)
    command = "-m gpulint verify -q --untouched 64KiB --output-format json train.py".split()
    done = warm.run_linter([sys.executable, *command], capture_output=True, text=True, cwd=tmp_path)
    found = json.loads(done.stdout)
    (one,) = found["idle"]
    size = 4 * (128 * 256 + 256 + 256 * 128 + 128)
    assert one["what"]["written"] == "best"
    assert one["what"]["line"] == 9
    assert size <= one["what"]["freed"] == one["what"]["bytes"] <= size + 4 * 512
    assert [check["status"] for check in found["gate"]["checks"]] == ["exceeded"]
    assert found["drift"] == 0
    assert done.returncode == 1, done.stderr
    assert done.stderr == ""


def test_a_tuple_of_two_steps_is_no_gatherer_where_a_list_is() -> None:
    from gpulint.runtime.holding.holders import _holding

    kept = torch.zeros(1)
    entry = (kept, kept)
    ring, root = [entry], object()
    epochs = {id(kept): {1}, id(entry): {1, 2}, id(ring): {1, 2, 3}}
    assert _holding([kept, entry, ring, root], epochs, {}, 2) == 2
    assert _holding([kept, entry, root], epochs, {}, 2) == 1
