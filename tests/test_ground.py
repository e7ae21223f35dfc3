"""What the engine that is asked knows of modes, constants, networks and processes, and what asking costs."""

from collections import Counter
from collections.abc import Sequence
from itertools import permutations

import asked_engine
import pytest
from asked_engine import call_of, function_of

from gpulint.analysis.domain.values import Graph
from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.evaluate.frames import Frame
from gpulint.analysis.project.file import File
from gpulint.analysis.queries.grad_mode import grad_at_entry, grad_mode
from gpulint.analysis.queries.loads import loads
from gpulint.analysis.queries.networks.module_mode import module_mode
from gpulint.analysis.queries.networks.placed import placed
from gpulint.analysis.queries.networks.runs import runs
from gpulint.analysis.queries.processes import by_every_process
from gpulint.analysis.queries.raises import raises
from gpulint.answers import Verdict

HEAD = "import functools\nimport torch\nfrom torch import nn\n"


def engine(text: str) -> tuple[File, Evaluator]:
    return asked_engine.engine(HEAD + text)


def test_each_function_is_asked_once_for_the_mode_that_it_is_called_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Layers of functions that all call all of the next layer: as many ways as there are paths through them."""
    width, layers = 5, 6
    text = "".join(
        f"def f{layer}_{i}(x):\n" + "".join(f"    f{layer + 1}_{j}(x)\n" for j in range(width)) + "    pass\n"
        for layer in range(layers)
        for i in range(width)
    )
    file, evaluator = engine(text + "def f6_0(x):\n    return net(x)\n")
    asked: Counter[object] = Counter()
    own = evaluator.modes.own

    def counted(node: object, frame: Frame) -> object:
        asked[node] += 1
        return own(node, frame)

    monkeypatch.setattr(evaluator.modes, "own", counted)
    assert grad_at_entry(evaluator, function_of(file, "f6_0")).mode == "on"
    assert set(asked.values()) == {1}
    assert len(asked) > width


# --- what is worked out


def test_what_goes_round_in_circles_is_worked_out_once() -> None:
    """What rests on something unfinished is kept as long as that is unfinished: else each way around would be gone again."""
    names = [f"v{one}" for one in range(8)]
    rounds = "\n        ".join(f"{own} = {' + '.join(one for one in names if one != own)}" for own in names)
    file, evaluator = engine(f"""
import torch
def main(x):
    {" = ".join(names)} = torch.zeros(1)
    for _ in x:
        {rounds}
    return v0
""")
    (main,) = file.functions
    assert evaluator.value_of(main.flow.returns[0].value, evaluator.root(main)).kind == "tensor"
    assert evaluator.evaluated < 4_000


def test_what_is_called_like_a_class_makes_a_network_and_is_none() -> None:
    text = "def f(config, x):\n    Model = config.build()\n    return Model(3)\n"
    value = asked_engine.returned(text)
    assert (value.kind, value.graph) == ("unknown", Graph.NONE)


def test_chained_parameters_are_those_of_each_network_and_a_count_is_none() -> None:
    file, evaluator = engine(
        "import itertools\na, b = nn.Linear(8, 8), nn.Linear(8, 9)\n"
        "see(itertools.chain(a.parameters(), b.parameters()), itertools.islice(a.parameters(), many))\n"
    )
    call, frame = call_of(file, evaluator, "see")
    both, some = (evaluator.value_of(one, frame) for one in call.args)
    assert len(both.origins) == 2
    assert some.kind == "parameters"


def test_a_network_is_where_it_is_made_and_an_encoder_gives_arrays() -> None:
    file, evaluator = engine("""
from torch import nn
from sentence_transformers import SentenceTransformer
def main(texts):
    net = nn.Linear(2, 2, device="cuda")
    look(net)
    encoder = SentenceTransformer("small")
    see(encoder.encode(texts), encoder.encode(texts, convert_to_tensor=True))
""")
    (main,) = file.functions
    root = evaluator.root(main)
    assert placed(evaluator, main.flow.calls["look"][0].args[0], root).device == "cuda"
    assert [evaluator.value_of(one, root).kind for one in main.flow.calls["see"][0].args] == [
        "array",
        "tensor",
    ]


@pytest.mark.parametrize(
    ("condition", "verdict"),
    [
        ("dist.get_rank() == 0", None),
        ("dist.get_rank() > 0", "proven"),
        ("rank == 0", "open"),
        ("args.distributed", "proven"),
        ("not args.distributed", "open"),
        ("is_main_process()", "open"),
    ],
)
def test_which_processes_get_to_a_line(condition: str, verdict: str | None) -> None:
    file, evaluator = engine(f"""
import torch
import torch.distributed as dist
def main(path, rank, args, is_main_process):
    dist.init_process_group("nccl")
    if {condition}:
        return torch.load(path)
""")
    (load,) = loads(evaluator, file)
    answer = by_every_process(evaluator, load.call, load.frame)
    assert (answer.verdict.value if answer is not None else None) == verdict


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("@functools.lru_cache(maxsize=8)\n@torch.no_grad()\ndef f(x):\n    return net(x)\n", "off"),
        ("def f(x):\n    torch.no_grad().__enter__()\n    net(x)\n", "off"),
        ("def f(x, train):\n    train or torch.set_grad_enabled(False)\n    net(x)\n", "open"),
        (
            "def f(x, train):\n    torch.set_grad_enabled(True) if train else torch.set_grad_enabled(False)\n    net(x)\n",
            "open",
        ),
        ("class A:\n    def __init__(self):\n        self.off()\n    def off(self):\n        torch.set_grad_enabled(False)\n"
         "    def f(self, x):\n        net(x)\n", "off"),
        ("class A:\n    def __init__(self, quiet):\n        if quiet:\n            torch.set_grad_enabled(False)\n"
         "    def f(self, x):\n        net(x)\n", "on"),
        ("import lightning as pl\nclass A(pl.LightningModule):\n    def training_step(self, x, i):\n        net(x)\n", "on"),
        ("def f(x, n):\n    net(x)\n    f(x, n - 1)\ndef g(x):\n    with torch.no_grad():\n        f(x, 3)\n", "off"),
    ],
)  # fmt: skip
def test_the_grad_mode_at_a_call(text: str, mode: str) -> None:
    file, evaluator = engine(text)
    call, frame = call_of(file, evaluator, "net")
    assert grad_mode(evaluator, call, frame).mode == mode


def test_what_rests_on_each_other_is_the_same_whichever_is_asked_first() -> None:
    """What is put into a container may rest on what is in it: neither is kept as it was while the other was unfinished."""
    text = """
class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.net, self.state = nn.Linear(2, 2), {}
    def step(self):
        self.state["h"] = torch.relu(self.state["h"]) + self.net(self.state["h"])
        return self.state["h"]
"""

    def kinds(order: Sequence[int]) -> dict[int, tuple[str, Graph]]:
        file, evaluator = engine(text)
        step = function_of(file, "step")
        asked = (step.flow.stores[0].value.left, step.flow.stores[0].value.right, step.flow.returns[0].value)
        found = {one: evaluator.value_of(asked[one], evaluator.root(step)) for one in order}
        return {one: (value.kind, value.graph) for one, value in found.items()}

    assert all(set(kinds(order).values()) == {("tensor", Graph.LIVE)} for order in permutations(range(3)))


@pytest.mark.parametrize(
    ("before", "mode"),
    [
        ("net.eval()", "eval"),
        ("net.eval(); net.train()", "train"),
        ("net.train(flag)", "?"),
        ("other.eval()", "?"),
    ],
)
def test_the_mode_is_what_was_set_last(before: str, mode: str) -> None:
    file, evaluator = engine(f"def main(net: nn.Module, other, x, flag):\n    {before}\n    net(x)\n")
    (run,) = runs(evaluator, evaluator.root(function_of(file, "main")))
    assert module_mode(evaluator, run.named, run.where).mode == mode


FITS = "class Wide(Net):\n    def forward(self, x, y, z):\n        return x"
TAKES_ALL = "class Net(nn.Module):\n    def __call__(self, *x):\n        return x\n    def forward(self): ..."


@pytest.mark.parametrize(
    ("other", "call", "refuted"),
    [
        ("", "net(x)", False),
        ("", "net()", True),
        ("", "net(x, x, x)", True),
        (FITS, "net(x, x, x)", False),
        (TAKES_ALL, "net(x, x, x)", False),
    ],
)
def test_a_call_raises_that_fits_no_forward_which_it_may_run(other: str, call: str, refuted: bool) -> None:
    file, evaluator = engine(f"""
class Net(nn.Module):
    def forward(self, x, y=None):
        return x
{other}
def main(net: Net, x):
    return {call}
""")
    call, frame = call_of(file, evaluator, "net")
    assert any(one.verdict is Verdict.REFUTED for one in raises(evaluator, call, frame)) is refuted


@pytest.mark.parametrize(("default", "device"), [("cpu", "?"), ("cuda", "cuda")])
def test_a_default_of_the_host_says_nothing_where_no_call_is_seen(default: str, device: str) -> None:
    assert (
        asked_engine.returned(f"{HEAD}def f(where='{default}'):\n    return torch.device(where)\n").device
        == device
    )


def test_a_network_that_is_kept_moved_is_one_by_what_the_kept_is_asked_for() -> None:
    file, evaluator = engine(
        "import copy\nclass Agent:\n    def __init__(self, network, device):\n        self.fast = network.to(device)\n"
        "        self.slow = copy.deepcopy(self.fast)\n        self.optimizer = torch.optim.Adam(self.fast.parameters())\n"
        "    def learn(self, x):\n        see(self.slow)\n"
    )
    call, frame = call_of(file, evaluator, "see")
    value = evaluator.value_of(call.args[0], frame)
    assert (value.kind, value.assumptions) == ("module", ())
