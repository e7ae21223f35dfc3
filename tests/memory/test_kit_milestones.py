"""Monitor: explicit milestones, a plain loop watched by hooks, framework callbacks."""

import gc
import io
import json
import logging
import os
import subprocess
import sys
import types
from pathlib import Path

import pytest
import torch
import warm

from gpulint import memory


@pytest.fixture(autouse=True)
def _logged(caplog):
    caplog.set_level(logging.INFO, "gpulint.memory")


def ran(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A program in a process of its own, run to its end."""
    (folder / "program.py").write_text(code)
    command = [sys.executable, "program.py"]
    return warm.run_torch(command, cwd=folder, capture_output=True, text=True, check=True)


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
        begun = ["start", "model on device", "optimizer created"]
        expected = [*begun, "step", "step", "validation", "checkpoint", "epoch", "end"]
        assert [record["milestone"] for record in records] == expected == names(run)
        assert records[1]["allocated"] == 64 * 1024**2
        assert "parameters 257.00 KiB" in records[1]["detail"]
        assert len(caplog.messages) == len(expected)
        assert "+64.00 MiB since start" in caplog.messages[1]

    def test_ends_with_the_program(self, tmp_path) -> None:
        done = ran("from gpulint import memory\nmemory.Monitor('m.jsonl')", tmp_path)
        records = [json.loads(line) for line in (tmp_path / "m.jsonl").read_text().splitlines()]
        assert [record["milestone"] for record in records] == ["start", "end"]
        assert "memory at start" in done.stderr  # no logging set up: the line is shown, not lost

    @pytest.mark.parametrize(
        ("environment", "file"),
        [
            ({"RANK": "1", "WORLD_SIZE": "2"}, "m-rank1.jsonl"),
            # Lightning's launcher numbers the processes of a node
            ({"LOCAL_RANK": "1", "WORLD_SIZE": "2"}, "m-rank1.jsonl"),
            ({"initialized": "3"}, "m-rank3.jsonl"),  # what torch.distributed says
        ],
    )
    def test_ranks_write_their_own_files(self, tmp_path, monkeypatch, environment, file) -> None:
        for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE"):
            monkeypatch.delenv(name, raising=False)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        if "initialized" in environment:
            monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
            monkeypatch.setattr(torch.distributed, "get_rank", lambda: 3)
            monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 4)
        with memory.Monitor(tmp_path / "m.jsonl"):
            pass
        record = json.loads((tmp_path / file).read_text().splitlines()[0])
        assert f"m-rank{record['rank']}.jsonl" == file
        assert not (tmp_path / "m.jsonl").exists()

    def test_a_second_run_adds_to_the_file(self, tmp_path) -> None:
        for _ in range(2):
            memory.Monitor(tmp_path / "m.jsonl").end()
        records = [json.loads(line) for line in (tmp_path / "m.jsonl").read_text().splitlines()]
        assert [record["milestone"] for record in records] == ["start", "end"] * 2
        assert records[0]["run"] == records[1]["run"] < records[2]["run"]

    @pytest.mark.parametrize(("place", "why"), [("file/m.jsonl", "file"), ("/dev/full", "No space left")])
    def test_a_file_that_cannot_be_written_is_no_reason_to_stop(self, tmp_path, caplog, place, why) -> None:
        (tmp_path / "file").write_text("")
        if place == "/dev/full" and not os.path.exists(place):
            pytest.skip("needs /dev/full")
        run = memory.Monitor(tmp_path / place)
        run.epoch(1)
        run.end()
        assert names(run) == ["start", "epoch", "end"]
        assert caplog.text.count("no longer written") == 1
        assert why in caplog.text

    def test_a_closed_standard_error_is_none_either(self, tmp_path) -> None:
        code = "import os; os.close(2)\nfrom gpulint import memory; memory.Monitor().end(); print('done')"
        assert ran(code, tmp_path).stdout == "done\n"

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
    def test_a_forked_child_does_not_end_the_run(self, tmp_path) -> None:
        code = "import os, sys; from gpulint import memory; memory.Monitor('m.jsonl')\n"
        ran(code + "if os.fork() == 0: sys.exit()\nos.wait()", tmp_path)
        assert (tmp_path / "m.jsonl").read_text().count('"end"') == 1


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
        passed = ["step", "validation", "checkpoint"]
        begun = ["start", "model on device", "epoch", "first optimizer step"]
        assert names(run) == [*begun, *passed, "epoch", *passed, "end"]
        assert [one.detail for one in run.milestones if one.name == "epoch"] == ["0", "1"]
        assert run.milestones[5].detail == "4 batches"

    def test_a_checkpoint_has_its_files_name_however_it_is_saved(self, tmp_path) -> None:
        run = memory.Monitor.install()
        model = torch.nn.Linear(2, 2)
        memory.save_checkpoint(model, tmp_path / "a.pt")
        with open(tmp_path / "b.pt", "wb") as file:
            torch.save(model.state_dict(), file)
        torch.save(obj=model.state_dict(), f=tmp_path / "c.pt")
        torch.save(model.state_dict(), io.BytesIO())
        run.end()
        saved = [one.detail for one in run.milestones if one.name == "checkpoint"]
        assert saved == [str(tmp_path / name) for name in ("a.pt", "b.pt", "c.pt")] + [""]

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

    @pytest.mark.filterwarnings("ignore:Using `torch.compile")
    def test_a_compiled_model(self, tmp_path) -> None:
        run = memory.Monitor.install(every=1)
        model = torch.nn.Linear(4, 1)
        compiled = torch.compile(model, backend="eager")
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(2):
            compiled(torch.randn(2, 4)).sum().backward()
            optimizer.step()
        run.end()
        assert names(run) == ["start", "model on device", "first optimizer step", "step", "step", "end"]


class TestOptimizerSteps:
    """`optimizer_steps=True`: of a loop whose steps are out of sight, two optimizers a step."""

    def test_the_optimizer_that_steps_first_counts(self) -> None:
        run = memory.Monitor(every=2, optimizer_steps=True)
        first, second = (torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1) for _ in range(2))
        for _ in range(4):
            first.step()
            second.step()
        run.end()
        first.step()
        assert names(run) == ["start", "first optimizer step", "step", "step", "end"]
        assert [made.detail for made in run.milestones[1:4]] == ["SGD", "2", "4"]

    def test_another_takes_its_place_when_it_is_gone(self) -> None:
        run = memory.Monitor(every=1, optimizer_steps=True)
        for _ in range(2):  # folds
            torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1).step()
            gc.collect()
        run.end()
        assert names(run).count("step") == 2


class TestCallbacks:
    """With stand-ins for the frameworks; test_kit_frameworks.py has the real ones."""

    def test_lightning(self, monkeypatch) -> None:
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
            global_step=0,
        )
        module = torch.nn.Linear(2, 2)
        callback.on_fit_start(trainer, module)
        callback.on_validation_end(trainer, module)  # sanity check: not a validation
        callback.on_train_start(trainer, module)
        callback.on_train_batch_end(trainer, module, None, None, 0)  # accumulates: no step yet
        trainer.global_step = 1
        callback.on_train_batch_end(trainer, module, None, None, 1)
        trainer.sanity_checking = False
        callback.on_validation_end(trainer, module)
        callback.on_save_checkpoint(trainer, module, {})
        callback.on_train_epoch_end(trainer, module)
        callback.on_fit_end(trainer, module)
        callback.on_test_end(trainer, module)
        run.end()
        passed = ["step", "validation", "checkpoint", "epoch", "training over"]
        assert names(run) == ["start", "model on device", "optimizer created", *passed, "validation", "end"]

    def test_huggingface(self, monkeypatch) -> None:
        fake = types.ModuleType("transformers")
        fake.TrainerCallback = type("TrainerCallback", (), {})
        monkeypatch.setitem(sys.modules, "transformers", fake)
        run = memory.Monitor()
        callback = run.huggingface_callback()
        args, state = types.SimpleNamespace(output_dir="out"), types.SimpleNamespace(epoch=1.0, global_step=7)
        callback.on_train_begin(args, state, None, model=torch.nn.Linear(2, 2), optimizer=object())
        callback.on_step_end(args, state, None)
        callback.on_evaluate(args, state, None, metrics={})
        callback.on_save(args, state, None)
        callback.on_epoch_end(args, state, None)
        callback.on_train_end(args, state, None)
        run.end()
        assert run.milestones[4].detail == "out/checkpoint-7"
        passed = ["validation", "checkpoint", "epoch", "training over"]
        assert names(run) == ["start", "model on device", "optimizer created", *passed, "end"]

    def test_missing_framework(self, monkeypatch) -> None:
        monkeypatch.setitem(sys.modules, "transformers", None)
        with pytest.raises(ImportError, match="transformers is not installed"):
            memory.Monitor().huggingface_callback()
