"""Monitor's callbacks in the real frameworks, each with a tiny training. Skipped where a framework is not installed
(`pip install ".[frameworks]"`)."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from support import run_command

from gpulint import memory


def batches(count: int = 16, size: int = 4) -> torch.utils.data.DataLoader[Any]:
    x = torch.randn(count, 4)
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, x.sum(1)), batch_size=size)


def events(run: memory.Monitor) -> list[str]:
    return [f"{milestone.name} {milestone.detail}".strip() for milestone in run.milestones]


def ran(code: str, folder: Path, **environment: str) -> str:
    """What a program prints, in a process of its own: frameworks leave a state behind in their process."""
    command = [sys.executable, "-W", "ignore", "-c", code, folder]
    return run_command(*command, cwd=folder, env={**os.environ, **environment}, status=0).stdout


def records(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def training(framework: Any, folder: Path, callback: Any, **more: Any) -> tuple[Any, Any]:
    """A model of Lightning's, and a trainer with the callback."""

    class Model(framework.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)

        def training_step(self, batch: Any, index: int) -> torch.Tensor:
            x, y = batch
            return (self.layer(x).squeeze(-1) - y).square().mean()

        def validation_step(self, batch: Any, index: int) -> None:
            self.log("loss", self.training_step(batch, index))

        def test_step(self, batch: Any, index: int) -> None:
            self.validation_step(batch, index)

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.Adam(self.parameters())

    trainer = framework.Trainer(
        accelerator="cpu",
        callbacks=[callback],
        default_root_dir=folder,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        **more,
    )
    return Model(), trainer


@pytest.mark.parametrize("package", ["lightning.pytorch", "pytorch_lightning"])
@pytest.mark.filterwarnings("ignore")
def test_lightning(package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    framework = pytest.importorskip(package, reason=f"{package} is not installed")
    for other in {"lightning.pytorch", "pytorch_lightning"} - {package}:
        monkeypatch.delitem(sys.modules, other, raising=False)
    run = memory.Monitor(tmp_path / "m.jsonl", every=1)
    callback = run.lightning_callback()
    assert isinstance(callback, framework.Callback)
    model, trainer = training(framework, tmp_path, callback, max_epochs=2, accumulate_grad_batches=2)
    trainer.fit(model, batches(), batches())
    trainer.test(model, batches(), verbose=False)
    run.end()
    begun = ["start", "model on device Model, parameters 20 B", "optimizer created Adam"]
    first = ["step 1", "step 2", "validation", "epoch 0", "checkpoint"]
    second = ["step 3", "step 4", "validation", "epoch 1", "checkpoint"]
    assert events(run) == [*begun, *first, *second, "training over", "validation test", "end"]
    assert len(records(tmp_path / "m.jsonl")) == len(run.milestones)


@pytest.mark.filterwarnings("ignore")
def test_lightning_notes_what_ended_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    framework = pytest.importorskip("lightning.pytorch", reason="lightning is not installed")

    def fails(*_: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")

    run = memory.Monitor()
    callback = run.lightning_callback()
    model, trainer = training(framework, tmp_path, callback, max_epochs=1, enable_checkpointing=False)
    monkeypatch.setattr(type(model), "training_step", fails)
    guard = memory.oom_guard(reraise=False)
    with guard:
        trainer.fit(model, batches())
    assert guard.last is not None
    assert events(run)[-1] == "exception OutOfMemoryError"
    run.end()


LIGHTNING = """
import sys, torch
import lightning as L

class Model(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def training_step(self, batch, index):
        return self.layer(batch[0]).square().mean()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())

data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(8, 4)), batch_size=4)
trainer = L.Trainer(
    max_epochs=1,
    accelerator="cpu",  # no card here
    logger=False,
    enable_progress_bar=False,
    default_root_dir=sys.argv[1],
)
trainer.fit(Model(), data)
"""


def test_codemod_in_a_script_of_lightning(tmp_path: Path) -> None:
    pytest.importorskip("lightning", reason="lightning is not installed")
    from gpulint.codemods import transform

    text = transform("monitor", LIGHTNING)
    assert transform("monitor", text) == text
    ran(text, tmp_path)
    names = [record["milestone"] for record in records(tmp_path / "memory.jsonl")]
    begun = ["start", "model on device", "optimizer created"]
    assert names == [*begun, "epoch", "checkpoint", "training over", "end"]


HUGGINGFACE = """
import sys, torch, transformers
from gpulint import memory

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def forward(self, x, labels=None):
        out = self.layer(x).squeeze(-1)
        return {"loss": (out - labels).square().mean(), "logits": out}

data = [{"x": (x := torch.randn(4)), "labels": x.sum()} for _ in range(16)]
folder = sys.argv[1]
run = memory.Monitor(folder + "/m.jsonl", every=1)
arguments = transformers.TrainingArguments(
    folder, num_train_epochs=2, per_device_train_batch_size=4, gradient_accumulation_steps=2,
    eval_strategy="epoch", save_strategy="epoch", report_to=[], use_cpu=True, disable_tqdm=True)
trainer = transformers.Trainer(
    Model(), arguments, train_dataset=data, eval_dataset=data, callbacks=[run.huggingface_callback()])
trainer.train()
trainer.predict(data)
"""


def test_huggingface_trainer(tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="transformers is not installed")
    pytest.importorskip("accelerate", reason="accelerate is not installed")
    ran(HUGGINGFACE, tmp_path, HF_HUB_OFFLINE="1")
    told = [f"{one['milestone']} {one['detail']}".strip() for one in records(tmp_path / "m.jsonl")]
    begun = ["start", "model on device Model, parameters 20 B", "optimizer created AdamW"]
    first = ["step 1", "step 2", "epoch 1", "validation", "checkpoint OUT/checkpoint-2"]
    second = ["step 3", "step 4", "epoch 2", "validation", "checkpoint OUT/checkpoint-4"]
    expected = [*begun, *first, *second, "training over", "validation predict", "end"]
    assert [one.replace(str(tmp_path), "OUT") for one in told] == expected


def test_outputs_of_transformers_come_to_the_cpu_as_what_they_are() -> None:
    pytest.importorskip("transformers", reason="transformers is not installed")
    from transformers.modeling_outputs import BaseModelOutput
    from transformers.tokenization_utils_base import BatchEncoding

    layer = torch.nn.Linear(2, 2)
    hidden = layer(torch.ones(1, 2))
    output = memory.to_cpu(BaseModelOutput(last_hidden_state=hidden, hidden_states=(hidden,)))
    assert type(output) is BaseModelOutput
    assert output.last_hidden_state.grad_fn is None
    assert output["hidden_states"][0].grad_fn is None
    assert hidden.grad_fn is not None
    encoding = memory.to_cpu(BatchEncoding({"input_ids": hidden}))
    assert type(encoding) is BatchEncoding
    assert encoding["input_ids"].grad_fn is None


ACCELERATE = """
import sys, torch
from accelerate import Accelerator

accelerator = Accelerator(cpu=True)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.AdamW(model.parameters())
data = torch.utils.data.TensorDataset(torch.randn(16, 4), torch.randn(16, 1))
loader = torch.utils.data.DataLoader(data, batch_size=4)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for epoch in range(2):
    model.train()
    for x, y in loader:
        loss = torch.nn.functional.mse_loss(model(x), y)
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
    model.eval()
    with torch.no_grad():
        for x, y in loader:
            model(x)
    accelerator.save_state(sys.argv[1] + "/state")
print("trained")
"""


@pytest.mark.parametrize("codemod", ["monitor", "oom-guard", "phase-cleanup", "alloc-conf"])
def test_codemods_in_a_script_of_accelerate(codemod: str, tmp_path: Path) -> None:
    pytest.importorskip("accelerate", reason="accelerate is not installed")
    from gpulint.codemods import transform

    text = transform(codemod, ACCELERATE)
    assert text != ACCELERATE
    assert transform(codemod, text) == text
    assert ran(text, tmp_path).splitlines()[-1] == "trained"
    if codemod == "monitor":
        names = [one["milestone"] for one in records(tmp_path / "memory.jsonl")]
        assert names == ["start", *["validation", "checkpoint", "epoch"] * 2, "end"]


def test_installed_in_a_script_of_accelerate(tmp_path: Path) -> None:
    pytest.importorskip("accelerate", reason="accelerate is not installed")
    head = f"from gpulint import memory; memory.Monitor.install({str(tmp_path / 'm.jsonl')!r}, every=4)\n"
    ran(head + ACCELERATE, tmp_path)
    # Whether its loaders are seen as passes over torch's depends on the version of accelerate.
    names = [one["milestone"] for one in records(tmp_path / "m.jsonl") if one["milestone"] != "epoch"]
    assert names[:4] == ["start", "model on device", "first optimizer step", "step"]
    assert names.count("step") == 2
    assert names.count("validation") == 2
