"""The same mistakes and their look-alikes in lightning, accelerate, transformers, ignite, deepspeed and plain loops."""

import deepspeed
import lightning as L
import pytorch_lightning as pl
import torch
import torch.nn.functional as F
import wandb
from accelerate import Accelerator
from ignite.engine import Engine, Events
from torch import nn
from torch.cuda.amp import GradScaler, autocast
from torch.utils.tensorboard import SummaryWriter
from torchmetrics import MeanMetric
from transformers import AutoModelForCausalLM, AutoTokenizer, Trainer, TrainerCallback, TrainingArguments, pipeline

accelerator = Accelerator(gradient_accumulation_steps=4)
writer = SummaryWriter()


class Lit(pl.LightningModule):
    def __init__(self, net):
        super().__init__()
        self.net = net
        self.validation_outputs, self.train_losses = [], []
        self.metric = MeanMetric()
        self.save_hyperparameters(ignore=["net"])
        self.automatic_optimization = False
        self.last = None

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        loss = F.cross_entropy(logits, y)
        self.train_losses.append(loss)  # expect: GPU101
        self.log("loss", loss, prog_bar=True)
        self.log_dict({"loss": loss, "accuracy": (logits.argmax(1) == y).float().mean()})
        self.metric(loss.detach())
        self.last = logits
        optimizer = self.optimizers()
        self.manual_backward(loss)
        optimizer.step()
        return {"loss": loss, "logits": logits, "n": len(x)}

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        self.validation_outputs.append(logits)  # low: GPU102
        return logits

    def on_validation_epoch_end(self):
        every = torch.cat(self.validation_outputs)
        self.log("std", every.std())
        self.validation_outputs.clear()

    def training_epoch_end(self, outputs):
        mean = torch.stack([one["loss"] for one in outputs]).mean()
        self.logger.experiment.add_scalar("mean", mean, self.current_epoch)

    def predict_step(self, batch, batch_idx, dataloader_idx=0):
        return self(batch[0]).argmax(1)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())

    def on_before_zero_grad(self, optimizer):
        for p in self.parameters():
            p.grad = None


class Callback(pl.Callback):
    def __init__(self):
        self.outputs = []

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        self.outputs.append(outputs["logits"])  # maybe: GPU101

    def on_train_epoch_end(self, trainer, module):
        self.outputs.clear()
        torch.cuda.empty_cache()


class Custom(Trainer):
    def __init__(self, *args, teacher=None, **kwargs):
        super().__init__(*args, **kwargs)
        self.teacher = teacher
        self.extra_losses = []
        self.sums = {"loss": 0.0}

    def compute_loss(self, model, inputs, return_outputs=False):
        outputs = model(**inputs)
        with torch.no_grad():
            wanted = self.teacher(**inputs).logits
        loss = F.mse_loss(outputs.logits, wanted)
        self.extra_losses.append(loss)  # maybe: GPU101
        self.sums["loss"] += loss.item()
        self.log({"extra": loss})  # expect: GPU104
        return (loss, outputs) if return_outputs else loss

    def prediction_step(self, model, inputs, prediction_loss_only, ignore_keys=None):
        with torch.no_grad():
            return model(**inputs).loss, None, None


class Stop(TrainerCallback):
    def on_log(self, args, state, control, logs=None, **kwargs):
        if logs.get("loss", 0) > 10:
            control.should_training_stop = True


def accelerated(model, loader, optimizer):
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    total, gathered = 0, []
    for epoch in range(3):
        model.train()
        for batch in loader:
            with accelerator.accumulate(model):
                outputs = model(**batch)
                loss = outputs.loss
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
            total += loss.detach().float()
            accelerator.log({"loss": loss}, step=epoch)
            gathered.append(accelerator.gather(loss.repeat(4)))  # note: GPU101
        model.eval()
        every = []
        for batch in loader:
            with torch.no_grad():
                outputs = model(**batch)
            predictions, labels = accelerator.gather_for_metrics((outputs.logits.argmax(-1), batch["labels"]))
            every.append(predictions.cpu())
        accelerator.wait_for_everyone()
        unwrapped = accelerator.unwrap_model(model)
        accelerator.save(unwrapped.state_dict(), "model.pt")
    return total, torch.cat(every), gathered


def deepspeeded(args, model, loader):
    engine, optimizer, _, _ = deepspeed.initialize(args=args, model=model, model_parameters=model.parameters())
    losses, mean = [], 0
    for step, batch in enumerate(loader):
        loss = engine(batch.to(engine.local_rank)).mean()
        engine.backward(loss)
        engine.step()
        losses.append(loss)  # expect: GPU101
        if step % engine.gradient_accumulation_steps() == 0:
            mean = torch.stack(losses[-4:]).mean().item()
    for _ in range(engine.gradient_accumulation_steps()):
        mean += engine(batch).sum()
    return mean


def ignited(model, optimizer, loader):
    history = []

    def step(engine, batch):
        model.train()
        loss = F.cross_entropy(model(batch[0].cuda()), batch[1].cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss  # maybe: GPU101

    def evaluate(engine, batch):
        model.eval()
        with torch.no_grad():
            return model(batch[0].cuda()), batch[1]

    trainer, evaluator = Engine(step), Engine(evaluate)

    @trainer.on(Events.ITERATION_COMPLETED(every=10))
    def keep(engine):
        history.append(engine.state.output)  # maybe: GPU101

    trainer.add_event_handler(Events.EPOCH_COMPLETED, lambda engine: evaluator.run(loader))
    trainer.run(loader, max_epochs=3)
    return history


def mixed(model, loader, optimizer, scheduler, clip=None, log=wandb.log):
    scaler, running = GradScaler(), 0.0  # expect: GPU603
    wandb.watch(model)
    for step, (x, y) in enumerate(loader, start=1):
        with autocast(dtype=torch.float16, enabled=True):  # expect: GPU603
            loss = F.cross_entropy(model(x.cuda()), y.cuda())
        scaler.scale(loss / 4).backward()
        if step % 4 == 0 or step == len(loader):
            scaler.unscale_(optimizer)
            if clip:
                norm = nn.utils.clip_grad_norm_(model.parameters(), clip)
                log({"norm": norm, "loss": loss})
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad(set_to_none=True)
            scheduler.step(loss)
        running += loss  # expect: GPU101
        writer.add_scalar("loss", loss, step)
        writer.add_scalars("all", {"a": loss, "b": running / step}, step)
        wandb.log({"running": running})
        if isinstance(clip, float) and clip > 0 and (value := loss.item()) > 100:
            raise ValueError(value)
    return running


def language(prompts):
    tokenizer = AutoTokenizer.from_pretrained("gpt2")
    model = AutoModelForCausalLM.from_pretrained("gpt2", torch_dtype=torch.float16, device_map="auto")
    generator = pipeline("text-generation", model="gpt2", device=0)
    texts, scores = [], []
    for prompt in prompts:
        inputs = tokenizer(prompt, return_tensors="pt").to("cuda")
        ids = model.generate(**inputs, max_new_tokens=100, do_sample=True)
        texts.append(tokenizer.decode(ids[0]))
        texts.append(generator(prompt)[0]["generated_text"])
        logits = model(**inputs).logits  # expect: GPU201  # low: GPU409
        scores.append(logits[0, -1].max().item())
    return texts, scores


class Fabricated:
    def __init__(self):
        self.fabric = L.Fabric(accelerator="cuda", devices=2)
        self.fabric.launch()

    def run(self, model, loader):
        model, optimizer = self.fabric.setup(model, torch.optim.Adam(model.parameters()))
        loader = self.fabric.setup_dataloaders(loader)
        losses = []
        for x, y in loader:
            loss = F.cross_entropy(model(x), y)
            self.fabric.backward(loss)
            optimizer.step()
            losses.append(self.fabric.all_gather(loss))  # maybe: GPU101
        return torch.stack(losses).mean()


if __name__ == "__main__":
    net = nn.Linear(100, 10)
    data = torch.utils.data.DataLoader([0] * 1000)
    pl.Trainer(max_epochs=3, callbacks=[Callback()]).fit(Lit(net), data)
    Custom(net, TrainingArguments("out"), train_dataset=data, teacher=net.cuda(), callbacks=[Stop()]).train()
    adam = torch.optim.Adam(net.parameters())
    print(accelerated(net, data, adam), deepspeeded(None, net, data), ignited(net, adam, data), language(["a"]))
    mixed(net.cuda(), data, adam, torch.optim.lr_scheduler.ReduceLROnPlateau(adam), clip=1.0)
    Fabricated().run(net, data)
