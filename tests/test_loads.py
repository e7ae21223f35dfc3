"""What is asked about loads: where to, what keeps them, which processes run them, and how large the networks are."""

from __future__ import annotations

import ast

import pytest
from asked_engine import call_of, engine

from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.evaluate.weights import weight
from gpulint.analysis.queries.loads import Loaded, loaded, loads
from gpulint.analysis.queries.processes import by_every_process


def only(text: str) -> tuple[Evaluator, Loaded]:
    file, evaluator = engine(text)
    (load,) = loads(evaluator, file)
    return evaluator, loaded(evaluator, load)


@pytest.mark.parametrize(
    ("where", "device", "elsewhere"),
    [
        ("'cpu'", "host", False),
        ("torch.device('cpu')", "host", False),
        ("lambda storage, place: storage", "host", False),
        ("f'cuda:{rank}'", "cuda", False),
        ("None", "?", False),
        ("where", "?", True),
        ("None if torch.cuda.is_available() else 'cpu'", "?", False),
    ],
)
def test_the_place_that_a_load_names(where: str, device: str, elsewhere: bool) -> None:
    file, evaluator = engine(f"import torch\n\ndef load(rank, where):\n    return torch.load('a', {where})\n")
    (load,) = loads(evaluator, file)
    assert (load.device, load.elsewhere) == (device, elsewhere)


def test_a_place_that_is_none_where_there_is_cuda_is_told_where_it_is_chosen() -> None:
    file, evaluator = engine("""
        import torch
        def load(path):
            where = None
            if not torch.cuda.is_available():
                where = "cpu"
            return torch.load(path, map_location=where)
        """)
    (load,) = loads(evaluator, file)
    assert load.by_cuda
    assert isinstance(load.place, ast.If)


def test_an_entry_is_kept_where_it_is_restored_and_numbers_are_not() -> None:
    _, what = only("""
        import torch
        def main(net, path):
            state = torch.load(path)
            epoch = state["epoch"]
            weights = {key[7:]: value for key, value in state["net"].items()}
            net.load_state_dict(weights)
            return epoch + 1
        """)
    assert {definition.key for definition, _ in what.bound} == {"state", "weights"}  # both hold its tensors
    assert what.entries
    assert len(what.networks) == 1
    assert what.adopted is None


def test_a_function_that_calls_itself_with_a_container_is_gone_through_once() -> None:
    _, what = only("""
        import torch
        def fill(found, path, depth):
            if depth:
                fill(found, path, depth - 1)
            found.append(torch.load(path))
            return found
        """)
    assert what.restored == ()


@pytest.mark.parametrize(
    ("condition", "verdict"),
    [
        ("True", "proven"),
        ("dist.get_rank() == 0", None),
        ("dist.get_rank() > 0", "proven"),
        ("rank == 0", "open"),
        ("rank != 0", "proven"),
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
    ("made", "least", "whole"),
    [
        ("nn.Linear(1000, 2000)", 2_000_000, True),
        ("nn.Sequential(*layers(3))", 3_000_000, True),
        ("Deep(4)", 4_000_000, True),
        ("Spread()", 1_000_000, True),
        ("Wide(10)", 10_000, True),
        ("nn.Linear(width, 10)", 0, False),
        ("nn.Transformer(1024, 16, 12, 12)", 251_658_240, True),
    ],
)
def test_how_many_weights_a_network_has(made: str, least: int, whole: bool) -> None:
    file, evaluator = engine(f"""
from torch import nn
def layers(count):
    found = []
    for _ in range(count):
        found.append(nn.Linear(1000, 1000))
    return found
class Deep(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.blocks = nn.ModuleList([nn.Linear(1000, 1000) for _ in range(depth)])
class Spread(nn.Module):
    def __init__(self):
        super().__init__()
        self.build()
    def build(self):
        self.layer = nn.Linear(1000, 1000)
class Wide(nn.Linear):
    def __init__(self, width):
        super().__init__(width, 1000)
def main(width):
    net = {made}
    net(width)
""")
    call, frame = call_of(file, evaluator, "net")
    found = weight(evaluator, evaluator.value_of(call.func, frame))
    assert (found.least, found.whole) == (least, whole)
