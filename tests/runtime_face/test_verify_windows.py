"""Windows that the user names, and those that were seen too seldom."""

import json
from pathlib import Path

import pytest
from needs import needs_torch
from warm import verify

pytestmark = needs_torch

SERVING = """
import torch, gpulint
from torch import nn

net = nn.Linear(64, 64).eval()


class Server:
    sessions = {{}}

    def answer(self, number):
        past = torch.empty(0, 64)
        with torch.inference_mode():
            for _ in range(5):
                past = torch.cat([past, net(torch.randn(64, 64))])
        self.sessions.update({{{key}: past}})  # as no rule tells it
        return past.mean().item()


server = Server()
for number in range(40):
    {request}
"""

KEEPING = SERVING.format(key="number", request="server.answer(number)")
MARKED = SERVING.format(
    key="number", request="with gpulint.window('request'):\n        server.answer(number)"
)
REPLACING = SERVING.format(key="0", request="server.answer(number)")

EVALUATING = """
import torch
from torch import nn

net = nn.Linear(64, 512)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
kept = []
for epoch in range({epochs}):
    net.train()
    for _ in range(10):
        loss = net(torch.randn(16, 64)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        for _ in range({batches}):
            kept.append(net(torch.randn(128, 64)))
"""


def run(folder: Path, text: str, *options: str) -> tuple[int, dict[str, object], str]:
    (folder / "train.py").write_text(text, encoding="utf-8")
    done = verify(folder, *options, "-q", "--output-format", "json", "train.py")
    return done.returncode, json.loads(done.stdout or "{}"), done.stderr


@pytest.mark.parametrize(
    ("text", "options", "window"),
    [
        (KEEPING, ("--unit", "Server.answer"), "call of `Server.answer()`"),
        (KEEPING, ("--step", "answer"), ""),
        (MARKED, (), "request"),
    ],
    ids=["unit", "step", "marked"],
)
def test_growth_is_told_by_the_window_in_which_it_is_regular(
    tmp_path: Path, text: str, options: tuple[str, ...], window: str
) -> None:
    code, data, _ = run(tmp_path, text, *options)
    assert code == 1
    assert [(rate["window"], rate["each"]) for rate in data["rates"]] == [(window, 5 * 64 * 64 * 4)]
    (found,) = data["unpredicted"]
    assert "`self.sessions[...]`" in found["text"] or "`Server.sessions" in found["text"]


def test_what_grows_within_a_call_and_goes_with_it_is_no_growth(tmp_path: Path) -> None:
    for options in ((), ("--step", "answer"), ("--unit", "answer")):
        code, data, _ = run(tmp_path, REPLACING, *options)
        assert (code, data["rates"]) == (0, [])


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("reply", "neither the script nor a module of its own that it imports defines it"),
        ("twice", "there are several: twice (train.py:1), Other.twice (train.py:3)"),
    ],
)
def test_a_function_that_is_not_there_is_wrong_use(tmp_path: Path, name: str, words: str) -> None:
    text = "def twice(): ...\nclass Other:\n    def twice(self): ...\n"
    code, _, said = run(tmp_path, text, "--step", name)
    assert code == 2
    assert words in said


def test_one_evaluation_says_nothing_of_growth_over_evaluations(tmp_path: Path) -> None:
    for batches in (2, 8):
        code, data, _ = run(tmp_path, EVALUATING.format(epochs=1, batches=batches))
        assert (code, data["rates"]) == (0, [])
        (left,) = data["harmless"]
        assert left["why"] in ("few", "occasional")


def test_a_leak_that_ends_out_of_memory_is_verified(tmp_path: Path) -> None:
    text = EVALUATING.format(epochs=9, batches=2)
    fails = (
        text
        + "    if epoch == 4:\n        raise torch.OutOfMemoryError('CUDA out of memory. Tried to allocate')\n"
    )
    code, data, _ = run(tmp_path, fails, "--steps", "100")
    end = data["run"]["end"]
    assert (code, end["reason"], end["out_of_memory"]) == (1, "raised", True)
    assert end["message"].startswith("the script raised OutOfMemoryError: CUDA out of memory. Tried to")
    harmless = fails.replace("kept.append(", "(")
    assert run(tmp_path, harmless, "--steps", "100")[0] == 2


INLINE = """
for rate in range(5):
    net = nn.Linear(256, 256)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for _ in range(steps):
        optimizer.zero_grad()
        net(torch.randn(8, 256)).square().mean().backward()
        optimizer.step()
    kept.append(net)
"""
HEAD = "import torch\nfrom torch import nn\nkept = []\n"
DRIVER = "import runpy\nfrom keeping import kept\nfor trial in range(5):\n    runpy.run_path('once.py', run_name='__main__')\n"


def test_trials_are_gone_on_to_after_the_sampled_steps(tmp_path: Path) -> None:
    (tmp_path / "keeping.py").write_text("kept = []\n", encoding="utf-8")
    once = HEAD.replace("kept = []", "from keeping import kept") + INLINE.replace(
        "for rate in range(5)", "if kept is not None"
    )
    once = once.replace("range(steps)", "range(30)")
    (tmp_path / "once.py").write_text(once, encoding="utf-8")
    code, data, _ = run(tmp_path, DRIVER)
    assert code == 1
    (rate,) = data["rates"]
    assert rate["window"] == "run of `once.py`"
    assert rate["each"] >= (256 * 256 + 256) * 4
    (found,) = data["unpredicted"]
    assert "list `kept`" in found["text"]
    (tmp_path / "once.py").write_text(once.replace("kept.append", "print"), encoding="utf-8")
    assert run(tmp_path, DRIVER)[0] == 0


def test_a_loop_that_does_not_come_round_in_time_is_said(tmp_path: Path) -> None:
    text = HEAD + INLINE.replace("range(steps)", "range(10**9)")
    (tmp_path / "train.py").write_text(text, encoding="utf-8")
    said = verify(tmp_path, "--reach", "1", "--report", "page.html", "train.py").stdout
    words = "nothing is said below three (--reach)"
    assert "round of `for rate in range(5)`: no end of one seen when the time for it was up" in said
    assert words in said
    assert words in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_how_often_a_loop_came_round_is_said(tmp_path: Path) -> None:
    text = HEAD + INLINE.replace("range(steps)", "range(30)").replace("kept.append(net)", "del net")
    (tmp_path / "train.py").write_text(text, encoding="utf-8")
    done = verify(tmp_path, "train.py", status=0)
    assert "round of `for rate in range(5)`: 5 seen, train.py:5" in done.stdout
    assert "round of `for _ in" not in done.stdout  # which are the steps
