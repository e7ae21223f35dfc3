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


def test_what_a_loop_over_steps_does_now_and_then() -> None:
    found = changed(
        """
        import torch

        @torch.no_grad()
        def estimate_loss():
            for k in range(5):
                losses = model(get_batch())

        while True:
            if step % interval == 0 and master:
                losses = estimate_loss()
                if losses < best:
                    checkpoint = {"model": model.state_dict()}
                    torch.save(checkpoint, "ckpt.pt")
            for micro_step in range(4):
                scaler.scale(model(x)).backward()
            scaler.step(optimizer)
            step += 1
            if step > most:
                break
        """
    )
    assert "losses = estimate_loss() > memory_run.validation()" in found
    assert 'torch.save(checkpoint, "ckpt.pt") > memory_run.checkpoint()' in found
    assert "scaler.step(optimizer) > memory_run.step()" in found
    assert not [line for line in found if "epoch" in line]


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


@pytest.mark.parametrize("more", ["train()\n", "if __name__ == '__main__':\n        train()\n"])
def test_not_where_the_function_runs_without_a_monitor(more: str) -> None:
    assert "memory_run.step()" not in str(changed(WORDS + f"\n    {more}"))


def test_not_where_the_monitor_is_local_to_another_function() -> None:
    inside = WORDS.replace("for epoch", "def main():\n      for epoch").replace("\n        ", "\n          ")
    assert "memory_run.step()" not in str(changed(inside.replace("\n      for", "\n      for")))


@pytest.mark.parametrize("name", ["monitor", "oom-guard", "phase-cleanup", "alloc-conf"])
def test_it_says_when_it_finds_nothing(name: str, tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text("def add(a, b):\n    return a + b\n", encoding="utf-8")
    for arguments in ([name, str(path)], [name, "--diff", str(path)]):
        done = CliRunner().invoke(command, arguments, standalone_mode=False)
        assert done.return_value == 0
        assert "nothing to change: " in done.output
