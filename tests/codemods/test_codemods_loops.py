"""Loops as public training scripts have them: one loop over steps at module level, steps in a function, nothing at all."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from click.testing import CliRunner

from gpulint.cli.commands.codemod import command
from gpulint.codemods import transform


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
