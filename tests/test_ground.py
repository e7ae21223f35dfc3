"""What the engine that is asked knows of grad modes, effects on networks, phases and frozen weights, and what asking costs."""

from __future__ import annotations

from collections import Counter

import asked_engine
import pytest
from asked_engine import call_of, function_of

from gpulint.analysis.domain.values import UNSET, Graph, Value
from gpulint.analysis.evaluate.consumers import consumers
from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.evaluate.frames import Frame
from gpulint.analysis.evaluate.weights import UNSEEN, weight
from gpulint.analysis.project.file import File
from gpulint.analysis.queries.effects import place_of
from gpulint.analysis.queries.grad_mode import grad_at_entry, grad_mode
from gpulint.analysis.queries.networks.trained import frozen

HEAD = "import functools\nimport torch\nfrom contextlib import ExitStack\nfrom torch import nn\n"


def engine(text: str) -> tuple[File, Evaluator]:
    return asked_engine.engine(HEAD + text)


def last_value(text: str) -> Value:
    return asked_engine.last_value(HEAD + text)


def returned(text: str) -> Value:
    return asked_engine.returned(HEAD + text)


# --- grad modes


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("@functools.lru_cache(maxsize=8)\n@torch.no_grad()\ndef f(x):\n    return net(x)\n", "off"),
        ("def f(x):\n    with ExitStack() as s:\n        s.enter_context(torch.no_grad())\n        net(x)\n", "off"),
        ("def f(x):\n    torch.no_grad().__enter__()\n    net(x)\n", "off"),
        ("def f(x):\n    _ = torch.set_grad_enabled(False)\n    net(x)\n", "off"),
        ("def f(x, train):\n    train or torch.set_grad_enabled(False)\n    net(x)\n", "open"),
        (
            "def f(x, train):\n    torch.set_grad_enabled(True) if train else torch.set_grad_enabled(False)\n    net(x)\n",
            "open",
        ),
        ("class A:\n    def __init__(self):\n        self.off()\n    def off(self):\n        torch.set_grad_enabled(False)\n"
         "    def f(self, x):\n        net(x)\n", "off"),
        ("class A:\n    def off(self):\n        torch.set_grad_enabled(False)\n    def f(self, x):\n        net(x)\n", "on"),
        ("class A:\n    def __init__(self, quiet):\n        if quiet:\n            torch.set_grad_enabled(False)\n"
         "    def f(self, x):\n        net(x)\n", "on"),
        ("import lightning as pl\nclass A(pl.LightningModule):\n    def validation_step(self, x, i):\n        net(x)\n", "off"),
        ("import lightning as pl\nclass A(pl.LightningModule):\n    def training_step(self, x, i):\n        net(x)\n", "on"),
        ("class A:\n    def validation_step(self, x, i):\n        net(x)\n", "on"),
        ("class A(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n        net(x)\n", "off"),
        ("def f(x, n):\n    net(x)\n    f(x, n - 1)\ndef g(x):\n    with torch.no_grad():\n        f(x, 3)\n", "off"),
    ],
)  # fmt: skip
def test_the_grad_mode_at_a_call(text: str, mode: str) -> None:
    file, evaluator = engine(text)
    call, frame = call_of(file, evaluator, "net")
    assert grad_mode(evaluator, call, frame).mode == mode


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


def test_values_that_rest_on_each_other_are_worked_out_a_few_times() -> None:
    """Attributes of which each is made of all the others: every one rests on what is unfinished."""
    count = 14
    sets = "".join(
        f"    def set{i}(self):\n        self.a{i} = ("
        + ", ".join(f"self.a{j}" for j in range(count))
        + ")\n"
        for i in range(count)
    )
    file, evaluator = engine(f"class A:\n{sets}    def read(self):\n        return self.a0\n")
    function = function_of(file, "read")
    evaluator.value_of(function.flow.returns[0].value, evaluator.root(function))
    assert evaluator.evaluated < 8 * count**2


@pytest.mark.parametrize(
    ("expression", "const"),
    [
        ("'a' == 'a'", True),
        ("'a' in ('b', 'c')", False),
        ("'a' not in ('b', 'c')", True),
        ("not (1 > 2)", True),
        ("torch.device('cuda') == 'cuda'", False),
        ("torch.device('cuda') in ('cuda', 'gpu')", False),
        ("unseen == 'a'", UNSET),
        ("unseen in ('a', 'b')", UNSET),
    ],
)
def test_a_comparison_has_a_value_where_it_is_known(expression: str, const: object) -> None:
    assert last_value(expression).const is const


def test_an_attribute_that_others_set_is_no_constant() -> None:
    text = "class A:\n    def __init__(self):\n        self.on = False\n    def f(self):\n        return self.on\n"
    for more, const in (("", False), ("def start(a: A):\n    a.on = True\n", UNSET)):
        assert returned(text + more).const is const


def test_what_is_called_like_a_class_makes_a_network_and_is_none() -> None:
    text = "def f(config, x):\n    Model = config.build()\n    return Model(3)\n"
    value = returned(text)
    assert (value.kind, value.graph) == ("unknown", Graph.NONE)


def test_what_was_loaded_and_is_called_is_a_network() -> None:
    value = last_value("net = torch.load('net.pt')\nnet(torch.ones(3))")
    assert (value.kind, value.graph) == ("tensor", Graph.LIVE)


def test_functions_in_a_class_that_share_no_first_parameter_take_no_object() -> None:
    text = "class A:\n    def run(loader):\n        pass\n    def judge(thing):\n        return thing\nA.judge(nn.Linear(2, 2))"
    assert last_value(text).kind == "module"
    assert (
        last_value(text.replace("(loader)", "(this)").replace("judge(thing)", "judge(this, thing)")).kind
        != "module"
    )


def test_a_lambda_hands_on_what_it_gives() -> None:
    file, evaluator = engine(
        "def f(net: nn.Module, x):\n    return torch.autograd.functional.jacobian(lambda y: net(y), x)\n"
    )
    call, frame = call_of(file, evaluator, "net")
    assert "backward" in {one.role for one in consumers(evaluator, call, frame, "graph")}


# --- effects on networks


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("for p in net.parameters():\n            p.requires_grad = False", True),
        ("if late:\n            net.requires_grad_(False)", False),
        ("net.requires_grad_(False)\n        net.requires_grad_(True)", False),
        ("switch([net], False)", True),
    ],
)
def test_weights_are_frozen_where_they_were_switched_last(before: str, expected: bool) -> None:
    file, evaluator = engine(
        "def switch(nets, on):\n    for net in nets:\n        for p in net.parameters():\n            p.requires_grad = on\n\n\n"
        f"def f(loader, late):\n    net = nn.Linear(2, 2)\n    for x in loader:\n        {before}\n        use(net)\n"
        "        for p in net.parameters():\n            p.requires_grad = True\n"
    )
    call, frame = call_of(file, evaluator, "use")
    place = place_of(evaluator, call.args[0], frame)
    assert (frozen(evaluator, place.value, place) is not None) is expected


# --- graphs


TRAINED = "def f(task, batch, fit):\n    out = {made}\n    {through}.backward()\n    return out\n"


@pytest.mark.parametrize(
    ("made", "through", "kind", "graph"),
    [
        ("task(batch)", "out", "tensor", Graph.LIVE),
        ("task.step(batch)", "out['loss']", "unknown", Graph.LIVE),  # a part of it has one
        ("task.build(batch)", "out(batch)", "module", Graph.NONE),  # what is called is no tensor
        ("task.step(batch)", "fit", "unknown", Graph.NONE),
        ("given(task)", "out", "tensor", Graph.LIVE),  # also of a function in sight
        ("given(task)", "fit(out)", "tensor", Graph.NONE),  # what it is given to may have its own
    ],
)
def test_what_a_backward_goes_through_has_a_graph(made: str, through: str, kind: str, graph: Graph) -> None:
    text = "def given(task):\n    return torch.relu(task)\n" + TRAINED.format(made=made, through=through)
    found = returned(text)
    assert (found.kind, found.graph) == (kind, graph)


@pytest.mark.parametrize(("default", "device"), [("cpu", "?"), ("cuda", "cuda")])
def test_a_default_of_the_host_says_nothing_where_no_call_is_seen(default: str, device: str) -> None:
    assert returned(f"def f(where='{default}'):\n    return torch.device(where)\n").device == device


@pytest.mark.parametrize(
    ("made", "layers"),
    [
        ("nn.Sequential(nn.Flatten(), nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))", 2),
        ("nn.LSTM(4, 4, num_layers=3)", 3),
        ("nn.Sequential(*[nn.Linear(4, 4) for _ in range(5)])", 5),
        ("nn.Sequential(*[nn.Linear(4, 4) for _ in range(depth)])", UNSEEN),
        ("nn.Sequential(nn.Linear(4, 4), made_elsewhere())", UNSEEN),
    ],
)
def test_how_many_layers_a_network_has(made: str, layers: float) -> None:
    file, evaluator = engine(f"depth = int(input())\nnet = {made}\nuse(net)\n")
    call, frame = call_of(file, evaluator, "use")
    assert weight(evaluator, evaluator.value_of(call.args[0], frame)).layers == layers
