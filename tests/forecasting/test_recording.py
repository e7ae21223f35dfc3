"""Real runs of small programs with a faked card, read back allocation by allocation."""

import textwrap
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch")

from gpulint.forecasting.cards import card_for
from gpulint.forecasting.forecasting import forecast_once as forecast
from gpulint.forecasting.recorder import ForecastError, Program, judge_recording, record
from gpulint.forecasting.recording import Phase, Recording

pytestmark = pytest.mark.usefixtures("warm_scripts")

SMALL = str(Path(__file__).parent / "programs" / "small.py")
H200 = card_for("h200")
KIB = 1024


def run(folder: Path, text: str, **given: object) -> Recording:
    """Record a program of these lines, below `import torch` and `from torch import nn`."""
    return record(program(folder, text, **given), H200)


def program(folder: Path, text: str, **given: object) -> Program:
    script = folder / "train.py"
    script.write_text("import torch\nfrom torch import nn\n" + textwrap.dedent(text))
    return Program(str(script), **given)  # type: ignore[arg-type]


def codes(recording: Recording) -> set[tuple[str, int]]:
    return {(doubt.code, doubt.line) for doubt in recording.doubts}


@pytest.mark.slow
def test_a_script_with_epochs_is_seen_through_training_evaluation_and_saving(tmp_path: Path) -> None:
    saved = tmp_path / "never.pt"
    found = record(Program(SMALL, ("--batch-size", "64", "--out", str(saved))), H200)
    kinds = Counter(mark.kind for mark in found.marks)
    assert found.end == "enough"
    assert found.facts["evaluated"]
    assert found.facts["cut_epochs"] >= 2
    assert 6 <= kinds["train"] <= 20
    assert not saved.exists()  # a forecast writes no checkpoint


@pytest.mark.slow
def test_every_byte_at_the_peak_has_its_kind_and_its_line() -> None:
    found = forecast(Program(SMALL), H200)
    weights = 4 * (512 * 1024 + 1024 + 1024 * 10 + 10)
    sizes = found.kinds
    assert weights <= sizes["parameters"] <= weights + 4 * 512
    assert weights <= sizes["gradients"] <= weights + 4 * 512
    assert 2 * weights <= sizes["optimizer state"] <= 2 * weights + 8 * 512
    assert sum(sizes.values()) == found.allocated.value
    lines = {line for file, line, _, _ in found.lines if file.endswith("small.py")}
    assert 16 in lines  # where the model is moved
    assert 26 in lines  # optimizer.step()
    assert found.peak_at.phase == "optimizer"


def test_what_is_allocated_and_freed_is_on_the_tape_in_order(tmp_path: Path) -> None:
    found = run(
        tmp_path,
        """
        a = torch.zeros(256, 1024, device="cuda")
        b = a.t()
        c = a + 1
        del a, b
        torch.cuda.empty_cache()
        d = torch.empty(1024, dtype=torch.int8).cuda()
        """,
    )
    sizes = [event if isinstance(event, int) else event[1] for event in found.events]
    first, second = found.events[0][0], found.events[1][0]
    assert sizes[:5] == [1024 * KIB, 1024 * KIB, first, 0, KIB]
    assert second not in sizes[2:4]
    assert [found.sites[event[2]][1] for event in (found.events[0], found.events[1], found.events[4])] == [
        4,
        6,
        9,
    ]
    assert found.events[4][4] == Phase.INPUT


def test_the_backward_is_told_by_the_line_of_its_forward(tmp_path: Path) -> None:
    found = run(
        tmp_path,
        """
        layer = nn.Linear(256, 256, device="cuda")
        x = torch.randn(128, 256, device="cuda", requires_grad=True)
        hidden = layer(x)
        loss = hidden.square().mean()
        loss.backward()
        """,
    )
    backward = [event for event in found.events if not isinstance(event, int) and event[4] == Phase.BACKWARD]
    by_operator = {found.operators[event[3]]: found.sites[event[2]][1] for event in backward}
    assert by_operator["aten.mm.default"] == 6
    assert by_operator["aten.pow.Tensor_Scalar"] == 7


def test_the_peak_is_told_by_the_module_that_holds_it(tmp_path: Path) -> None:
    found = forecast(
        program(
            tmp_path,
            """
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.blocks = nn.ModuleList(nn.Linear(1024, 1024, bias=False) for _ in range(3))
                    self.head = nn.Linear(1024, 256, bias=False)

                def forward(self, x):
                    for block in self.blocks:
                        x = block(x).relu()
                    return self.head(x)

            net = Net().cuda()
            optimizer = torch.optim.Adam(net.parameters(), foreach=False)
            for _ in range(4):
                optimizer.zero_grad()
                net(torch.randn(512, 1024, device="cuda")).sum().backward()
                optimizer.step()
            """,
        ),
        H200,
    )
    sizes = {name: (size, number) for name, size, number in found.modules}
    weights, head = 4 * 1024 * 1024, 4 * 1024 * 256
    size, number = sizes["Net.blocks.*"]
    assert number == 3
    assert size >= 4 * 3 * weights  # with gradients and two states of Adam's
    assert size < 4 * 3 * weights + 6 * 512 * 1024 * 4
    assert 4 * head <= sizes["Net.head"][0] < 4 * head + 2 * 512 * 1024
    whole = sum(size for size, _ in sizes.values()) + found.kinds["workspaces"]
    assert whole <= found.allocated.value


def test_values_from_the_host_go_along_where_they_decide(tmp_path: Path) -> None:
    found = run(
        tmp_path,
        """
        lengths = torch.tensor([3, 5, 2]).cuda()
        longest = int(lengths.max())
        mask = torch.arange(longest, device="cuda")[None] < lengths[:, None]
        values = torch.randn(3, longest, 1024, device="cuda")
        chosen = values[mask]
        assert chosen.shape == (10, 1024), chosen.shape
        assert mask.nonzero().shape == (10, 2)
        assert lengths.tolist() == [3, 5, 2]
        assert (lengths * 2).cpu().sum().item() == 20
        """,
    )
    assert found.end == "finished"
    assert not found.doubts


def test_under_inference_mode_the_same_is_seen_as_under_no_grad(tmp_path: Path) -> None:
    text = """
        counts = torch.tensor([3, 5, 2]).cuda()
        net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 10)).cuda()
        with torch.{mode}():
            steps = torch.arange(3, device="cuda") * counts
            out = net(torch.randn(4, 3, 8, 8).cuda())
            best = torch.einsum("ij,kj->ik", out, out).argmax(1)
            print(best.sum().item(), int(steps.max()))
            steps[1:].mul_(best[:2])
            print(int(steps.max()))
        """
    seen = [run(tmp_path, text.format(mode=mode)) for mode in ("no_grad", "inference_mode")]
    assert [found.end for found in seen] == ["finished", "finished"]
    assert codes(seen[0]) == codes(seen[1]) == {("number", 12)}
    allocated = [
        [(found.operators[event[3]], event[1]) for event in found.events if isinstance(event, list)]
        for found in seen
    ]
    assert allocated[0] == allocated[1]


def test_what_lies_in_the_data_is_assumed_and_said(tmp_path: Path) -> None:
    text = """
        x = torch.randn(64, 1024, device="cuda")
        picked = x[x > 0]
        where = (x > 0).nonzero()
        other = torch.masked_select(x, x > 0)
        values = torch.unique(x)
        """
    found = run(tmp_path, text)
    assert codes(found) == {("mask", 5), ("mask", 6), ("mask", 7), ("unique", 8)}
    all_of_it = 64 * 1024
    sizes = [event[1] for event in found.events if not isinstance(event, int)]
    assert 4 * all_of_it in sizes  # picked
    assert 16 * all_of_it in sizes  # two indices an element
    told = forecast(program(tmp_path, text), H200)
    assert told.allocated.low < told.allocated.value * 0.7
    assert {doubt.code for doubt in told.doubts} >= {"mask", "unique"}


def test_a_number_that_decides_nothing_is_no_doubt(tmp_path: Path) -> None:
    text = """
        model = nn.Linear(64, 8, device="cuda")
        for _ in range(4):
            guess = model(torch.randn(32, 64, device="cuda")).argmax(1)
            print((guess == 1).sum().item())
        """
    assert codes(run(tmp_path, text)) == {("number", 7)}
    assert "number" not in {doubt.code for doubt in forecast(program(tmp_path, text), H200).doubts}


def test_a_number_that_decides_a_size_widens_the_interval(tmp_path: Path) -> None:
    text = """
        x = torch.randint(0, 100, (32,), device="cuda")
        held = torch.zeros(int(x.max()), 1024, 1024, device="cuda")
        """
    told = forecast(program(tmp_path, text), H200)
    assert ("number", 5) in {(doubt.code, doubt.line) for doubt in told.doubts}
    assert told.allocated.high >= 8 * told.allocated.value * 0.9


CARD = """
def legacy():
    x = torch.cuda.FloatTensor(2, 3)
    assert x.is_cuda and x.shape == (2, 3)

def generators():
    g = torch.Generator("cuda").manual_seed(1)
    assert g.device.type == "cuda"
    assert torch.randperm(9, generator=g, device="cuda").shape == (9,)

def data():
    w = nn.Linear(2, 2).cuda()
    w.weight.data = w.weight.data.clone()
    w.weight.data.copy_(torch.ones(2, 2))
    assert w.weight.is_cuda

def events():
    a, b = torch.cuda.Event(True), torch.cuda.Event(True)
    a.record(), b.record()
    with torch.cuda.stream(torch.cuda.Stream()):
        assert a.elapsed_time(b) > 0

def figures():
    before = torch.cuda.memory_allocated()
    x = torch.ones(1000, device="cuda")
    assert torch.cuda.memory_allocated() == before + 4096
    assert torch.cuda.memory_stats()["no such figure"] == 0
    assert torch.cuda.get_device_properties(0).total_memory > torch.cuda.mem_get_info()[0] > 100e9

def compiled():
    assert torch.compile(nn.Linear(4, 4).cuda())(torch.ones(1, 4).cuda()).shape == (1, 4)

def scaled():
    scaler, model = torch.amp.GradScaler("cuda"), nn.Linear(4, 4).cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with torch.autocast("cuda", dtype=torch.float16):
        y = model(torch.ones(2, 4).cuda())
    assert y.dtype == torch.float16
    scaler.scale(y.sum()).backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()

def checkpointed():
    from torch.utils.checkpoint import checkpoint
    model, x = nn.Linear(4, 4).cuda(), torch.ones(2, 4, requires_grad=True).cuda()
    checkpoint(model, x, use_reentrant=False).sum().backward()
    assert model.weight.grad is not None

def tied():
    a, b = nn.Linear(4, 4), nn.Linear(4, 4)
    b.weight = a.weight
    model = nn.ModuleList([a, b])
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    model.cuda()
    first = optimizer.param_groups[0]["params"][0]
    assert model[0].weight is model[1].weight is first and first.is_cuda

def saved():
    torch.save(nn.Linear(4, 4).cuda().state_dict(), "/nowhere/at/all.pt")

def loaded():
    found = torch.load(CHECKPOINT, map_location="cuda")
    assert found["w"].is_cuda and found["n"] == 3 and found["w"].tolist() == [0, 1, 2]
    assert not torch.load(CHECKPOINT, map_location="cpu")["w"].is_cuda

def by_default():
    torch.set_default_device("cuda")
    assert nn.Linear(2, 2).weight.is_cuda and torch.tensor([1.0]).is_cuda

for each in (legacy, generators, data, events, figures, compiled, scaled, checkpointed, tied, saved, loaded, by_default):
    print(each.__name__)
    each()
"""


def test_scripts_see_a_card(tmp_path: Path) -> None:
    import torch

    path = tmp_path / "weights.pt"
    torch.save({"w": torch.arange(3), "n": 3}, path)
    found = run(tmp_path, f"CHECKPOINT = {str(path)!r}\n{CARD}")
    assert found.end == "finished"
    assert {doubt.code for doubt in found.doubts} == {"compile"}


def test_training_on_cards_that_do_not_settle_ends_after_the_steps_asked_for(tmp_path: Path) -> None:
    text = """
        model = nn.Linear(64, 64, device="cuda")
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        kept = []
        while True:
            loss = model(torch.randn(1024, 64, device="cuda")).sum()
            loss.backward()
            optimizer.step()
            kept.append(loss + torch.zeros(4096, device="cuda"))
        """
    told = forecast(program(tmp_path, text, steps=8), H200)
    assert told.trained == 8
    assert "grows" in {doubt.code for doubt in told.doubts}


def test_when_the_time_is_up_it_is_said_what_was_not_reached(tmp_path: Path) -> None:
    text = """
        import time
        layer = nn.Linear(64, 64, device="cuda")
        while True:
            time.sleep(60)
            layer.eval()
        """
    found = run(tmp_path, text, timeout=4.0)
    assert found.end == "time"
    assert len(found.events) == 2
    assert found.facts["unreached"] == [[str(tmp_path / "train.py"), 8, "evaluation"]]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("open('no-such-file.csv')", "needs the files that it reads"),
        ("raise RuntimeError('broken')", "RuntimeError: broken"),
        ("raise SystemExit(3)", "sys.exit(3)"),
        ("import os\nos._exit(4)", "ended its process itself with code 4"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "was killed"),
        ("import torch.distributed as d\nd.init_process_group('nccl')", "several GPUs"),
        ("import torch.distributed as d\nd.init_process_group('gloo', rank=0, world_size=2)", "several GPUs"),
        ("import torch.multiprocessing as mp\nmp.spawn(print, nprocs=2)", "several GPUs"),
        ("import os\nrank = int(os.environ['LOCAL_RANK'])", "several GPUs"),
        (
            "x = torch.randn(9, device='cuda')\ndt = x.std()\nfor _ in range(99):\n    if not dt < 1e-9:\n        dt = dt / 2\n"
            "assert dt < 1e-9, 'underflow in dt'",
            "adaptive solvers",
        ),
    ],
)
def test_why_there_is_no_forecast_is_one_sentence(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ForecastError) as error:
        run(tmp_path, text)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_loop_that_values_on_the_card_end_is_refused(tmp_path: Path) -> None:
    text = (
        "x = torch.randn(9, device='cuda')\nfor _ in range(1001):\n    if (x < 1).any():\n        x = x / 2\n"
    )
    found = run(tmp_path, text)
    (doubt,) = found.doubts
    assert (doubt.code, doubt.line, doubt.count) == ("boolean", 5, 1001)
    with pytest.raises(
        ForecastError, match=r"the time was up: .*train.py:5 had asked for values on the card"
    ):
        judge_recording(replace(found, end="time"))


def test_masks_under_vmap_and_weights_by_a_generator(tmp_path: Path) -> None:
    found = run(
        tmp_path,
        """
        drawn = torch.Generator().manual_seed(1)
        layer = nn.Linear(8, 8)
        nn.init.normal_(layer.weight, std=0.02, generator=drawn)
        layer.cuda()
        nn.init.trunc_normal_(layer.weight, std=0.02, generator=torch.Generator("cuda"))
        padding = torch.ones(2, 8, dtype=torch.bool)
        padding[0, 5:] = False
        card = padding.cuda()

        def may_see(batch, query, key):
            return (key <= query) & card[batch, key].to(query.device)

        over = torch.vmap(torch.vmap(torch.vmap(may_see, (None, None, 0)), (None, 0, None)), (0, None, None))
        places = torch.arange(8, device="cuda")
        mask = over(torch.arange(2, device="cuda"), places, places)
        assert mask.shape == (2, 8, 8) and mask.is_cuda
        assert torch.vmap(lambda row: row.to("cuda") & True)(padding).is_cuda
        """,
    )
    assert found.end == "finished"


def test_an_interpreter_without_torch_is_named(tmp_path: Path) -> None:
    import subprocess
    import sys

    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    python = str(tmp_path / "bare" / "bin" / "python")
    with pytest.raises(ForecastError, match="has no torch"):
        record(Program(SMALL, python=python), H200)
