"""Monitor: explicit milestones, a plain loop watched by hooks, framework callbacks."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import types

import pytest
import torch

from gpulint import memory


@pytest.fixture(autouse=True)
def _logged(caplog):
    caplog.set_level(logging.INFO, "gpulint.memory")


def names(run: memory.Monitor) -> list[str]:
    return [milestone.name for milestone in run.milestones]


class TestExplicit:
    def test_a_line_and_a_record_each(self, tmp_path, caplog, cuda) -> None:
        file = tmp_path / "logs" / "memory.jsonl"
        run = memory.Monitor(file, every=2)
        cuda.alloc(64 * 1024**2)
        run.model(torch.nn.Linear(256, 256))
        run.optimizer(torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1))
        for _ in range(4):
            run.step()
        run.validation()
        run.checkpoint("best.pt")
        run.epoch(0)
        run.end()
        run.end()
        records = [json.loads(line) for line in file.read_text().splitlines()]
        expected = [
            "start",
            "model on device",
            "optimizer created",
            "step",
            "step",
            "validation",
            "checkpoint",
            "epoch",
            "end",
        ]
        assert [record["milestone"] for record in records] == expected == names(run)
        assert records[1]["allocated"] == 64 * 1024**2
        assert "parameters 257.00 KiB" in records[1]["detail"]
        assert len(caplog.messages) == len(expected)
        assert "+64.00 MiB since start" in caplog.messages[1]

    def test_ends_with_the_program(self, tmp_path) -> None:
        code = f"from gpulint import memory; memory.Monitor({str(tmp_path / 'm.jsonl')!r})"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        records = [json.loads(line) for line in (tmp_path / "m.jsonl").read_text().splitlines()]
        assert [record["milestone"] for record in records] == ["start", "end"]
        assert "memory at start" in done.stderr  # no logging set up: the line is shown, not lost

    def test_ranks_write_their_own_files(self, tmp_path, monkeypatch) -> None:
        monkeypatch.setenv("RANK", "1")
        monkeypatch.setenv("WORLD_SIZE", "2")
        with memory.Monitor(tmp_path / "m.jsonl"):
            pass
        assert (tmp_path / "m-rank1.jsonl").exists()
        assert not (tmp_path / "m.jsonl").exists()


def plain_loop(save_to: str, epochs: int = 2) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Dropout(), torch.nn.Linear(8, 1))
    optimizer = torch.optim.AdamW(model.parameters())
    data = torch.utils.data.TensorDataset(torch.randn(8, 8), torch.randn(8, 1))
    training = torch.utils.data.DataLoader(data, batch_size=4)
    validation = torch.utils.data.DataLoader(data, batch_size=2)
    criterion = torch.nn.MSELoss()
    for _ in range(epochs):
        model.train()
        for x, y in training:
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            for x, y in validation:
                criterion(model(x), y)
        torch.save(model.state_dict(), save_to)


class TestInstalled:
    def test_finds_the_milestones_of_a_plain_loop(self, tmp_path) -> None:
        run = memory.Monitor.install(every=2)
        plain_loop(str(tmp_path / "m.pt"))
        run.end()
        assert names(run) == [
            "start",
            "model on device",
            "first optimizer step",
            "step",
            "validation",
            "checkpoint",
            "epoch",
            "step",
            "validation",
            "checkpoint",
            "end",
        ]
        assert run.milestones[4].detail == "4 batches"

    def test_leaves_nothing_behind(self, tmp_path) -> None:
        save, iterate = torch.save, torch.utils.data.DataLoader.__iter__
        hooks = torch.nn.modules.module
        before = len(hooks._global_forward_hooks), len(hooks._global_forward_pre_hooks)
        memory.Monitor.install().end()
        assert torch.save is save
        assert torch.utils.data.DataLoader.__iter__ is iterate
        assert (len(hooks._global_forward_hooks), len(hooks._global_forward_pre_hooks)) == before

    def test_a_forward_that_raises_does_not_confuse_it(self, tmp_path) -> None:
        run = memory.Monitor.install()
        with pytest.raises(RuntimeError):
            torch.nn.Sequential(torch.nn.Linear(3, 3))(torch.zeros(2, 5))
        plain_loop(str(tmp_path / "m.pt"), epochs=1)
        run.end()
        assert names(run).count("validation") == 1


class TestCallbacks:
    def test_lightning(self, monkeypatch) -> None:
        """With a stand-in for Lightning: the base class and the order in which its trainer calls."""
        fake = types.ModuleType("lightning.pytorch")
        fake.Callback = type("Callback", (), {})
        monkeypatch.setitem(sys.modules, "lightning", types.ModuleType("lightning"))
        monkeypatch.setitem(sys.modules, "lightning.pytorch", fake)
        run = memory.Monitor(every=1)
        callback = run.lightning_callback()
        assert isinstance(callback, fake.Callback)
        trainer = types.SimpleNamespace(
            optimizers=[torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)],
            sanity_checking=True,
            current_epoch=0,
        )
        module = torch.nn.Linear(2, 2)
        callback.on_fit_start(trainer, module)
        callback.on_validation_end(trainer, module)  # sanity check: not a validation
        callback.on_train_start(trainer, module)
        callback.on_train_batch_end(trainer, module, None, None, 0)
        trainer.sanity_checking = False
        callback.on_validation_end(trainer, module)
        callback.on_save_checkpoint(trainer, module, {})
        callback.on_train_epoch_end(trainer, module)
        callback.on_fit_end(trainer, module)
        assert names(run) == [
            "start",
            "model on device",
            "optimizer created",
            "step",
            "validation",
            "checkpoint",
            "epoch",
            "end",
        ]

    def test_huggingface(self, monkeypatch) -> None:
        fake = types.ModuleType("transformers")
        fake.TrainerCallback = type("TrainerCallback", (), {})
        monkeypatch.setitem(sys.modules, "transformers", fake)
        run = memory.Monitor()
        callback = run.huggingface_callback()
        args, state = types.SimpleNamespace(output_dir="out"), types.SimpleNamespace(epoch=1.0)
        callback.on_train_begin(args, state, None, model=torch.nn.Linear(2, 2), optimizer=object())
        callback.on_step_end(args, state, None)
        callback.on_evaluate(args, state, None, metrics={})
        callback.on_save(args, state, None)
        callback.on_epoch_end(args, state, None)
        callback.on_train_end(args, state, None)
        assert names(run) == [
            "start",
            "model on device",
            "optimizer created",
            "validation",
            "checkpoint",
            "epoch",
            "end",
        ]

    def test_missing_framework(self, monkeypatch) -> None:
        monkeypatch.setitem(sys.modules, "transformers", None)
        with pytest.raises(ImportError, match="transformers is not installed"):
            memory.Monitor().huggingface_callback()
