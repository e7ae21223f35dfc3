"""The parent side: how programs are started, followed and ended, and what is said about every kind of end."""

import functools
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
import warm
from needs import cards
from starting import start, write
from support import run_command

from gpulint.runtime.parent.runner import Run, run
from gpulint.runtime.record.options import Lines, Options, join_lines
from gpulint.runtime.record.result import End, RunResult

pytestmark = pytest.mark.usefixtures("nothing_left")
in_a_fork = pytest.mark.usefixtures("warm_scripts")  # of a process that has torch: not about the start


STEPS = """
import sys, time
from gpulint.marks import step
for number in range(1000):
    step()
"""

TRAINING = """
import torch
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def train(steps, seen=lambda loss: None):
    for _ in range(steps):
        loss = model(torch.randn(4, 8)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen(loss)
"""


@pytest.fixture
def script(tmp_path: Path):
    """Writes a script and returns its path."""
    return functools.partial(write, tmp_path)


# -- as the script would have it -----------------------------------------------------------------------------


def test_a_script_sees_what_it_would_see_without_the_verifier(script, tmp_path):
    text = """
    import json, os, sys
    seen = dict(argv=sys.argv, path0=sys.path[0], path=sys.path, name=__name__, file=__file__, cwd=os.getcwd(),
                main=sys.modules["__main__"].__dict__ is globals(), spec=__spec__, package=__package__,
                stdin=sys.stdin.read(), torch="torch" in sys.modules, doc=__doc__)
    print(json.dumps(seen))
    """
    path = script('"""What it says."""' + textwrap.dedent(text), "sub/train.py")
    stdin = tmp_path / "in"
    stdin.write_text("hello")
    plain = run_command(sys.executable, path, "--a", "b c", input="hello", status=0).stdout
    with open(stdin) as fed:
        saved = os.dup(0)
        os.dup2(fed.fileno(), 0)
        try:
            watched = start(path, "--a", "b c").stdout
        finally:
            os.dup2(saved, 0)
            os.close(saved)
    assert watched == plain


def test_a_module_sees_what_it_would_see_without_the_verifier(script, tmp_path):
    script("", "package/__init__.py")
    script(
        "import sys; print(sys.argv, sys.path[0], __name__, __package__, __spec__.name, __file__)",
        "package/work.py",
    )
    plain = run_command(sys.executable, "-m", "package.work", "x", cwd=tmp_path, status=0).stdout
    assert start("package.work", "x", module=True, cwd=str(tmp_path)).stdout == plain


def test_gpulint_folders_do_not_shadow_the_users_modules(script):
    script("value = 'mine'", "result.py")
    script("value = 'mine'", "drift.py")
    path = script("import result, drift; print(result.value, drift.value)")
    assert start(path).stdout == "mine mine\n"


def test_output_passes_through_unless_captured(script, capfd):
    result = run(Run(script("import sys; print('out'); print('err', file=sys.stderr)")))
    captured = capfd.readouterr()
    assert (captured.out, captured.err) == ("out\n", "err\n")
    assert result.stdout is None


# -- ends ----------------------------------------------------------------------------------------------------


def test_stops_after_the_steps_asked_for(script):
    progress = []
    what = Run(script(STEPS + "print('never')"), steps=7, warmup=2, capture=True)
    result = run(what, progress.append)
    assert result.end.reason == "stopped"
    assert result.end.message == "stopped after 7 sampled steps"
    assert result.stdout == ""
    assert result.stderr == ""
    assert [p.sample.step for p in progress] == list(range(1, 10))
    assert [p.sample.sampled for p in progress] == [False] * 2 + [True] * 7
    assert {p.wanted for p in progress[2:]} == {9}
    (rank,) = result.ranks
    assert rank.boundary == "explicit"
    assert rank.steps("explicit") == 7


def test_a_script_that_raises_shows_its_own_traceback_only(script):
    path = script(STEPS.replace("1000", "4") + "def fail():\n    raise KeyError('batch 7')\nfail()\n")
    result = start(path)
    paths = [str(Path(__file__).parent.parent.parent), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    plain = run_command(sys.executable, path, env=environment)
    assert result.stderr == plain.stderr
    assert result.end.reason == "raised"
    assert result.end.message == "the script raised KeyError: 'batch 7' after 4 steps"
    assert result.command == (sys.executable, path)
    assert result.end.where.function == "fail"
    assert result.end.code == 1
    assert len(result.ranks[0].samples) == 4


@pytest.mark.parametrize(
    ("call", "reason", "code", "said"),
    [
        ("", "finished", 0, "the script ended by itself after 2 steps, all of them warm-up (--warmup 0 "),
        ("sys.exit()", "finished", 0, "the script ended by itself after 2 steps, all of them warm-up"),
        ("sys.exit(3)", "exit", 3, "the script called sys.exit(3) after 2 steps"),
        ("sys.exit('no data')", "exit", 1, "the script called sys.exit(1) after 2 steps: no data"),
        ("os._exit(5)", "killed", 5, "the process ended at once (os._exit) with code 5 after 2 steps"),
        ("os.kill(os.getpid(), 9)", "killed", None, "the process was killed by SIGKILL (out of memory"),
    ],
)
def test_a_script_that_ends(script, call, reason, code, said):
    result = start(script(STEPS.replace("1000", "2") + f"import os\n{call}"))
    assert (result.end.reason, result.end.code) == (reason, code)
    assert result.end.message.startswith(said)
    assert "after 2 steps" in result.end.message
    assert result.end.signal == (signal.SIGKILL if "SIGKILL" in said else None)
    assert len(result.ranks[0].samples) == 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"target": "missing.py"}, "the script missing.py does not exist"),
        ({"target": "no.such.module", "module": True}, "No module named"),
        ({"target": __file__, "python": "/no/such/python"}, "the interpreter /no/such/python does not exist"),
    ],
)
def test_what_cannot_be_started_says_so(options, said):
    result = run(Run(capture=True, **options))
    assert result.end.reason == "not-started"
    assert said in result.end.message


# -- stopping against resistance -----------------------------------------------------------------------------


CLEANING = """
import atexit
from gpulint.marks import step
atexit.register(lambda: print("atexit"))
try:
    while True:
        step()
finally:
    print("finally")
"""
HANGING = """
import time
from gpulint.marks import step
def load():
    time.sleep(1000)
for _ in range(6):
    step()
load()
"""
STARTING = """
import os, subprocess, sys
from gpulint.marks import step
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"], start_new_session=True)
if os.fork() == 0:
    os.setsid()
    import time
    time.sleep(1000)
while True:
    step()
"""
FORKING = """
import os
from gpulint.marks import step
for _ in range(4):
    step()
if os.fork() == 0:
    for _ in range(100):
        step()
    os._exit(0)
os.wait()
for _ in range(3):
    step()
"""
SWALLOWING = """
from gpulint.marks import step
while True:
    try:
        step()
    {}
        pass
"""
STOPPED, TIME = "stopped after 3 sampled steps", "the time was up after 6 steps, at train.py:5 in load"


@pytest.mark.parametrize(
    ("text", "options", "message", "output", "steps"),
    [
        (SWALLOWING.format("except Exception:"), {"steps": 3}, STOPPED, "", 6),
        (SWALLOWING.format("except BaseException:"), {"steps": 3}, STOPPED, "", 6),
        (CLEANING, {"steps": 3}, STOPPED, "finally\natexit\n", 6),
        (STARTING, {"steps": 3}, STOPPED, "", 6),
        (HANGING, {"timeout": 1.5}, TIME, "", 6),
        # a forked process neither steps nor reports
        (FORKING, {}, "the script ended by itself after 7 steps", "", 7),
    ],
)
def test_how_a_script_is_stopped_or_ends(script, text, options, message, output, steps):
    result = start(script(text), **options)
    assert (result.end.message, result.stdout) == (message, output)
    assert "Error" not in result.stderr
    assert [len(rank.samples) for rank in result.ranks] == [steps]


def test_a_process_that_ignores_everything_is_killed(script, monkeypatch):
    monkeypatch.setattr("gpulint.runtime.parent.runner.REPORT_GRACE", 0.5)
    text = STEPS.replace("1000", "3") + "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)"
    result = start(script(text), timeout=1.0)
    assert result.end.reason == "timeout"
    assert "after 3 steps" in result.end.message
    assert len(result.ranks[0].samples) == 3


def test_ctrl_c_ends_the_run_and_keeps_what_was_measured(script):
    path = script(STEPS.replace("    step()", "    step(); time.sleep(0.05)").replace("1000", "100000"))

    def interrupt(progress):
        if progress.sample.step == 5:
            os.kill(os.getpid(), signal.SIGINT)

    result = run(Run(path, steps=10000, capture=True), interrupt)
    assert result.end.reason == "interrupted"
    assert len(result.ranks[0].samples) > 3
    assert result.stderr == ""


def test_when_the_parent_dies_the_child_ends(script, tmp_path):
    pid_file = tmp_path / "pid"
    path = script(f"import os, time\nopen({str(pid_file)!r}, 'w').write(str(os.getpid()))\ntime.sleep(1000)")
    parent = subprocess.Popen(
        [sys.executable, "-c", f"from gpulint.runtime.parent.runner import *; run(Run({path!r}))"],
        cwd=Path(__file__).parent.parent.parent,
    )
    deadline = time.monotonic() + 20
    while not (pid_file.exists() and pid_file.read_text()) and time.monotonic() < deadline:
        time.sleep(0.02)
    child = int(pid_file.read_text())
    parent.kill()
    parent.wait()
    while Path(f"/proc/{child}").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not Path(f"/proc/{child}").exists()


def test_megabytes_of_output_neither_block_nor_pile_up(script):
    text = STEPS.replace("    step()", "    print('x' * 100_000)\n    step()")
    result = start(script(text), steps=50)
    assert result.end.reason == "stopped"
    assert result.stdout.startswith("[… ")
    assert 1_000_000 < len(result.stdout) < 1_200_000


def test_a_full_temporary_folder_does_not_matter(script, tmp_path):
    full = tmp_path / "none"
    full.mkdir()
    full.chmod(0o500)
    text = "import tempfile, os\nassert os.environ['TMPDIR'] == " + repr(str(full)) + STEPS
    result = start(script(text), steps=4, environment={"TMPDIR": str(full)})
    assert result.end.reason == "stopped"
    assert list(full.iterdir()) == []


# -- lines of interest ---------------------------------------------------------------------------------------


@in_a_fork
def test_no_warm_up_where_none_is_asked_for(script):
    path = script(TRAINING + "train(8)\n")
    (rank,) = start(path, warmup=0, steps=5, device="cpu").ranks
    assert [sample.sampled for sample in rank.samples] == [True] * 5
    assert (rank.warmup, rank.steps("train")) == (0, 5)


@in_a_fork
@pytest.mark.skipif(cards() > 0, reason="this machine has a GPU")
@pytest.mark.parametrize(
    "around", ["{}", "try:\n    {}\nexcept Exception:\n    pass"], ids=["plain", "guarded"]
)
def test_cuda_that_is_asked_for_and_not_there_is_an_error(script, around):
    result = start(script(around.format("import torch") + "\nprint('went on')\n"), device="cuda")
    assert result.end.reason == "no-device"
    assert "--device cuda was asked for, but torch" in result.end.message
    assert "went on" not in (result.stdout or "")


def test_lines_are_counted_in_scripts_and_imported_modules(script):
    helper = script("def help(number):\n    if number % 2:\n        return 1\n    return 0\n", "helper.py")
    path = script(
        """\
        import helper
        from gpulint.marks import step
        for number in range(10):
            helper.help(number)
            step()
        """
    )
    wanted = join_lines([(path, 4), (helper, 3), (helper, 4), (path, 99)])
    result = start(path, lines=wanted, warmup=3, steps=100)
    counts = {
        (os.path.basename(one.file), one.line): (one.hits, one.sampled_hits) for one in result.ranks[0].lines
    }
    assert counts == {
        ("train.py", 4): (10, 7),
        ("train.py", 99): (0, 0),
        ("helper.py", 3): (5, 4),
        ("helper.py", 4): (5, 3),
    }


# -- training, with torch ------------------------------------------------------------------------------------


LONG_EPOCHS = """
import torch
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
model = torch.nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data, few = (TensorDataset(torch.randn(size, 8)) for size in (100_000, 160))
def evaluate():
    model.eval()
    outs = []
    for (x,) in DataLoader(few, batch_size=4):
        outs.append(model(x))
    model.train()
for epoch in range(10):
    for (x,) in DataLoader(data, batch_size=4, shuffle=True):
        loss = model(x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    evaluate()
"""


@in_a_fork
@pytest.mark.parametrize(("line", "hits"), [(12, 10), (13, 1)])
def test_an_awaited_line_in_or_after_an_evaluation_is_reached_by_cutting_epochs(script, line, hits):
    path = script(LONG_EPOCHS)
    lines = join_lines([(path, line)])
    result = start(path, lines=lines, awaited=lines, reach=30.0, cut_epochs=True, device="cpu")
    assert result.end.reason == "stopped"
    (rank,) = result.ranks
    assert rank.steps("train") == 20
    assert any("cut short" in note for note in rank.notes)
    (leak,) = (drift for drift in rank.leaks() if drift.kind == "eval")
    assert leak.bytes_per_step == 512
    assert any(holder.text.startswith("list `outs` in `evaluate()`") for holder in rank.holders)
    assert (rank.lines[0].hits or 0) >= hits


VALIDATING = """
import torch
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
model = torch.nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = TensorDataset(torch.randn(120, 8))
{loader}
def evaluate():
    model.eval()
    total, n = 0.0, 0
    with torch.no_grad():
        for (x,) in DataLoader(data, batch_size=24):
            total += model(x).pow(2).mean().item()
            n += 1
    model.train()
    return total / n
for epoch in range(4):
    total, n = 0.0, 0
    for (x,) in loader:
        loss = model(x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
        n += 1
    {check}
    print(f"epoch {{epoch}} train {{total / n:.6f}} valid {{evaluate():.6f}}", flush=True)
    if epoch == 7:
        print("never")
"""
PLAIN_LOADER = "loader = DataLoader(data, batch_size=4, shuffle=True)"
PERSISTENT = "loader = DataLoader(data, batch_size=4, num_workers=1, persistent_workers=True)"


def awaiting_what_never_runs(path: str, **options) -> RunResult:
    line = Path(path).read_text().splitlines().index('        print("never")') + 1
    lines = join_lines([(path, line)])
    return start(path, lines=lines, awaited=lines, reach=30.0, device="cpu", **options)


def plain_output(path: str) -> str:
    options = {"capture_output": True, "text": True, "check": True, "timeout": 60}
    return warm.run_torch([sys.executable, path], **options).stdout


@in_a_fork
@pytest.mark.parametrize("loader", [PLAIN_LOADER, PERSISTENT], ids=["plain", "persistent_workers"])
def test_a_script_prints_what_it_prints_without_the_verifier(script, loader):
    path = script(VALIDATING.format(loader=loader, check=""))
    result = awaiting_what_never_runs(path)
    assert (result.end.reason, result.stdout) == ("finished", plain_output(path))
    assert result.ranks[0].lines[0].hits == 0


@in_a_fork
@pytest.mark.parametrize("loader", [PLAIN_LOADER, PERSISTENT], ids=["plain", "persistent_workers"])
def test_no_loop_is_cut_to_nothing_and_no_evaluation_at_all(script, loader):
    path = script(VALIDATING.format(loader=loader, check="print('batches', n)"))
    result = awaiting_what_never_runs(path, cut_epochs=True)
    assert result.end.reason == "finished", result.end
    batches = [int(line.split()[1]) for line in result.stdout.splitlines() if line.startswith("batches")]
    assert batches[0] < 30, "the first epoch is cut short"
    assert min(batches) >= 1
    assert sum(forward.count for forward in result.ranks[0].forwards if not forward.training) == 4 * 5


@in_a_fork
def test_a_failure_that_cutting_caused_is_not_the_scripts(script):
    check = "losses = [] if n == len(loader) else 1 / 0"
    text = VALIDATING.format(loader=PLAIN_LOADER, check=check).replace(
        "total += loss.item()", "total += loss.item(); kept.append(loss)"
    )
    path = script("kept = []\n" + text)
    result = awaiting_what_never_runs(path, cut_epochs=True)
    (rank,) = result.ranks
    assert result.end.reason == "stopped"
    assert any("ZeroDivisionError" in note and "cut its epochs short" in note for note in rank.notes)
    assert [drift.bytes_per_step for drift in rank.leaks()] == [512], "what was established before stands"


@in_a_fork
def test_a_script_that_fails_by_itself_while_it_goes_on_is_to_blame(script):
    check = "assert epoch < 2"
    path = script(VALIDATING.format(loader=PLAIN_LOADER, check=check))
    result = awaiting_what_never_runs(path)
    assert result.end.reason == "raised"


GENERATING = (
    TRAINING
    + """
train(1)
model.eval()
with torch.no_grad():
    x = torch.randn(4, 8)
    for _ in range(600):
        x = model(x)
model.train()
train(1000)
"""
)


@in_a_fork
def test_a_long_evaluation_before_training_neither_ends_the_run_nor_is_sampled_to_its_end(script):
    result = start(script(GENERATING), device="cpu")
    assert result.end.reason == "stopped"
    (rank,) = result.ranks
    assert rank.steps("train") == 20
    assert 20 <= rank.steps("eval") <= 25


FRAMEWORK = """
import torch
def fit(make):
    module = make()
    optimizer = torch.optim.SGD(module.net.parameters(), lr=0.1)
    for _ in range(1000):
        loss = module.training_step(torch.randn(4, 8))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return None
"""
USING_IT = """
import sys
sys.path.insert(0, {site!r})
import torch
from framework import fit
class Lit:
    def __init__(self):
        self.net = torch.nn.Linear(8, 64)
        self.outs = []
    def training_step(self, x):
        out = self.net(x)
        self.outs.append(out.detach().clone())
        return out.pow(2).mean()
fit(Lit)
"""


@in_a_fork
def test_an_attribute_that_only_a_frameworks_frame_leads_to_is_named(script, tmp_path):
    site = tmp_path / "site-packages"
    script(FRAMEWORK, "site-packages/framework.py")
    (rank,) = start(script(USING_IT.format(site=str(site))), device="cpu").ranks
    (leak,) = rank.leaks()
    assert leak.bytes_per_step == 1024
    assert "`self.outs` of `Lit`" in rank.holders[0].text
    assert rank.holders[0].line == 12


@in_a_fork
def test_nothing_is_cut_short_unless_a_line_is_awaited(script):
    path = script(LONG_EPOCHS)
    (rank,) = start(path, lines=join_lines([(path, 12)])).ranks
    assert rank.lines[0].hits == 0
    assert rank.steps("eval") == 0
    assert not any("cut short" in note for note in rank.notes)


# -- what crosses the process boundary -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "error"),
    [({"reason": "vanished"}, ValueError), ({"message": 3}, TypeError), ({"where": [1]}, TypeError)],
)
def test_other_forms_are_refused(change, error):
    with pytest.raises(error):
        End.from_json({"reason": "raised", "message": "x", **change})


def test_missing_fields_take_their_default_and_unknown_ones_are_ignored():
    assert Options.from_json({"steps": 5, "colour": "blue"}) == Options(steps=5)


def test_lines_are_joined_by_file():
    assert join_lines([("b", 2), ("a", 3), ("b", 1), ("b", 2)]) == (
        Lines("a", ((3, 0),)),
        Lines("b", ((1, 0), (2, 0))),
    )
