"""Programs that are made to be followed for ever. What is done for one is counted and never timed, so that the tests are the
same on every machine; whoever changes the analysis is held to them."""

import re
from pathlib import Path

import pytest

from gpulint import Config, check_source
from gpulint.analysis.evaluate import consumers, evaluator
from gpulint.analysis.evaluate.consumers import MOST_FOLLOWED
from gpulint.analysis.evaluate.evaluator import MOST_EVALUATED, Evaluator
from gpulint.answers import NO_FURTHER

EVERYTHING = Config.from_mapping({"confidence": "low"})


def fan(functions: int, calls: int) -> str:
    """Functions each of which calls the next ones, with a container that all of them fill."""
    bodies = (
        f"def f{i}(m, x, acc):\n"
        + "".join(f"    acc.append(f{j}(m, x, acc))\n" for j in range(i + 1, min(i + 1 + calls, functions)))
        + "    return m(x)\n"
        for i in range(functions)
    )
    start = "def main(m, xs):\n    m.eval()\n    acc = []\n    for x in xs:\n        f0(m, x, acc)\n"
    return "import torch\n" + "".join(bodies) + start


def among_all(functions: int, _: int = 0) -> str:
    """Functions that all call each other."""
    calls = "".join(f"    acc.append(f{j}(m, x, acc))\n" for j in range(functions))
    bodies = "".join(f"def f{i}(m, x, acc):\n{calls}    return m(x)\n" for i in range(functions))
    return f"import torch\n{bodies}def main(m, xs):\n    m.eval()\n    acc = []\n    for x in xs:\n        f0(m, x, acc)\n"


def chained(calls: int) -> str:
    return f"import torch\ndef f(m, xs):\n    acc = []\n    for x in xs:\n        acc.append(m(x){'.relu()' * calls})\n"


def backwards(count: int) -> str:
    step = "        loss = m(x)\n        loss.backward(retain_graph=True)\n        opt.step()\n"
    return "import torch\ndef f(m, xs, opt):\n    for x in xs:\n" + step * count


def spent(source: str) -> int:
    """What is gone through to lint a text."""
    asked: list[int] = []
    release = Evaluator.release

    def counted(self: Evaluator) -> None:
        asked.append(self.evaluated + self.followed)
        release(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Evaluator, "release", counted)
        check_source(source, "/clone/program.py")
    return asked[0]


@pytest.mark.parametrize(
    "source", [fan(200, 8), among_all(40), backwards(120)], ids=["fan", "all", "backwards"]
)
def test_no_program_takes_more_than_there_is(source: str) -> None:
    assert spent(source) < 1.1 * (MOST_EVALUATED + MOST_FOLLOWED)


@pytest.mark.parametrize(
    ("functions", "calls"), [(4, 4), (6, 2), (12, 1)], ids=["wide", "narrow", "one after the other"]
)
def test_what_is_gone_through_grows_with_the_file(functions: int, calls: int) -> None:
    """Programs side by side in a file, that have nothing to do with each other; no budget ends it."""
    one = fan(functions, calls).removeprefix("import torch\n")
    little, large = (
        spent("import torch\n" + "".join(re.sub(r"\b(f\d+|main)\b", rf"\1_{i}", one) for i in range(several)))
        for several in (4, 12)
    )
    assert 1_000 < large < min(3.5 * little, MOST_EVALUATED / 2)


def test_programs_of_every_day_are_far_from_the_limits() -> None:
    fixtures = sorted((Path(__file__).parents[2] / "fixtures").glob("*.py"))
    assert 0 < max(spent(path.read_text()) for path in fixtures) < MOST_EVALUATED / 10


def test_calls_chained_by_the_thousand_are_followed_once_each() -> None:
    """Each call is gone through a few times, however many there are."""
    assert 1_000 < spent(chained(1_000)) < 20_000


def test_where_a_question_ends_for_its_length_is_a_doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    uses = "".join(f"        y = y.relu() + {i}\n" for i in range(20))
    source = f"import torch\ndef main(m: torch.nn.Module, xs):\n    m.eval()\n    for x in xs:\n        y = m(x)\n{uses}        print(y.sum().item())\n"
    assert NO_FURTHER not in check_source(source, "/clone/program.py", config=EVERYTHING)[0].doubts
    monkeypatch.setattr(consumers, "MOST_STEPS", 5)
    (found,) = check_source(source, "/clone/program.py", config=EVERYTHING)
    assert (found.code, found.confidence.value) == ("GPU201", "low")
    assert NO_FURTHER in found.doubts
    assert not check_source(source, "/clone/program.py"), "what was not looked into is not certain"


def test_what_a_rule_that_asks_looks_for_ends_with_a_doubt_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluator, "MOST_EVALUATED", 100)
    found = check_source(fan(20, 8), "/clone/program.py", config=EVERYTHING)
    (end,) = [one for one in found if one.message.endswith("were not looked for to the end")]
    assert (end.severity.value, end.confidence.value) == ("info", "low")


def test_chains_that_take_the_parser_minutes_are_named() -> None:
    held = "def f(m, xs):\n    acc = []\n    for x in xs:\n        y = m(x)\n        y.backward()\n        acc.append(y)\n"
    one, nested = "    z = m(xs)" + ".view(1)" * 1_000, "    z = " + "m(" * 190 + "xs" + ")" * 190
    for chains in (f"{one}\n", f"{nested}\n" * 12):
        found = check_source(f"import torch\n{held}{chains}", "/clone/program.py")
        assert [finding.code for finding in found] == ["GPU000"]
        assert "chained too deeply" in found[0].message


def test_a_network_of_hundreds_of_layers_is_looked_into() -> None:
    """Each layer rests on the one before it, in two calls: followed by functions that call themselves they would take more than Python's own stack."""
    layers = "".join("        x = self.layer(x).relu()\n" for _ in range(400))
    source = (
        "import torch\nclass Deep(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.layer = torch.nn.Conv2d(3, 3, 3)\n    def forward(self, x):\n"
        + layers
        + "        return x\n"
        "def main(loader):\n    net = Deep().cuda().eval()\n    for x, y in loader:\n"
        "        print((net(x.cuda()).argmax(1) == y.cuda()).sum().item())\n"
    )
    assert "GPU201" in {one.code for one in check_source(source, "/clone/program.py", config=EVERYTHING)}
