"""What the engine knows of graphs: which values have one, by tests of their type, by where they are kept, and by who goes backward."""

import ast

import pytest
from asked_engine import call_of, engine, rates_of

from gpulint.analysis.domain.values import Graph, Value
from gpulint.analysis.evaluate.consumers import consumers

HEAD = """import collections
import functools
from dataclasses import dataclass

import lightning as pl
import torch
from torch import nn
from transformers import Trainer

net = nn.Linear(8, 8)
"""


def seen(text: str) -> Value:
    """The value of what `see` is given, in the last call of it."""
    file, evaluator = engine(HEAD + text)
    call, frame = call_of(file, evaluator, "see")
    return evaluator.value_of(call.args[0], frame)


def roles_of(text: str) -> set[str]:
    """The roles of the uses of what the last call of `net` gives, where graphs are followed."""
    file, evaluator = engine(HEAD + text)
    call, frame = call_of(file, evaluator, "net")
    return {one.role for one in consumers(evaluator, call, frame, "graph")}


def within(body: str) -> str:
    """A function of a batch, whose statements these are."""
    return "def f(x, flag):\n" + "".join(f"    {line}\n" for line in body.split("\n"))


RESULT = "@dataclass\nclass Result:\n    loss: torch.Tensor\n    count: int\n"
ENERGY = "def f(energy, x):\n    e = energy(x)\n    see(e)\n    return grad"


@pytest.mark.parametrize(
    ("body", "graph"),
    [
        # a test of its type says what a value is where it is used
        ("v = net(x)\nif torch.is_tensor(v):\n    v = v.item()\nsee(v)", Graph.NONE),
        ("v = net(x)\nif not isinstance(v, torch.Tensor):\n    v = torch.zeros(1)\nsee(v)", Graph.LIVE),
        ("v = net(x)\nsee(v.item() if type(v) is not float else v)", Graph.NONE),
        ("v = net(x)\nsee(v.item() if flag else v)", Graph.LIVE),
        ("v = net(x)\nif isinstance(v, float):\n    see(v)", Graph.NONE),
        ("v = net(x)\nif isinstance(v, torch.Tensor):\n    see(v)", Graph.LIVE),
        # a list that is made by its length is filled item by item
        ("v = [torch.zeros(1)] * 4\nv[x] = net(x)\nsee(torch.stack(v[1:]))", Graph.LIVE),
        # `model.__name__` is asked of a class, whatever else is called a model
        ("for model in flag:\n    print(model.__name__)\n    see(model(8))", Graph.NONE),
        # what a backward goes through has a graph, whoever made it
        ("loss = made(x)\nloss.backward()\nsee(loss)", Graph.LIVE),
        ("v = made(x)\nsee(v)", Graph.NONE),
        ("loss = made(x)\nflag.backward(loss)\nsee(loss)", Graph.LIVE),
    ],
)
def test_whether_a_value_of_a_function_has_a_graph(body: str, graph: Graph) -> None:
    assert seen(within(body)).graph is graph


@pytest.mark.parametrize(
    ("text", "graph"),
    [
        # fields of a dataclass are what its maker gives
        (RESULT + within("see(Result(net(x), 3).loss)"), Graph.LIVE),
        (RESULT + within("see(Result(net(x), count=3).count)"), Graph.NONE),
        # what is differentiated by a function of its own has a graph
        (f"from torch.autograd import grad\n{ENERGY}(e, x)\n", Graph.LIVE),
        (f"from torch.func import grad\n{ENERGY}(e)(x)\n", Graph.NONE),
    ],
)
def test_whether_a_value_of_a_program_has_a_graph(text: str, graph: Graph) -> None:
    assert seen(text).graph is graph


def test_layers_are_given_away_and_no_graph_goes_on() -> None:
    assert "backward" not in roles_of(within("body = nn.Sequential(net(x))\nbody(x).sum().backward()"))


@pytest.mark.parametrize(
    ("body", "graph"),
    [("one * 2", Graph.LIVE), ("one.detach() * 2", Graph.NONE), ("one + other", Graph.LIVE)],
)
def test_what_a_lambda_makes_of_each_thing(body: str, graph: Graph) -> None:
    names, given = ("one, other", "outs, flag") if "other" in body else ("one", "outs")
    made = f"outs = [net(x) for x in x]\nsee(list(map(lambda {names}: {body}, {given}))[0])"
    assert seen(within(made)).graph is graph


@pytest.mark.parametrize(
    "body",
    [
        # what a lambda is given otherwise nobody knows
        "see(map(lambda *one: see(one), x))",
        "see(map(lambda one, two: see(two), x))",
        "see(map(*x))",
        "see(sorted(x, key=lambda one: see(one)))",
        # nor what is called, though a backward goes through what it gives
        "other = made()\nother(x).sum().backward()\nsee(other)",
    ],
)
def test_what_is_not_known_is_no_tensor(body: str) -> None:
    assert seen(within(body)).kind != "tensor"


def test_a_lambda_is_given_each_thing_and_gives_back_what_it_makes() -> None:
    body = "outs = [net(x) for x in x]\nfor one in map(lambda out: out.mean(), outs):\n    print(one.item())"
    assert "reads" in roles_of(within(body))


@pytest.mark.parametrize(
    ("library", "annotation", "kind"),
    [
        ("jaxtyping", "Float[torch.Tensor, 'batch dim']", "tensor"),
        ("jaxtyping", "Shaped[nn.Module, '']", "module"),
        ("jaxtyping", "Float[np.ndarray, 'batch dim']", "unknown"),
        ("torchtyping", "TensorType['batch', 'dim']", "tensor"),
        ("elsewhere", "Float[torch.Tensor, 'batch dim']", "unknown"),
    ],
)
def test_annotations_with_shapes_say_what_they_are_of(library: str, annotation: str, kind: str) -> None:
    name = annotation.partition("[")[0]
    text = f"import numpy as np\nfrom {library} import {name}\ndef f(x: {annotation}):\n    see(x)\n"
    assert seen(text).kind == kind


def test_entries_of_a_default_dict_are_objects_of_its_class() -> None:
    value = seen(
        "class Meter:\n    total = 0\n" + within("meters = collections.defaultdict(Meter)\nsee(meters[flag])")
    )
    assert value.kind == "object"
    assert value.ref.name == "Meter"


def test_collectives_cut_the_graph() -> None:
    roles = roles_of(
        "import torch.distributed as dist\ndef f(x):\n    loss = net(x)\n    dist.all_reduce(loss)\n"
    )
    assert roles == {"cuts"}


def test_an_entry_of_what_a_network_gives_is_a_tensor_once_a_backward_goes_through_it() -> None:
    plain = seen(within("out = net(x)\nsee(out['count'])"))
    assert plain.graph is Graph.MAY
    assert [one.clause for one in plain.assumptions] == ["what the entry is, the code does not show"]
    gone_through = seen(within("out = net(x)\nout['loss'].backward()\nsee(out['loss'])"))
    assert gone_through.graph is Graph.LIVE
    assert not gone_through.assumptions


def test_a_parameter_that_is_declared_is_what_callers_give() -> None:
    made = "def make(n):\n    return torch.optim.Adam(n.parameters())\n"
    step = "def step(optimizer: torch.optim.Adam):\n    see(optimizer)\n"
    given = seen(made + step + "step(make(net))\n")
    assert [ast.unparse(node) for node, _ in given.origins] == ["torch.optim.Adam(n.parameters())"]


def test_an_operation_with_a_backward_of_its_own_keeps_the_graph() -> None:
    found = seen(
        "class Distance(torch.autograd.Function):\n    pass\n" + within("y = net(x)\nsee(Distance.apply(y))")
    )
    assert (found.kind, found.graph, found.assumptions) == ("tensor", Graph.LIVE, ())


def test_a_tuple_that_is_made_longer_on_one_way_keeps_its_parts() -> None:
    found = seen(within("info = (net(x), 1)\nif flag:\n    info = info + (2,)\nsee(info)"))
    assert [one.graph for one in found.parts] == [Graph.LIVE, Graph.NONE, Graph.NONE]


def test_an_entry_under_a_key_that_is_not_known_is_any_of_the_values() -> None:
    value = seen(within('kept = {"loss": net(x), "size": 3}\nfor key in kept:\n    see(kept[key])'))
    assert (value.kind, value.graph) == ("tensor", Graph.LIVE)


@pytest.mark.parametrize(
    "body",
    [
        "total = torch.zeros(1)\ntotal.add_(net(x).sum())\ntotal.backward()",
        "rows = {}\nrows.setdefault(flag, []).append(net(x))\nsum(rows[flag]).backward()",
        "sums = [0, 0]\nsums[flag] += net(x).sum()\nsums[-1].backward()",
        "slots = torch.zeros(4)\nslots[flag] = net(x).sum()\nslots.mean().backward()",
        "flag.items.append(net(x))\nsum(flag.items).backward()",
        "functools.reduce(flag, [net(x)]).backward()",
        "flag.backward(net(x))",
    ],
)
def test_a_backward_is_found_through_what_holds_a_value(body: str) -> None:
    assert "backward" in roles_of(within(body))


def test_a_class_that_is_only_mixed_into_networks_is_one() -> None:
    text = "class Norm:\n    def weigh(self):\n        see(self)\nclass Layer(nn.Linear, Norm):\n    pass\n"
    assert seen(text).kind == "module"
    assert seen(f"{text}class Other(Norm):\n    pass\n").kind == "object"


def test_methods_for_the_end_of_an_epoch_run_once_a_phase() -> None:
    text = "class A(pl.LightningModule):\n    def on_train_epoch_end(self):\n        see(self)\n"
    assert rates_of(HEAD + text, "see") == ["phase"]
