"""The codemods on small scripts, and on whole training scripts that run afterwards."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from functools import cache
from pathlib import Path

import pytest
import warm
from support import as_text

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
        "text",
        [
            "import torch\nmodel.eval()\nfor x in loader:\n    model(x)\n",
            "for x in range(3):\n    print(x)\n",
            "for i in range(3):\n    env.step(action)\n",
            "",
        ],
    )
    def test_nothing_to_train_nothing_to_do(self, text) -> None:
        assert transform("monitor", text) == text

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

    @pytest.mark.parametrize(
        "text",
        [
            "from transformers import Trainer\nTrainer(model, **options)\n",
            "from transformers import Trainer\nTrainer(model, callbacks=callbacks)\n",
            "from mine import Trainer\nTrainer(model)\n",
        ],
    )
    def test_where_callbacks_are_out_of_sight_trainers_are_left_alone(self, text) -> None:
        assert transform("monitor", text) == text

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

    @pytest.mark.parametrize("head", ["async def train():", "def train():\n    yield 1"])
    def test_coroutines_and_generators_are_left_alone(self, head) -> None:
        text = f"{head}\n{INNER}"
        assert transform("oom-guard", text) == text


class TestPhaseCleanup:
    def test_not_where_the_cache_is_emptied_already(self) -> None:
        cleans = "    validate(model, loader)\n    gc.collect()\n    torch.cuda.empty_cache()\n"
        text = f"for epoch in range(3):\n{INNER}{cleans}"
        assert transform("phase-cleanup", text) == text

    def test_between_phases_with_training_between_them(self) -> None:
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
        "text",
        [
            "import torch\n\ndef f():\n    return torch.zeros(1).cuda()\n",  # nothing runs
            "import torch\n\ndef f():\n    return torch.optim.SGD([], lr=1)\n",
            "import requests\n\ndef main():\n    requests.get(URL)\n\n\n" + MAIN,  # nothing trains
            'import os\nos.environ["PYTORCH_CUDA_ALLOC_CONF"] = "max_split_size_mb:64"\n' + MAIN,
            "\n\n    ",  # libcst would take the blanks off
        ],
    )
    def test_what_does_not_train_or_is_only_imported_is_left_alone(self, text: str) -> None:
        assert transform("alloc-conf", text) == text

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

    @pytest.mark.parametrize(
        "line",
        [
            'os.environ["PYTORCH_CUDA_ALLOC_CONF"] = args.conf',
            'os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "unknown_setting:1"',
            'os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "broken"',
        ],
    )
    def test_what_cannot_be_told_is_left_alone(self, line) -> None:
        text = f"import os\n{line}\n{TRAINS}"
        assert transform("alloc-conf", text) == text


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
