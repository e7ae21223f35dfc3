"""What the engine knows of graphs: which values have one, by tests of their type, by where they are kept, and by who goes backward."""

from __future__ import annotations

import pytest
from asked_engine import call_of, engine

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


@pytest.mark.parametrize(
    ("body", "graph"),
    [
        ("v = net(x)\nif torch.is_tensor(v):\n    v = v.item()\nsee(v)", Graph.NONE),
        ("v = net(x)\nif not isinstance(v, torch.Tensor):\n    v = torch.zeros(1)\nsee(v)", Graph.LIVE),
        ("v = net(x)\nsee(v.item() if type(v) is not float else v)", Graph.NONE),
        ("v = net(x)\nsee(v.item() if flag else v)", Graph.LIVE),
        ("v = net(x)\nif isinstance(v, float):\n    see(v)", Graph.NONE),
        ("v = net(x)\nif isinstance(v, torch.Tensor):\n    see(v)", Graph.LIVE),
    ],
)
def test_a_test_of_its_type_says_what_a_value_is_where_it_is_used(body: str, graph: Graph) -> None:
    assert seen(within(body)).graph is graph


def test_fields_of_a_dataclass_are_what_its_maker_gives() -> None:
    head = "@dataclass\nclass Result:\n    loss: torch.Tensor\n    count: int\n"
    assert seen(head + within("see(Result(net(x), 3).loss)")).graph is Graph.LIVE
    assert seen(head + within("see(Result(net(x), count=3).count)")).graph is Graph.NONE


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
    "made",
    ["map(lambda *one: one, x)", "map(lambda one, two: two, x)", "map(*x)", "sorted(x, key=lambda one: one)"],
)
def test_what_a_lambda_is_given_otherwise_nobody_knows(made: str) -> None:
    assert (
        seen(within(f"see({made.replace(': one', ': see(one)').replace(': two', ': see(two)')})")).kind
        != "tensor"
    )


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


def test_what_is_asked_for_its_name_is_a_class() -> None:
    """`model.__name__` is asked of a class, whatever else is called a model."""
    body = "for model in flag:\n    print(model.__name__)\n    see(model(8))"
    assert seen(within(body)).graph is Graph.NONE
