"""The probes: what they count, what they tell apart, and that they count nothing of their own."""

import functools
import gc
import subprocess
import sys
import threading
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from sampling import Watch  # noqa: E402

from gpulint.runtime.holding import holders, walking  # noqa: E402
from gpulint.runtime.observing import machine  # noqa: E402
from gpulint.runtime.observing.calls import Calls  # noqa: E402
from gpulint.runtime.probes import hooks  # noqa: E402
from gpulint.runtime.probes.base import Block  # noqa: E402
from gpulint.runtime.probes.cuda import CudaProbe  # noqa: E402
from gpulint.runtime.probes.frames import Frames  # noqa: E402
from gpulint.runtime.probes.host import HostProbe  # noqa: E402
from gpulint.runtime.record.result import Figures  # noqa: E402

HERE = str(Path(__file__).parent)
NEEDS_GPU = (pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"))


def needs_gpu(test):
    return functools.reduce(lambda test, mark: mark(test), NEEDS_GPU, test)


@pytest.fixture
def probe():
    one = HostProbe(Frames(HERE))
    one.start()
    yield one
    one.leave()


def births(probe: HostProbe, since: int = -1) -> list[tuple[int, str, int]]:
    return [
        (probe._frames.sites[block.site].line, block.place, block.size)
        for block in probe.born(since).values()
    ]


def views_of_one():
    base = torch.zeros(128)
    return [base[0], base.view(2, 64), base.add_(1), base.detach()]


SIZES = {
    "rounded": (
        lambda: [torch.empty(n, dtype=torch.uint8) for n in (1, 512, 513, 5000)],
        512 * (1 + 1 + 2 + 10),
    ),
    "empty and meta": (lambda: [torch.empty(0), torch.empty(1000, device="meta")], 0),
    "views and results in place": (views_of_one, 512),
    "grown": (lambda: torch.zeros(128).resize_(1024), 4096),
    "sparse": (lambda: torch.eye(64).to_sparse(), 2 * 64 * 8 + 512),
}


@pytest.mark.parametrize(("make", "size"), SIZES.values(), ids=SIZES)
def test_storages_are_counted_once_and_rounded_as_the_caching_allocator_rounds(probe, make, size):
    kept = make()
    gc.collect()
    assert probe.allocated() == size
    del kept
    gc.collect()
    assert probe.allocated() == 0


def test_memory_that_only_the_graph_holds_is_alive(probe):
    weight = torch.zeros(128, requires_grad=True)
    loss = (weight * 2).exp().sum()
    assert probe.allocated() == 3 * 512  # the weight, exp's saved result, the sum
    loss.backward()
    assert probe.allocated() == 3 * 512  # exp's result has gone, the gradient has come
    del loss
    assert probe.allocated() == 2 * 512


def test_births_in_backward_are_seen_at_the_line_that_calls_it(probe):
    weight = torch.zeros(1024, requires_grad=True)
    loss = weight.sum()
    probe.mark(True)
    line = sys._getframe().f_lineno + 1
    loss.backward()
    assert births(probe, 0) == [(line, "device", 4096)]


def test_the_highest_point_since_each_of_several_moments_is_known(probe):
    probe.begin_peak("part")
    big = torch.zeros(1 << 18)
    del big
    probe.begin_peak("line")
    small = torch.zeros(1 << 16)
    del small
    assert probe.peak("line") == 1 << 18
    assert probe.peak("part") == probe.peak() == 1 << 20
    probe.mark(True)
    assert (probe.peak("part"), probe.peak("line"), probe.peak()) == (1 << 20, 1 << 18, 0)


def test_a_move_to_the_host_and_a_move_to_the_device_are_copies(probe):
    device = torch.device("cpu")
    model = torch.nn.Linear(128, 128).to(device)
    out = model(torch.zeros(4, 128).to(device))
    before = probe.allocated()
    kept = [out.cpu(), out.to("cpu")]
    assert probe.allocated() == before
    assert all(one.data_ptr() != out.data_ptr() for one in kept)
    assert all(one.grad_fn is not None for one in kept)
    assert sum(size for _, place, size in births(probe) if place == "host") >= 2 * 2048
    back = kept[0].to(device)
    assert probe.allocated() == before + 2048
    assert back.grad_fn is not None


def test_a_batch_from_a_loader_is_on_the_host_until_it_is_moved():
    from torch.utils.data import DataLoader, TensorDataset

    device = torch.device("cpu")
    with Watch(home=HERE, device="cpu") as watch:
        probe = watch._harness.session.probe
        loader = DataLoader(TensorDataset(torch.zeros(8, 128)), batch_size=4)
        model = torch.nn.Linear(128, 1).to(device)
        before = probe.allocated()
        batches = [batch for (batch,) in loader]
        assert probe.allocated() == before
        moved = [batch.to(device) for batch in batches]
        assert probe.allocated() == before + 2 * 2048
        del moved, model


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_scripted_and_traced_programs_with_numbers_run_as_without_it(probe):
    class Shifted(torch.nn.Module):
        def forward(self, x):
            return x + 1.5, x * 2

    example = torch.ones(3)
    for program in (torch.jit.trace(Shifted(), example), torch.jit.script(Shifted())):
        assert [one.tolist() for one in program(example)] == [[2.5] * 3, [2.0] * 3]
    with pytest.raises(RuntimeError, match="size"):
        example.view(7)


def test_threads_that_start_are_seen_in_inference_mode_too(probe):
    sizes = []
    undo = hooks.threads(probe.join)

    def serve() -> None:
        for _ in range(3):
            with torch.inference_mode():
                before = probe.raw_bytes()
                kept = torch.ones(1024)
                sizes.append(probe.raw_bytes() - before)
                del kept

    worker = threading.Thread(target=serve)
    worker.start()
    worker.join()
    undo()
    assert sizes == [4096] * 3


def test_leaves_stay_leaves(probe):
    weight = torch.zeros(4, requires_grad=True)
    assert weight.to(torch.device("cpu")) is weight
    assert weight.cpu() is weight


def test_the_watcher_itself_reads_nothing():
    """A loop that allocates nothing that stays: no drift of any kind, on any probe."""
    with Watch(steps=20, home=HERE) as watch:
        for _ in range(25):
            torch.zeros(1000).sum()
            watch.step()
    result = watch.result
    assert result.drifts == ()
    assert len({sample.allocated for sample in result.samples if sample.sampled}) == 1


def test_a_window_ends_at_a_reading_that_tells_births_apart(monkeypatch):
    """A GPU's probe tells them at those marks alone at which it was asked to, and a step's mark may come first."""
    told = set()

    class Sparse(HostProbe):
        def mark(self, wanted):
            told.update([len(self._series)] if wanted else [])
            return super().mark(wanted)

        def attribute(self, mark):
            told.add(mark)

    monkeypatch.setattr(machine, "make_probe", lambda device, frames: Sparse(frames))
    with Watch(home=HERE, device="cpu") as watch:
        steps = watch._harness._steps
        steps.event()
        number = steps.mark()
        assert number not in told
        assert steps.mark_window() == number
        assert number in told


def test_a_hook_goes_as_it_came_and_leaves_what_others_have_put_over_it():
    class Owner:
        def call(self):
            return 1

    class Heir(Owner):
        pass

    def more(original):
        return lambda self: original(self) + 1

    inherited = hooks.wrap(Heir, "call", more)
    assert (Owner().call(), Heir().call()) == (1, 2)
    inherited()
    assert "call" not in vars(Heir)
    undo = hooks.wrap(Owner, "call", more)
    ours = Owner.call
    Owner.call = theirs = lambda self: 10 * ours(self)
    undo()
    assert Owner.call is theirs
    assert Owner().call() == 20


def test_watching_leaves_torch_as_it_was():
    def state():
        from torch.utils.data.dataloader import _BaseDataLoaderIter

        return (
            torch.nn.Module.__call__,
            torch.optim.Optimizer.__init__,
            torch.Tensor.to,
            torch.Tensor.cpu,
            torch.Tensor.item,
            torch.cuda.empty_cache,
            gc.collect,
            _BaseDataLoaderIter.__next__,
            torch.amp.GradScaler._maybe_opt_step,
        )

    before = state()
    with Watch(home=HERE):
        assert state() != before
    assert state() == before
    from torch.utils._python_dispatch import _get_current_dispatch_mode

    assert _get_current_dispatch_mode() is None


def test_saved_activations_of_an_evaluation_with_grad_are_measured():
    model = torch.nn.Sequential(torch.nn.Linear(128, 128), torch.nn.ReLU(), torch.nn.Linear(128, 128)).eval()
    x = torch.zeros(16, 128)
    with Watch(home=HERE, device="cpu") as watch:
        line = sys._getframe().f_lineno + 2
        for _ in range(3):
            model(x)
            watch.step()
        with torch.no_grad():
            model(x)
    result = watch.result
    found = {(forward.grad, forward.site.line): forward for forward in result.forwards}
    assert found[(True, line)].count == 3
    assert found[(True, line)].kept == 16 * 128 * 4
    assert found[(True, line)].output == 16 * 128 * 4
    assert found[(False, line + 3)].kept == 0


def test_naming_the_lines_of_a_block_imports_no_compiler():
    program = """
import sys, torch
from torch._C._profiler import gather_traceback, symbolize_tracebacks
from gpulint.runtime.probes.base import Block  # noqa: E402
from gpulint.runtime.probes.cuda import without_inductor
with without_inductor():
    print(symbolize_tracebacks([gather_traceback(python=True, script=True, cpp=False)])[0][0]["name"])
print("torch._inductor" in sys.modules, torch._inductor.__name__)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["<module>", "False", "torch._inductor"]


class Allocator:
    """What is asked of torch's caching allocator, of one card, with blocks of 512 bytes; and what was asked of its record."""

    def __init__(self, monkeypatch):
        self.blocks: dict[int, int] = {}  # address -> line
        self.asked: list[tuple[object, dict[str, object]]] = []
        figure = {"all": {"current": 0, "peak": 0}}
        names = ("allocated_bytes", "reserved_bytes", "active_bytes", "inactive_split_bytes")
        stats = dict.fromkeys(names, figure) | {"num_alloc_retries": 0, "num_ooms": 0}
        figure["all"]["current"] = 1
        for owner, name, put in (
            (torch._C, "_cuda_memoryStats", lambda device: stats),
            (torch._C, "_cuda_resetPeakMemoryStats", lambda device: None),
            (
                torch._C,
                "_cuda_memorySnapshot",
                lambda how: {"segments": self.segments(), "device_traces": []},
            ),
            (torch.cuda, "_lazy_call", lambda call: call()),
            (torch.cuda, "device_count", lambda: 1),
            (
                torch.cuda.memory,
                "_record_memory_history",
                lambda on="none", **how: self.asked.append((on, how)),
            ),
        ):
            monkeypatch.setattr(owner, name, put, raising=False)

    def segments(self):
        frames = {n: [{"filename": __file__, "line": line, "name": "f"}] for n, line in self.blocks.items()}
        blocks = [
            {"address": n, "size": 512, "state": "active_allocated", "frames": frames[n]} for n in self.blocks
        ]
        return [{"device": 0, "address": 0, "blocks": blocks}]


def test_what_is_born_between_readings_of_a_gpu(monkeypatch):
    allocator = Allocator(monkeypatch)
    probe = CudaProbe(Frames(HERE))
    probe.watch(True)
    probe.start()
    allocator.blocks = {0: 1, 512: 2, 1024: 3}
    figures = probe.mark(True)
    assert figures == Figures(
        allocated=1, reserved=1, active=1, inactive_split=1, retries=0, ooms=0, peak=0
    )  # as the allocator says
    allocator.blocks |= {512: 4, 1536: 5}  # of the first address another has come, and gone again
    probe.mark(True)
    allocator.blocks |= {512: 2, 2048: 6}
    probe.settle()
    born = {
        key: (probe._frames.sites[one.site].line, one.epoch, one.size) for key, one in probe.born(0).items()
    }
    assert born == {512: (2, 1, 512), 1536: (5, 0, 512), 2048: (6, 1, 512)}
    assert sorted(probe.alive()) == [0, 512, 1024, 1536, 2048]
    probe.stop()
    states = {"context": "state", "stacks": "python"}
    assert allocator.asked == [("state", states), (None, {})]


@pytest.mark.parametrize("whole", [True, False])
def test_what_a_gpus_record_is_asked_for(monkeypatch, whole):
    allocator = Allocator(monkeypatch)
    probe = CudaProbe(Frames(HERE))
    if whole:
        probe.keep_history()
    else:
        probe.follow_peaks()
    probe.start()
    ((on, how),) = allocator.asked
    assert (on, how["context"], how["stacks"]) == ("all", "all" if whole else "alloc", "python")


@needs_gpu
def test_the_watcher_allocates_nothing_on_the_device():
    before = torch.cuda.memory_allocated()
    with Watch(steps=5, home=HERE, device="cuda") as watch:
        torch.zeros(1, device="cuda")
        for _ in range(10):
            watch.step()
    assert torch.cuda.memory_allocated() == before
    assert watch.result.drifts == ()


@needs_gpu
def test_the_scripts_own_peak_figures_stay_true():
    torch.cuda.reset_peak_memory_stats()
    with Watch(steps=5, home=HERE, device="cuda") as watch:
        big = torch.zeros(64 << 20, device="cuda")
        del big
        watch.step()
        watch.step()
        assert torch.cuda.max_memory_allocated() >= 256 << 20
        torch.cuda.reset_peak_memory_stats()
        assert torch.cuda.max_memory_allocated() < 256 << 20
        watch.step()
    assert [(sample.peak or 0) >= 256 << 20 for sample in watch.result.samples] == [True, False, False]


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=NEEDS_GPU)])
def test_each_backward_parts_a_step(device):
    weight = torch.zeros(1 << 18, device=device, requires_grad=True)
    with Watch(home=HERE, device=device) as watch:
        for backwards in (1, 2, 3):
            for _ in range(backwards):
                (weight * 2).exp().sum().backward()
            weight.grad = None
            watch.step()
    samples = watch.result.samples
    assert [len(sample.parts) for sample in samples] == [0, 3, 4]  # one backward tells no more than the step
    for sample in samples[1:]:
        *parts, rest = sample.parts
        assert all(part.peak >= part.allocated + (1 << 20) for part in parts)
        assert max(part.peak for part in parts) == sample.peak
        assert rest.allocated == sample.allocated < parts[-1].allocated == rest.peak


@needs_gpu
def test_fragmentation_is_told_from_a_leak():
    import random

    lengths = random.Random(0)
    with Watch(steps=40, home=HERE, device="cuda") as watch:
        keep = None
        for _ in range(45):
            size = lengths.randint(20, 400) << 20
            keep = torch.empty(size, dtype=torch.uint8, device="cuda"), keep and keep[0]
            watch.step()
    assert watch.result.leaks() == ()
    assert any(trend.status == "fragmentation" for trend in watch.result.trends)


# -- what is left out to be cheap, and that nothing is missed by it ----------------------------------------


def test_a_leak_that_begins_after_the_second_look_is_named():
    kept = []
    with Watch(steps=30, home=HERE, device="cpu") as watch:
        for step in range(35):
            tensor = torch.zeros(1000) + step
            if step >= 16:  # the second look is after the thirteenth step
                kept.append(tensor)
            watch.step()
    result = watch.result
    (leak,) = result.leaks()
    assert leak.bytes_per_step == 4096
    assert result.holders[0].text.startswith("list `kept`")


def test_nodes_that_pile_up_late_are_found_though_nothing_else_does():
    weight = torch.zeros(8, requires_grad=True)
    total: Any = 0.0
    with Watch(steps=20, home=HERE, device="cpu") as watch:
        for step in range(25):
            loss = (weight * step).sum()
            loss.backward()
            if step >= 15:
                total = total + loss
            watch.step()
    result = watch.result
    assert result.leaks() == ()
    assert [holder.variable for holder in result.holders if holder.nodes] == ["total"]


def test_a_look_that_others_follow_names_what_leaks_and_nothing_else(monkeypatch):
    asked: list[int] = []
    find = holders.find
    monkeypatch.setattr(
        holders, "find", lambda targets, *rest: asked.append(len(targets)) or find(targets, *rest)
    )
    kept, now_and_then = [], []
    with Watch(steps=20, home=HERE, device="cpu") as watch:
        for step in range(14):  # three of warm-up, and a look after ten
            kept.append(torch.zeros(1000))
            if step == 7:
                now_and_then.append(torch.zeros(3000))
            watch.step()
        assert asked[-1] == 8  # of ten steps the last two are not judged, and what is rare is not looked for
    result = watch.result
    # the last look names what is rare too
    assert {holder.variable for holder in result.holders} == {"kept", "now_and_then"}


def test_a_search_for_what_nothing_holds_leaves_no_garbage():
    """A frame of its own in a cycle would keep what the frames below it have: the input of a step, which would count as alive."""
    gc.collect()
    gc.disable()
    try:
        target = {0: Block(0, "device", 0, 8)}
        holders.find(target, lambda tensor: None, range(0), Frames(HERE), leaking={0})
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_modules_of_a_package_that_is_not_the_users_are_not_looked_into(monkeypatch):
    def module(name: str, file: str | None) -> ModuleType:
        made = ModuleType(name)
        if file is not None:
            made.__file__ = file
        monkeypatch.setitem(sys.modules, name, made)
        return made

    frames = Frames(HERE)
    module("theirs", f"{sys.prefix}/lib/site-packages/theirs/__init__.py")
    module("theirs.part", f"{HERE}/part.py")
    mine = [module("mine", f"{HERE}/mine/__init__.py"), module("mine.part", f"{HERE}/mine/part.py")]
    mine += [module("space", None), module("space.part", f"{HERE}/space/part.py")]
    found = [
        one
        for one in walking.user_modules(frames)
        if one.__name__.split(".")[0] in ("theirs", "mine", "space")
    ]
    assert found == [mine[0], mine[1], mine[3]]


def test_calls_are_counted_while_nothing_is_sampled_and_timed_while_steps_are():
    calls = Calls(Frames(HERE), lambda: None)
    calls.watch_torch(torch)
    tensor = torch.zeros(1)
    try:
        for sampling in (False, True):
            calls.sampling = sampling
            for _ in range(5):
                tensor.item()
            tensor.item()
    finally:
        calls.stop()
    found = {(one.count, one.sampled): one.seconds for one in calls.figures() if one.what == "Tensor.item"}
    assert found.keys() == {(10, 5), (2, 1)}
    assert all(seconds > 0 for seconds in found.values())


def test_forwards_without_gradients_are_all_counted():
    model = torch.nn.Linear(64, 64).eval()
    x = torch.zeros(4, 64)
    with Watch(home=HERE, device="cpu") as watch:
        for turn in range(40):
            with torch.set_grad_enabled(turn % 4 == 0):
                model(x)
            watch.step()
    figures = {forward.grad: forward for forward in watch.result.forwards}
    assert (figures[True].count, figures[False].count) == (10, 30)
    assert figures[False].kept == 0
    assert figures[False].seconds > 0


def test_stacks_are_told_apart_by_their_lines():
    frames = Frames(HERE)

    def here() -> int:
        return frames.stack(sys._getframe())

    same = {here() for _ in range(3)}
    assert len(same) == 1
    assert here() not in same
