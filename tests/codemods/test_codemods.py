"""The codemods on small scripts, on loops as public training scripts have them, and on whole training scripts that run afterwards."""

import subprocess
import sys
import textwrap
from functools import cache
from pathlib import Path

import pytest
import warm
from click.testing import CliRunner
from support import as_text

from gpulint.cli.commands.codemod import command
from gpulint.codemods import NAMES, transform

FIXTURES = Path(__file__).parents[2] / "fixtures"
SCRIPTS = sorted(path for path in FIXTURES.glob("*.py"))


@cache
def transformed(name: str, script: Path) -> str:
    return transform(name, script.read_text())


def code(text: str) -> str:
    return textwrap.dedent(text).lstrip("\n")


def change(name: str, text: str) -> str:
    return transform(name, code(text))


def added(name: str, text: str) -> list[str]:
    """The lines that a codemod adds, without indentation."""
    before = code(text)
    after = transform(name, before).splitlines()
    left = before.splitlines()
    new = []
    for line in after:
        if left and line == left[0]:
            left.pop(0)
        elif line.strip():
            new.append(line.strip())
    return new


NESTED = """
    '''Docstring.'''
    import torch  # the framework


    def main():
        model = make()
        # ten epochs are enough
        for epoch in range(10):
            for x, y in loader:
                loss = criterion(model(x), y)
                loss.backward()
                optimizer.step()   # aligned by hand
                scheduler.step()
            validate(model, val_loader)
            torch.save(model.state_dict(), "m.pt")


    if __name__ == "__main__":
        main()
    """


LOOP = "for x in loader:\n    model(x).sum().backward()\n    optimizer.step()\n"


INNER = textwrap.indent(LOOP, "    ")


class TestMonitor:
    def test_all_milestones_of_a_nested_loop(self) -> None:
        made = change("monitor", NESTED)
        assert made == code(
            """
            '''Docstring.'''
            import torch  # the framework
            from gpulint import memory


            def main():
                model = make()
                memory_run = memory.Monitor("memory.jsonl", every=100)
                # ten epochs are enough
                for epoch in range(10):
                    for x, y in loader:
                        loss = criterion(model(x), y)
                        loss.backward()
                        optimizer.step()   # aligned by hand
                        memory_run.step()
                        scheduler.step()
                    validate(model, val_loader)
                    memory_run.validation()
                    torch.save(model.state_dict(), "m.pt")
                    memory_run.checkpoint()
                    memory_run.epoch(epoch)
                memory_run.end()


            if __name__ == "__main__":
                main()
            """
        )

    def test_epochs_that_call_a_training_function(self) -> None:
        text = """
            def train_one_epoch(model):
                for x in loader:
                    model(x).sum().backward()
                    opt.step()

            @torch.no_grad()
            def accuracy_of(model):
                for x in loader:
                    model(x)

            def fit():
                for epoch, lr in enumerate(rates):
                    train_one_epoch(model)
                    print(accuracy_of(model))
            """
        assert added("monitor", text) == [
            "from gpulint import memory",
            'memory_run = memory.Monitor("memory.jsonl", every=100, optimizer_steps=True)',
            "memory_run.validation()",
            "memory_run.epoch(epoch)",
            "memory_run.end()",
        ]

    @pytest.mark.parametrize(
        ("imported", "trainer", "callback"),
        [
            ("import lightning as L", "L.Trainer", "lightning"),
            ("import lightning.pytorch as pl", "pl.Trainer", "lightning"),
            ("from lightning import pytorch as pl", "pl.Trainer", "lightning"),
            ("from pytorch_lightning import Trainer", "Trainer", "lightning"),
            ("import transformers", "transformers.Trainer", "huggingface"),
            ("from transformers import Seq2SeqTrainer as T", "T", "huggingface"),
        ],
    )
    @pytest.mark.parametrize(
        ("before", "after"),
        [
            ("()", "(callbacks=[NEW])"),
            ("(model, x=1)", "(model, x=1, callbacks=[NEW])"),
            ("(\n    model,\n    x=1,  # one\n)", "(\n    model,\n    x=1,  # one\n    callbacks=[NEW],\n)"),
            ("(  # new\n    x=1,\n    # none\n)", "(  # new\n    x=1,\n    # none\n    callbacks=[NEW],\n)"),
            ("(model,\n        x=1)", "(model,\n        x=1, callbacks=[NEW])"),
            ("(\n    model,\n    x=1\n)", "(\n    model,\n    x=1,\n    callbacks=[NEW]\n)"),
            ("(callbacks=[])", "(callbacks=[NEW])"),
            ("(callbacks=[a, b], x=1)", "(callbacks=[a, b, NEW], x=1)"),
            ("(callbacks=[\n    a,\n])", "(callbacks=[\n    a,\n    NEW,\n])"),
            ("(callbacks=[\n    a,  # one\n])", "(callbacks=[\n    a,  # one\n    NEW,\n])"),
            ("(callbacks=[\n    a\n])", "(callbacks=[\n    a,\n    NEW\n])"),
        ],
    )
    def test_trainers_of_frameworks_get_a_callback(self, imported, trainer, callback, before, after) -> None:
        new = f'memory.Monitor("memory.jsonl", every=100).{callback}_callback()'
        made = transform("monitor", f"{imported}\n\ntrainer = {trainer}{before}\n")
        assert made == (
            f"{imported}\nfrom gpulint import memory\n\ntrainer = {trainer}{after.replace('NEW', new)}\n"
        )
        assert transform("monitor", made) == made

    def test_loops_under_no_grad_are_validations_only_in_eval_mode(self) -> None:
        rollout = code(
            """
            for update in range(10):
                model.train()
                with torch.no_grad():
                    for t in range(100):
                        values[t] = model(states[t])
                for batch in batches(values):
                    model.loss(batch).backward()
                    optimizer.step()
            """
        )
        assert "validation" not in transform("monitor", rollout)
        assert transform("phase-cleanup", rollout) == rollout
        assert "validation" in transform("monitor", rollout.replace("model.train()", "model.eval()"))

    def test_memory_may_mean_something_else_here(self) -> None:
        made = change("monitor", f"memory = []\n{LOOP}")
        assert "from gpulint import memory as gpu_memory" in made
        assert "gpu_memory.Monitor" in made


class TestOomGuard:
    def test_the_training_function_is_decorated_innermost(self) -> None:
        made = transform("oom-guard", f"@hydra.main()\ndef train(cfg):\n{INNER}")
        assert "@hydra.main()\n@memory.oom_guard()\ndef train(cfg):" in made

    def test_a_loop_at_module_level_goes_into_a_with(self) -> None:
        made = change(
            "oom-guard",
            '''
            import torch

            # train
            for epoch in range(2):
                for x in loader:
                    text = """kept
              as it is"""
                    model(x).sum().backward()
                    optimizer.step()
            print("done")
            ''',
        )
        assert "\n# train\nwith memory.oom_guard():\n    for epoch in range(2):\n" in made
        assert '"""kept\n  as it is"""' in made
        assert made.endswith('\nprint("done")\n')
        compile(made, "x.py", "exec")


def test_phases_are_cleaned_up_between_with_training_between_them() -> None:
    saves = "    torch.save(model.state_dict(), path)\n"
    text = f"for epoch in range(3):\n    validate(model, loader)\n{INNER}{saves}"
    assert added("phase-cleanup", text).count("memory.clear()") == 2


MAIN = 'if __name__ == "__main__":\n    main()\n'
TRAINS = "def main():\n    optimizer = torch.optim.SGD([], lr=1)\n\n\n" + MAIN


class TestAllocConf:
    def test_after_the_imports_of_a_program(self) -> None:
        text = "import os\nimport torch\n\nmodel = torch.nn.Linear(1, 1).cuda()\n" + TRAINS
        top = "import os\nimport torch\nfrom gpulint import memory\n"
        assert transform("alloc-conf", text).startswith(
            top + "\nmemory.configure(expandable_segments=True)\n\nmodel"
        )

    def test_in_the_main_guard_where_the_file_may_be_imported_too(self) -> None:
        made = transform("alloc-conf", "import torch\n\n\ndef move(x):\n    return x.cuda()\n\n\n" + TRAINS)
        assert made == (
            "import torch\nfrom gpulint import memory\n\n\ndef move(x):\n    return x.cuda()\n\n\n"
            + TRAINS.replace("    main()", "    memory.configure(expandable_segments=True)\n    main()")
        )

    @pytest.mark.parametrize(
        ("line", "call"),
        [
            ('os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "max_split_size_mb:128"', "expandable_segments=True"),
            (
                'os.environ["PYTORCH_ALLOC_CONF"] = "expandable_segments:True,garbage_collection_threshold:0.8"',
                "expandable_segments=True, garbage_collection_threshold=0.8",
            ),
            (
                'os.environ.setdefault("PYTORCH_ALLOC_CONF", "expandable_segments:False")',
                "expandable_segments=False",
            ),
            (
                'os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "backend:cudaMallocAsync"',
                "backend='cudaMallocAsync'",
            ),
        ],
    )
    @pytest.mark.parametrize("before", ["# memory\n", "if FAST:\n    "], ids=["plain", "under a condition"])
    def test_a_line_that_sets_the_variable_is_replaced(self, before, line, call) -> None:
        made = transform("alloc-conf", f"import os\n\n{before}{line}  # why\nimport torch\n{TRAINS}")
        call = f"memory.configure({call})"
        top = f"import os\nfrom gpulint import memory\n\n{before}{call}  # why\nimport torch\n"
        assert made == top + TRAINS


CONF = 'import os\nos.environ["PYTORCH_CUDA_ALLOC_CONF"] = '
CLEANS = "    validate(model, loader)\n    gc.collect()\n    torch.cuda.empty_cache()\n"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        # nothing to train, nothing to do
        ("monitor", "import torch\nmodel.eval()\nfor x in loader:\n    model(x)\n"),
        ("monitor", "for x in range(3):\n    print(x)\n"),
        ("monitor", "for i in range(3):\n    env.step(action)\n"),
        ("monitor", ""),
        # callbacks are out of sight
        ("monitor", "from transformers import Trainer\nTrainer(model, **options)\n"),
        ("monitor", "from transformers import Trainer\nTrainer(model, callbacks=callbacks)\n"),
        ("monitor", "from mine import Trainer\nTrainer(model)\n"),
        # coroutines and generators
        ("oom-guard", f"async def train():\n{INNER}"),
        ("oom-guard", f"def train():\n    yield 1\n{INNER}"),
        # the cache is emptied already
        ("phase-cleanup", f"for epoch in range(3):\n{INNER}{CLEANS}"),
        # what does not train, or is only imported
        ("alloc-conf", "import torch\n\ndef f():\n    return torch.zeros(1).cuda()\n"),
        ("alloc-conf", "import torch\n\ndef f():\n    return torch.optim.SGD([], lr=1)\n"),
        ("alloc-conf", f"import requests\n\ndef main():\n    requests.get(URL)\n\n\n{MAIN}"),
        ("alloc-conf", f'{CONF}"max_split_size_mb:64"\n{MAIN}'),
        ("alloc-conf", "\n\n    "),  # libcst would take the blanks off
        # settings that cannot be told
        ("alloc-conf", f"{CONF}args.conf\n{TRAINS}"),
        ("alloc-conf", f'{CONF}"unknown_setting:1"\n{TRAINS}'),
        ("alloc-conf", f'{CONF}"broken"\n{TRAINS}'),
    ],
)
def test_what_is_left_alone(name: str, text: str) -> None:
    assert transform(name, text) == text


class TestEverywhere:
    @pytest.mark.parametrize("name", NAMES)
    @pytest.mark.parametrize("script", SCRIPTS[::2], ids=lambda path: path.stem)
    def test_idempotent_and_valid(self, name, script) -> None:
        once = transformed(name, script)
        compile(once, script.name, "exec")
        assert transform(name, once) == once

    @pytest.mark.parametrize("name", NAMES)
    def test_line_ends_and_indentation_are_kept(self, name) -> None:
        text = code(NESTED).replace("    ", "\t").replace("\n", "\r\n")
        made = transform(name, text)
        assert made != text
        assert made.count("\n") == made.count("\r\n")
        assert "    " not in made.replace("   # aligned", "")
        compile(made, "x.py", "exec")

    def test_unknown_name(self) -> None:
        with pytest.raises(ValueError, match="no codemod"):
            transform("other", "")

    @pytest.mark.parametrize(
        "script",
        [
            "finetune_phases",
            "classifier_held_loss",
            "char_lstm_truncated",
            "grad_accumulation",
            "trainer_class",
        ],
    )
    def test_the_result_runs(self, script, tmp_path) -> None:
        text = (FIXTURES / f"{script}.py").read_text()
        for name in NAMES:
            text = transform(name, text)
        for name in NAMES:
            assert transform(name, text) == text
        (tmp_path / "train.py").write_text(text)
        command = [sys.executable, "train.py"]
        done = warm.run_torch(command, cwd=tmp_path, capture_output=True, text=True, timeout=200)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "memory.jsonl").read_text().count('"milestone"') >= 2


class TestCommand:
    def test_changes_once(self, tmp_path) -> None:
        (tmp_path / "train.py").write_text(textwrap.dedent(NESTED))
        (tmp_path / "util.py").write_text("X = 1\n")
        first = as_text("codemod", "monitor", ".", cwd=tmp_path, status=0)
        assert first.stdout == "changed train.py\n"
        assert "1 of 2 files" in first.stderr
        assert as_text("codemod", "monitor", ".", cwd=tmp_path).stdout == ""

    def test_diff_changes_nothing(self, tmp_path) -> None:
        (tmp_path / "train.py").write_text(textwrap.dedent(NESTED))
        before = (tmp_path / "train.py").read_bytes()
        done = as_text("codemod", "oom-guard", "train.py", "--diff", cwd=tmp_path, status=1)
        assert "+@memory.oom_guard()" in done.stdout
        assert (tmp_path / "train.py").read_bytes() == before
        command = ["git", "apply", "--unsafe-paths", "-p1"]
        subprocess.run(command, input=done.stdout, text=True, cwd=tmp_path, check=True)
        assert "@memory.oom_guard()" in (tmp_path / "train.py").read_text()

    def test_problems(self, tmp_path) -> None:
        (tmp_path / "broken.py").write_text("def f(:\n")
        done = as_text("codemod", "monitor", "broken.py", "missing.py", cwd=tmp_path, status=2)
        assert "broken.py: not valid Python, line 1" in done.stderr
        assert "missing.py" in done.stderr
        assert as_text("codemod", "other", ".", cwd=tmp_path).returncode == 2


# -- loops as public training scripts have them --------------------------------------------------------------


def changed(text: str) -> list[str]:
    """The monitor's lines, each with the line above it."""
    lines = transform("monitor", textwrap.dedent(text).lstrip("\n")).splitlines()
    return [
        f"{lines[n - 1].strip()} > {line.strip()}" for n, line in enumerate(lines) if "memory_run" in line
    ]


WORDS = """
    import torch

    def train():
        model.train()
        for batch, i in enumerate(range(0, n, bptt)):
            loss = criterion(model(data[i]), target)
            loss.backward()
            if use_optimizer:
                optimizer.step()
            else:
                for p in model.parameters():
                    p.data.add_(p.grad, alpha=-lr)
            total += loss.item()

    def evaluate(source):
        model.eval()
        with torch.no_grad():
            for i in range(0, m, bptt):
                criterion(model(source[i]))

    for epoch in range(1, epochs + 1):
        train()
        evaluate(val_data)
        torch.save(model, "m.pt")
"""


def test_steps_in_a_function_that_the_epochs_call() -> None:
    found = changed(WORDS)
    assert [line.partition(" > ")[2] for line in found] == [
        "memory_run.step()",
        'memory_run = memory.Monitor("memory.jsonl", every=100)',
        "memory_run.validation()",
        "memory_run.checkpoint()",
        "memory_run.epoch(epoch)",
        "memory_run.end()",
    ]
    assert found[0].startswith("p.data.add_")  # after both branches, whichever steps


def test_parameters_that_are_updated_by_hand_before_more() -> None:
    step = "model.zero_grad()\n    model(x).sum().backward()\n"
    update = "    for p in model.parameters():\n        p.data.add_(p.grad, alpha=-lr)\n"
    more = "    if dry_run:\n        break\n"
    loop = f"for epoch in range(3):\n  for x in loader:\n    {step}{update}{more}"
    assert "p.data.add_(p.grad, alpha=-lr) > memory_run.step()" in changed(loop)


@pytest.mark.parametrize(
    "update",
    ["self.update(model)", "for x in y:\n                print(x.grad_fn)"],
    ids=["elsewhere", "other"],
)
def test_parameters_that_are_updated_out_of_sight(update: str) -> None:
    text = f"""
        for epoch in range(3):
            for x in loader:
                model.zero_grad()
                model(x).sum().backward()
                {update.replace("    " * 4, "    " * 5)}
                print(x)
        """
    assert "print(x) > memory_run.step()" in changed(text)


def test_milestones_stand_where_something_happens() -> None:
    found = changed(
        """
        import torch

        def keep(path):
            with open(path, "wb") as file:
                torch.save(model, file)

        def accuracy():
            def over(batches):
                for x in batches:
                    model(x)
            model.eval()
            return over(val_loader)

        for epoch in range(3):
            for x in loader:
                model(x).sum().backward()
                optimizer.step()
            if epoch % 5 == 0:
                score = accuracy()
            elif epoch % 7 == 0:
                keep("seven.pt")
            else:
                print(epoch)
            if score > best:
                with open("best.pt", "wb") as file:
                    torch.save(model, file)
                torch.save(optimizer, "optimizer.pt")
                best = score
            if epoch == 2: torch.save(model, "last.pt")
        """
    )
    assert [line for line in found if line.endswith((".validation()", ".checkpoint()"))] == [
        "score = accuracy() > memory_run.validation()",
        'keep("seven.pt") > memory_run.checkpoint()',
        'torch.save(optimizer, "optimizer.pt") > memory_run.checkpoint()',
        'if epoch == 2: torch.save(model, "last.pt") > memory_run.checkpoint()',
    ]


def test_a_run_goes_on_after_the_handlers_of_its_try() -> None:
    loop = """
        for x in loader:
            model(x).sum().backward()
            optimizer.step()
    """
    caught = f"""
    import torch

    # Ctrl-C ends the training early.
    try:
        epochs = 3{loop}
    except KeyboardInterrupt:
        print("stopped")
    torch.save(model, "m.pt")
    """
    made = transform("monitor", textwrap.dedent(caught))
    assert "every=100)\n# Ctrl-C ends the training early.\ntry:\n    epochs = 3\n" in made
    assert '    print("stopped")\nmemory_run.end()\ntorch.save' in made
    # What cleans up and passes the error on ends the program, where the Monitor ends by itself; so does one of two.
    for text in (caught.replace("except KeyboardInterrupt", "finally"), caught.replace(loop, loop + loop)):
        assert "stopped" not in transform("monitor", textwrap.dedent(text)).partition("memory_run.end()")[0]


ELSEWHERE = """
from torch import optim
from engine import evaluate, train_one_epoch

optimizer = optim.SGD(model.parameters(), lr=0.1)
for epoch in range(10):
    train_one_epoch(model, optimizer)
    evaluate(model)
"""


def test_monitor_names_the_programs_whose_steps_are_in_another_file(tmp_path: Path) -> None:
    program, inner = tmp_path / "train.py", tmp_path / "engine.py"
    program.write_text(ELSEWHERE, encoding="utf-8")
    inner.write_text(
        "def train_one_epoch(model, optimizer):\n    for x in data:\n        model(x).backward()\n        optimizer.step()\n",
        encoding="utf-8",
    )
    done = CliRunner().invoke(command, ["monitor", str(tmp_path)], standalone_mode=False)
    assert done.return_value == 0
    assert f"{program}: not changed: it makes an optimizer, and the steps are not in this file" in done.output
    assert program.read_text(encoding="utf-8") == ELSEWHERE
    assert "engine.py: not changed" not in done.output
    installed = ELSEWHERE.replace("optimizer =", "memory.Monitor.install()\noptimizer =", 1)
    program.write_text(f"from gpulint import memory{installed}", encoding="utf-8")
    done = CliRunner().invoke(command, ["monitor", str(program)], standalone_mode=False)
    assert "the steps are not in this file" not in done.output


@pytest.mark.parametrize("name", ["monitor", "oom-guard", "phase-cleanup", "alloc-conf"])
def test_it_says_when_it_finds_nothing(name: str, tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text("def add(a, b):\n    return a + b\n", encoding="utf-8")
    for arguments in ([name, str(path)], [name, "--diff", str(path)]):
        done = CliRunner().invoke(command, arguments, standalone_mode=False)
        assert done.return_value == 0
        assert "nothing to change: " in done.output
