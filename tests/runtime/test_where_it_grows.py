"""Whichever loop growth goes with, it is found; what fills, or comes and goes, is none. Each program is there in the dress in which such a
thing comes, and ends by itself."""

import sys
import textwrap
from pathlib import Path

import pytest
from starting import start, write

from gpulint.runtime.parent.verdict import Verification, verify

pytest.importorskip("torch")

HEAD = """
import random, torch
from torch import nn
random.seed(0)
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
def learn(x):
    out = net(x)
    loss = out.pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return out.detach()
kept = []
"""

# -- every event stands in an inner loop ---------------------------------------------------------------------

SHARDS = """
def shards():
    while True:
        rows = torch.randn(300, 16)[torch.randperm(300)]
        yield from rows.split(20)
opened = []
for shard in range(9):
    source = shards()
    {keep}
    for _, x in zip(range(12), source):
        out = net(x)
        optimizer.zero_grad()
        out.pow(2).mean().backward()
        optimizer.step()
"""
TASKS = """
def search():
    task = 0
    while True:
        task += 1
        support = torch.randn(40, 16)
        for _ in range(8):
            loss = net(support).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        {keep}
        if task == 10:
            break
search()
"""
# -- now and then alone --------------------------------------------------------------------------------------

EPOCHS = """
def epoch():
    for _ in range(6):
        out = learn(torch.randn(64, 16))
    return out
def fit(gallery):
    for number in range({epochs}):
        out = epoch()
        {keep}
fit({{}})
"""
BEST = """best = sorted([*best, (random.random(), [p.detach().clone() for p in net.parameters()])], key=lambda one: one[0])[:3]"""
STEPS = """
def fit(log):
    for step in range({steps}):
        x = torch.randn(32, 16)
        out = learn(x)
        {keep}
fit([])
"""
# -- not from the beginning on -------------------------------------------------------------------------------

PHASES = """
def warm_up():
    for _ in range(60):
        learn(torch.randn(32, 16))
def tune(seen):
    for _ in range(60):
        {step}
warm_up()
tune([])
"""
STAGES = """
def stage(name, steps):
    for _ in range(steps):
        out = learn(torch.randn(32, 16))
        if name == "main":
            {keep}
for name, steps in (("burn-in", 100), ("main", 220)):
    stage(name, steps)
"""
SERVED = """
import torch
from torch import nn
net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4)).eval()
def serve(requests, keep):
    for number in range(requests):
        with torch.inference_mode():
            keep(net(torch.randn(32, 16)))
def calibrate():
    for _ in range(60):
        with torch.inference_mode():
            net(torch.randn(32, 16))
calibrate()
answers = []
serve(120, {keep})
"""
# -- with passes over the data, with evaluations --------------------------------------------------------------

PASSES = """
class Wrapper(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = net
    def forward(self, x):
        return self.net(x)
data = torch.utils.data.DataLoader(torch.randn(64, 16), batch_size=8)
batches = iter(data)
for step in range(44):
    try:
        batch = next(batches)
    except StopIteration:
        {after}
        batches = iter(data)
        batch = next(batches)
    learn(batch)
    if step % 11 == 10:
        wrapped = Wrapper()
        with torch.no_grad():
            for _ in range(3):
                out = wrapped(batch)
        {evaluated}
"""
TRIALS = """
for rate in range(5):
    net = nn.Linear(256, 256)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for _ in range(30):
        learn(torch.randn(8, 256))
    {keep}
"""
# What it keeps goes as the script ends, which lets go of it in no window.
TRAINER = """
class Trainer:
    def __init__(self):
        self.scores = []
    def fit(self, epochs):
        for _ in range(epochs):
            for _ in range(6):
                learn(torch.randn(64, 16))
            self.validate()
    @torch.no_grad()
    def validate(self):
        net.eval()
        for _ in range(4):
            self.scores.append(net(torch.randn(4096, 16)).square().mean(1))
        net.train()
Trainer().fit(8)
"""
NEEDS_ROUNDS = pytest.mark.skipif(sys.version_info < (3, 12), reason="rounds are told by `sys.monitoring`")

LEAKS = {
    "generators_left_open": pytest.param(
        SHARDS.format(keep="opened.append(source)"),
        "round of `for shard in range(9)`",
        "opened",
        marks=NEEDS_ROUNDS,
    ),
    "supports_of_each_task": pytest.param(
        TASKS.format(keep="kept.append(support)"), "round of `while True`", "kept", marks=NEEDS_ROUNDS
    ),
    "every_third_epoch": pytest.param(
        EPOCHS.format(epochs=18, keep="if number % 3 == 0: gallery[number] = out"),
        "call of `epoch()`",
        "gallery[...]",
    ),
    "every_fortieth_step": pytest.param(
        STEPS.format(steps=420, keep="if step % 40 == 7: log.append((x, out))"), "stretch of 16 steps", "log"
    ),
    "second_loop": pytest.param(PHASES.format(step="seen.append(learn(torch.randn(32, 16)))"), "", "seen"),
    "second_stage": pytest.param(STAGES.format(keep="kept.append(out)"), "stretch of 16 steps", "kept"),
    "second_loop_of_inference": pytest.param(SERVED.format(keep="answers.append"), "", "answers"),
    "between_two_passes": pytest.param(
        PASSES.format(after="kept.append(torch.randn(256, 256))", evaluated="pass"),
        "pass over a DataLoader",
        "kept",
    ),
    "a_wrapper_for_each_evaluation": pytest.param(
        PASSES.format(after="pass", evaluated="kept.append(out.repeat(16, 64))"), "evaluation", "kept"
    ),
    "networks_of_trials": pytest.param(
        TRIALS.format(keep="kept.append(net)"), "round of `for rate in range(5)`", "kept", marks=NEEDS_ROUNDS
    ),
    "until_the_script_ends": pytest.param(TRAINER, "evaluation", "self.scores"),
}
HARMLESS = {
    "generators_given_up": SHARDS.format(keep="opened[:] = [source]"),
    "nothing_of_passes_and_evaluations": PASSES.format(after="pass", evaluated="pass"),
    "numbers_of_trials": TRIALS.format(keep="del net"),
    "last_support": TASKS.format(keep="kept = support"),
    "best_three": EPOCHS.format(epochs=20, keep=BEST).replace("fit(gallery):", "fit(gallery, best=[]):"),
    "one_of_four_slots": EPOCHS.format(epochs=24, keep="gallery[number % 4] = out"),
    "emptied_each_epoch": EPOCHS.format(epochs=12, keep="kept.clear()").replace(
        "learn(torch", "kept.append(learn(torch.randn(8, 16))) or learn(torch"
    ),
    "later_loop_is_wider": PHASES.format(step="learn(torch.randn(256, 16))"),
    "bank_of_the_newest": STEPS.format(
        steps=160, keep="log[:] = [torch.cat([out, *log])[:512]]"
    ),
    "ring_that_fills_slowly": STEPS.format(
        steps=700, keep="log.append(out) if len(log) < 400 else log.__setitem__(step % 400, out)"
    ),
    "masks_of_all_lengths": STEPS.format(steps=300, keep="").replace(
        "x = torch.randn(32, 16)",
        "n = random.randrange(8, 40); kept = {**(kept or {}), n: torch.ones(n, n)}; x = torch.randn(n, 16)",
    ).replace("fit(log):", "fit(log, kept=None):"),
    "curriculum_that_ends": STEPS.format(steps=300, keep="").replace(
        "torch.randn(32, 16)", "torch.randn(8 + 8 * min(step, 60), 16)"
    ),
}  # fmt: skip


@pytest.fixture
def verified(tmp_path: Path, warm_scripts: None):
    def verified(text: str) -> Verification:
        path = write(tmp_path, text if text.startswith("\nimport") else HEAD + text)
        result = start(path, device="cpu", timeout=60.0, reach=60.0)
        assert result.end.reason in ("stopped", "finished"), (result.end, result.stderr)
        return verify(path, result, ())

    return verified


@pytest.mark.parametrize(("text", "window", "holder"), LEAKS.values(), ids=LEAKS)
def test_growth_is_found_whichever_loop_it_goes_with(verified, text, window, holder):
    found = verified(text)
    assert found.exit_code == 1
    assert [rate.window for rate in found.rates] == [window], found.rates
    (one,) = found.unpredicted
    assert f" `{holder}`" in f" {one.text}"


@pytest.mark.parametrize("text", HARMLESS.values(), ids=HARMLESS)
def test_what_fills_or_comes_and_goes_is_no_growth(verified, text):
    found = verified(text)
    assert (found.exit_code, found.rates) == (0, ()), (found.unpredicted, found.unexplained)


# -- what the whole time that a run is watched says, beyond the sampled steps: what comes at random, what has its places --

DRAWING = """
import random, torch
draw, device = random.Random(3), "cuda" if torch.cuda.is_available() else "cpu"
net = torch.nn.Linear(32, 64).to(device)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
def learn():
    out = net(torch.randn(16, 32, device=device))
    optimizer.zero_grad()
    out.pow(2).mean().backward()
    optimizer.step()
    return out.detach()
"""
SCRIPTS = {
    "kept at random": (
        """
        hard = []
        for step in range(100_000):
            out = learn()
            if draw.random() < 0.04:
                hard.append(out)
        """,
        (1, 3),
        "hard",
    ),
    "kept in the first steps of each fold": (
        """
        kept = []
        def fold():
            for step in range(30):
                kept.append(learn())
            for step in range(60):
                learn()
        for number in range(1000):
            fold()
        """,
        (1,),
        "kept",
    ),
    "kept in the first steps of each long round": (
        """
        kept = []
        for number in range(1000):
            for step in range(240):
                out = learn()
                if step < 30:
                    kept.append(out)
        """,
        (1,),
        "kept",
    ),
    "in a list of each of some objects": (
        """
        class Client:
            def __init__(self):
                self.updates = []
        clients = [Client() for _ in range(60)]
        for step in range(100_000):
            draw.choice(clients).updates.append(learn())
        """,
        (1,),
        "clients",
    ),
    "a place for each of many items": (
        """
        class Item:
            made = None
            def get(self):
                if self.made is None:
                    self.made = learn()
                return self.made
        items = [Item() for _ in range(3000)]
        for step in range(100_000):
            learn()
            draw.choice(items).get()
        """,
        (0,),
        "",
    ),
}


@pytest.mark.parametrize(
    ("text", "codes", "holder"),
    [
        pytest.param(*script, id=name, marks=[NEEDS_ROUNDS] if "round" in name else [])
        for name, script in SCRIPTS.items()
    ],
)
def test_what_a_whole_run_says(
    text: str, codes: tuple[int, ...], holder: str, tmp_path: Path, warm_scripts: None
) -> None:
    found = verify("train.py", start(write(tmp_path, DRAWING + textwrap.dedent(text)), reach=8.0), ())
    assert found.exit_code in codes, (found.rates, found.unpredicted, found.harmless)
    if holder:
        assert holder in " ".join(one.text for one in (*found.unpredicted, *found.harmless))
