"""Which weights an optimizer has, and what a copy, a moved network and a leaf are."""

from __future__ import annotations

import ast

import pytest
from asked_engine import call_of, engine

from gpulint.analysis.domain.values import Graph
from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.evaluate.frames import Frame
from gpulint.analysis.queries.effects import origins_of, uses_since_made
from gpulint.analysis.queries.networks.placed import placed
from gpulint.analysis.queries.networks.trained import optimizers_of

HEAD = """import copy
import itertools
import torch
from torch import nn
"""


def asked(text: str) -> tuple[Evaluator, Frame, list[ast.expr]]:
    """What the only call of `see` is given, with its frame."""
    file, evaluator = engine(HEAD + text)
    call, frame = call_of(file, evaluator, "see")
    return evaluator, frame, call.args


@pytest.mark.parametrize(
    "given",
    [
        "list(a.parameters()) + list(b.parameters())",
        "itertools.chain(a.parameters(), b.parameters())",
        "[*a.parameters(), *b.parameters()]",
        "[{'params': a.parameters()}, {'params': b.parameters()}]",
        "[p for p in itertools.chain(a.parameters(), b.parameters()) if p.requires_grad]",
    ],
)
def test_an_optimizer_has_all_that_is_gathered_for_it(given: str) -> None:
    text = f"a, b, c = nn.Linear(8, 8), nn.Linear(8, 9), nn.Linear(8, 7)\nweights = {given}\n"
    evaluator, frame, (a, b, c) = asked(text + "torch.optim.Adam(weights)\nsee(a, b, c)\n")
    had = [len(optimizers_of(evaluator, evaluator.value_of(one, frame))) for one in (a, b, c)]
    assert had == [1, 1, 0]


def test_chained_parameters_are_those_of_each_network_and_a_count_is_none() -> None:
    text = "a, b = nn.Linear(8, 8), nn.Linear(8, 9)\n"
    text += "see(itertools.chain(a.parameters(), b.parameters()), itertools.islice(a.parameters(), many))\n"
    evaluator, frame, (both, some) = asked(text)
    assert len(evaluator.value_of(both, frame).origins) == 2
    assert evaluator.value_of(some, frame).kind == "parameters"


def test_a_constructor_that_calls_its_bases_gives_the_network_to_nobody() -> None:
    text = "class Net(nn.Module):\n    def __init__(self):\n        super(Net, self).__init__()\n        self.one = nn.Linear(3, 3)\n"
    evaluator, frame, (net,) = asked(text + "net = Net()\nsee(net)\n")
    (origin,) = origins_of(evaluator, evaluator.value_of(net, frame))
    assert "super" not in {one.name for one in uses_since_made(evaluator, origin)}


def test_a_network_that_is_kept_moved_is_one_by_what_the_kept_is_asked_for() -> None:
    text = "class Agent:\n    def __init__(self, network, device):\n        self.fast = network.to(device)\n"
    text += "        self.slow = copy.deepcopy(self.fast)\n"
    text += "        self.optimizer = torch.optim.Adam(self.fast.parameters())\n    def learn(self, x):\n        see(self.slow)\n"
    evaluator, frame, (slow,) = asked(text)
    value = evaluator.value_of(slow, frame)
    assert (value.kind, value.assumptions) == ("module", ())


def test_what_is_made_to_want_a_gradient_is_a_tensor_that_the_graph_begins_with() -> None:
    text = "def f(x, net, past):\n    x.requires_grad_()\n    shift = torch.zeros_like(past).requires_grad_()\n    see(x, past + shift, net)\n"
    evaluator, frame, (x, moved, net) = asked(text + "    net.requires_grad_(False)\n")
    assert evaluator.value_of(x, frame).kind == "tensor"
    assert evaluator.value_of(net, frame).kind == "module"
    found = evaluator.value_of(moved, frame)
    assert found.graph is Graph.LIVE
    assert [ast.unparse(node) for node, _ in found.origins] == ["torch.zeros_like(past).requires_grad_()"]


def test_a_copy_of_itself_lies_nobody_knows_where() -> None:
    text = "class Agent:\n    def __init__(self, make):\n        self.net = make()\n    def renew(self):\n        self.net = copy.deepcopy(self.net)\n"
    evaluator, frame, (net,) = asked(
        text + "    def act(self, x):\n        see(self.net)\n        self.net.eval()\n"
    )
    assert placed(evaluator, net, frame).device == "?"
