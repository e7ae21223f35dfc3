"""What is asked about a network at a place: what was done to it last, and where that leaves it."""

from __future__ import annotations

import ast
from textwrap import dedent

import pytest

from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.project.file import File
from gpulint.analysis.project.program import Program
from gpulint.analysis.queries.grad_mode import grad_at_entry
from gpulint.analysis.queries.networks.placed import moved_anywhere, placed


def engine(text: str) -> tuple[File, Evaluator]:
    text = dedent(text)
    file = File("program.py", text, ast.parse(text))
    return file, Evaluator(Program(file, None, {}))


@pytest.mark.parametrize(
    ("before", "device", "how"),
    [
        ("net.cuda()", "cuda", "moved"),
        ("net.cuda()\n    net.cpu()", "host", "moved"),
        ("net.to(where)", "?", "moved"),
        ("if where:\n        net.cuda()\n    else:\n        look(net)", "cuda", "moved"),
        ("other.cuda()", "host", "made"),
    ],
)
def test_a_network_is_where_it_was_moved_last(before: str, device: str, how: str) -> None:
    file, evaluator = engine(f"""
from torch import nn
def main(where, other):
    net = nn.Linear(2, 2)
    {before}
    look(net)
""")
    (main,) = file.functions
    call = main.flow.calls["look"][-1]
    found = placed(evaluator, call.args[0], evaluator.root(main))
    assert (found.device, found.how) == (device, how)


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


def test_a_part_of_a_network_is_where_the_whole_is() -> None:
    file, evaluator = engine("""
        from torch import nn
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.head = nn.Linear(2, 2)
        def main():
            net = Net().cuda()
            look(net.head)
        """)
    main = file.functions[-1]
    (call,) = main.flow.calls["look"]
    assert placed(evaluator, call.args[0], evaluator.root(main)).device == "cuda"


def test_a_network_may_be_moved_only_afterwards() -> None:
    file, evaluator = engine("""
        from torch import nn
        def main():
            net = nn.Linear(2, 2)
            look(net)
            return net.cuda()
        """)
    (main,) = file.functions
    (call,) = main.flow.calls["look"]
    frame = evaluator.root(main)
    assert placed(evaluator, call.args[0], frame).device == "host"
    assert moved_anywhere(evaluator, call.args[0], frame).device == "cuda"


@pytest.mark.parametrize(
    ("base", "method", "mode"),
    [
        ("pl.LightningModule", "validation_step", "off"),
        ("pl.LightningModule", "training_step", "on"),
        ("object", "validation_step", "on"),
        ("torch.autograd.Function", "forward", "off"),
    ],
)
def test_frameworks_switch_grad_off_before_they_call(base: str, method: str, mode: str) -> None:
    file, evaluator = engine(
        f"import torch\nimport lightning.pytorch as pl\nclass Own({base}):\n    def {method}(self, x): return x\n"
    )
    assert grad_at_entry(evaluator, file.functions[0]).mode == mode


@pytest.mark.parametrize(
    ("test", "expected"), [("'a' in ('a', 'b')", True), ("'c' not in ('a',)", True), ("x in ('a',)", None)]
)
def test_what_is_among_constants_is_known(test: str, expected: bool | None) -> None:
    file, evaluator = engine(f"def main(x):\n    {test}\n")
    (main,) = file.functions
    assert evaluator.truth(main.node.body[0].value, evaluator.root(main)) is expected


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
