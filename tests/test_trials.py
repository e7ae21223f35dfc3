"""What a rule on trial asks about runs of networks: which calls they are, in which mode, what becomes of what they give, and where grad can be
switched off for them."""

from __future__ import annotations

from textwrap import dedent

import pytest
from asked_engine import engine, function_of

from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.queries.amounts import amounts
from gpulint.analysis.queries.cover import Cover, cover
from gpulint.analysis.queries.networks.module_mode import module_mode
from gpulint.analysis.queries.networks.runs import Run, runs
from gpulint.analysis.queries.outcome import Outcome, outcome
from gpulint.analysis.queries.raises import raises
from gpulint.analysis.queries.steps import Steps
from gpulint.answers import Verdict

HEAD = "import numpy as np\nimport torch\nfrom torch import nn, optim\nfrom elsewhere import unseen\n"


def runs_in(text: str, name: str = "main") -> tuple[Evaluator, list[Run]]:
    file, evaluator = engine(HEAD + dedent(text))
    return evaluator, list(runs(evaluator, evaluator.root(function_of(file, name))))


def what_of(body: str) -> Outcome:
    evaluator, found = runs_in(f"""
def main(net: nn.Module, x, loader, optimizer, flag):
    out = net(x)
    {body}
""")
    return outcome(evaluator, found[0].inner, found[0].where)


# --- runs ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call", ["print(x)", "torch.cat([x, x])", "x.to('cuda')", "nn.Linear(2, 2)", "len(x)"]
)
def test_other_calls_are_none(call: str) -> None:
    _, found = runs_in(f"def main(x):\n    return {call}\n")
    assert found == []


# --- outcomes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "wanted", "unseen", "read"),
    [
        ("out.sum().backward()", True, False, False),
        ("out.max(1).values.sum().backward()", True, False, True),
        ("unseen(optimizer=optim.Adam(net.parameters()), loss=out)", True, False, False),
        ("unseen(out)", False, True, False),
        ("print(out.argmax(1).tolist())", False, False, True),
        ("kept = out.detach()", False, False, True),
    ],
)
def test_what_becomes_of_what_a_run_gives(body: str, wanted: bool, unseen: bool, read: bool) -> None:
    found = what_of(body)
    assert (bool(found.wanted), bool(found.unseen), bool(found.read)) == (wanted, unseen, read)


@pytest.mark.parametrize(
    ("body", "refused"),
    [("np.array(out.cpu())", True), ("out.cpu().numpy()", True), ("out.detach().numpy()", False)],
)
def test_torch_makes_no_array_of_what_has_a_graph(body: str, refused: bool) -> None:
    assert (what_of(body).undetached is not None) is refused


def test_who_calls_chooses_where_it_is_cut_under_a_condition() -> None:
    assert what_of("return out.detach() if flag else out").by_choice is not None
    assert what_of("return out.detach()").by_choice is None


# --- modes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "mode"),
    [
        ("net.eval()", "eval"),
        ("net.train(False)", "eval"),
        ("net.eval(); net.train()", "train"),
        ("net.train(flag)", "?"),
        ("other.eval()", "?"),
    ],
)
def test_the_mode_is_what_was_set_last(before: str, mode: str) -> None:
    evaluator, (run,) = runs_in(
        f"def main(net: nn.Module, other, x, flag):\n    {before}\n    print(net(x))\n"
    )
    assert module_mode(evaluator, run.named, run.where).mode == mode


# --- what raises, how much, and where to put no_grad -----------------------------------------------------------------


@pytest.mark.parametrize(("call", "refuted"), [("net(x)", False), ("net()", True), ("net(x, x, x)", True)])
def test_a_call_that_does_not_fit_raises(call: str, refuted: bool) -> None:
    file, evaluator = engine(f"""{HEAD}
class Net(nn.Module):
    def forward(self, x, y=None):
        return x
def main(x):
    net = Net()
    return {call}
""")
    main = function_of(file, "main")
    found = raises(evaluator, main.flow.calls["net"][-1], evaluator.root(main))
    assert any(one.verdict is Verdict.REFUTED for one in found) is refuted


@pytest.mark.parametrize(
    "other",
    [
        "class Wide(Net):\n    def forward(self, x, y, z):\n        return x",
        "class Net(nn.Module):\n    def __call__(self, *given):\n        return given\n    def forward(self, x):\n        return x",
    ],
)
def test_what_may_run_another_forward_may_fit(other: str) -> None:
    file, evaluator = engine(f"""{HEAD}
class Net(nn.Module):
    def forward(self, x):
        return x
{other}
def main(net: Net, x):
    return net(x, x, x)
""")
    main = function_of(file, "main")
    assert not list(raises(evaluator, main.flow.calls["net"][0], evaluator.root(main)))


@pytest.mark.parametrize(
    ("layer", "rows", "certain"),
    [
        ("nn.Conv2d(3, 8, 3)", "loader", True),
        ("nn.Linear(8, 8)", "loader", False),
        ("unseen()", "loader", True),
        ("unseen()", "x", False),
    ],
)
def test_what_a_run_saves_is_weighed(layer: str, rows: str, certain: bool) -> None:
    evaluator, found = runs_in(f"""
def main(loader, x):
    net = {layer}
    net.cuda()
    for part in {rows}:
        print(net(part.cuda()).argmax(1).tolist())
""")
    run = next(one for one in found if one.is_direct)
    assert all(one.verdict is Verdict.PROVEN and not one.minor for one in amounts(evaluator, run)) is certain


def cover_of(text: str, name: str = "main") -> Cover | None:
    evaluator, found = runs_in(text, name)
    return cover(evaluator, Steps(evaluator), found)


EVALUATION = """
def main(net: nn.Module, loader, optimizer):
    net.eval()
    total = 0.0
    for x in loader:
        {line}
        total += net(x).mean().item()
    return total
"""


@pytest.mark.parametrize(
    ("line", "whole", "statements", "doubt"),
    [
        ("pass", True, 0, False),
        ("unseen(net)", False, 1, False),
        ("yield x", False, 1, False),
    ],
)
def test_as_much_is_covered_as_is_seen_to_need_no_grad(
    line: str, whole: bool, statements: int, doubt: bool
) -> None:
    found = cover_of(EVALUATION.format(line=line))
    assert found is not None
    assert (found.whole, len(found.statements), bool(found.doubt)) == (whole, statements, doubt)


def test_what_trains_beside_is_not_covered() -> None:
    found = cover_of("""
        def main(net: nn.Module, other: nn.Module, loader, optimizer):
            for x in loader:
                other(x).mean().backward()
                optimizer.step()
                print(net(x).mean().item())
        """)
    assert found is None or not found.whole
