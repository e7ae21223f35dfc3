"""What is asked about a network at a place: what was done to it last, and where that leaves it."""

from __future__ import annotations

from asked_engine import call_of, engine

from gpulint.analysis.queries.networks.placed import placed


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
    call, frame = call_of(file, evaluator, "look")
    assert placed(evaluator, call.args[0], frame).device == "cuda"


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
