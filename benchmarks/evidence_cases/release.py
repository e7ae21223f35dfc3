"""Cases of the rules 4xx, and GPU504: when to let go, and what is read one by one."""

from __future__ import annotations

import copy
import gc
import io
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional as F

from evidence_cases.setup import Case, Setup, Step, variant


@variant
def _late(setup: Setup, when: str, autocast: bool = False) -> Step:
    """Logits of a train step, whose forward may run under bfloat16 autocast."""

    model, optimizer = setup.language_model_in_training()
    memory: dict[str, Any] = {}

    def step() -> None:
        tokens = setup.tokens()
        with torch.autocast(setup.device, dtype=torch.bfloat16, enabled=autocast):
            memory["out"] = model(tokens)
            loss = F.cross_entropy(memory["out"].flatten(0, 1), tokens.flatten())
        if when == "before backward":
            del memory["out"]
        setup.update(optimizer, loss)
        if when == "end of body":
            memory.clear()

    return step


@variant
def _late_evaluation(setup: Setup, release: bool) -> Step:
    model = setup.language_model().eval()
    memory: dict[str, Any] = {}

    @torch.no_grad()
    def step() -> None:
        memory["out"] = model(setup.tokens())
        memory["hits"] = memory["out"].argmax(-1).sum().item()
        if release:
            del memory["out"]

    return step


@variant
def _recovery(setup: Setup, inside: bool) -> Step:
    """A step that fails after its forward, as one that runs out of memory in backward does."""

    model = setup.language_model()

    def failing() -> None:
        loss = setup.loss_of(model, setup.tokens())
        raise torch.OutOfMemoryError(f"CUDA out of memory at {loss.dim()}")

    def recover() -> None:
        setup.empty_cache()
        setup.note("allocated during recovery", setup.allocated())

    def step() -> None:
        failed = False
        try:
            failing()
        except torch.OutOfMemoryError:
            failed = True
            if inside:
                recover()
        if failed and not inside:
            recover()

    return step


@variant
def _load(setup: Setup, to_host: bool) -> Step:
    model, optimizer = setup.language_model_in_training()
    setup.loss_of(model, setup.tokens()).backward()
    optimizer.step()
    buffer = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, buffer)

    def step() -> None:
        buffer.seek(0)
        checkpoint = torch.load(buffer, map_location="cpu" if to_host else None)
        model.load_state_dict(checkpoint["model"])
        setup.note("allocated while loading", setup.allocated())

    return step


@variant
def _resume(setup: Setup, to_host: bool, with_optimizer: bool) -> Step:
    """A name holds the checkpoint until all of it has been copied into the model, and into the optimizer."""

    model, optimizer = setup.language_model_in_training()
    saved: dict[str, Any] = {"model": model.state_dict()}
    if with_optimizer:
        setup.loss_of(model, setup.tokens()).backward()
        optimizer.step()
        optimizer.zero_grad()
        saved["optimizer"] = optimizer.state_dict()
    buffer = io.BytesIO()
    torch.save(saved, buffer)
    del saved

    def step() -> None:
        buffer.seek(0)
        checkpoint = torch.load(buffer, map_location="cpu" if to_host else None)
        model.load_state_dict(checkpoint["model"])
        if with_optimizer:
            optimizer.load_state_dict(checkpoint["optimizer"])
        setup.note("allocated after loading", setup.allocated())

    return step


@variant
def _clones(setup: Setup, how: str) -> Step:
    """The best weights as a dict of clones; `parameters` is the size of the model."""

    model = setup.language_model()
    best: dict[str, Any] = {}
    without = setup.allocated()

    def step() -> None:
        state = {name: value.detach() for name, value in model.state_dict().items()}
        if how == "clone":
            best["state"] = {name: value.clone() for name, value in state.items()}
        elif how == "cpu, clone":
            best["state"] = {name: value.cpu().clone() for name, value in state.items()}
        else:
            best["state"] = state
        setup.note("parameters", sum(p.numel() * p.element_size() for p in model.parameters()))
        setup.note("allocated for the snapshot", setup.allocated() - without)

    return step


@variant
def _snapshot(setup: Setup, to_host: bool) -> Step:
    model = setup.language_model()
    best: dict[str, Any] = {}

    def step() -> None:
        if to_host:
            best["state"] = {name: value.cpu() for name, value in model.state_dict().items()}
        else:
            best["state"] = copy.deepcopy(model.state_dict())
        setup.note("allocated with the snapshot", setup.allocated())

    return step


@variant
def _cleanup(setup: Setup, works: bool) -> Step:
    """`del` of a parameter inside a helper: the caller still holds the object."""

    model = setup.language_model().eval()

    def clean(out: Any) -> None:
        del out
        setup.empty_cache()

    @torch.no_grad()
    def step() -> None:
        out = model(setup.tokens())
        if works:
            del out
            clean(None)
        else:
            clean(out)
        setup.note("allocated after the cleanup", setup.allocated())

    return step


@variant
def _order(setup: Setup, last: str, cycle: bool = False) -> Step:
    """`empty_cache` before or after what lets go of logits: their `del`, or the collector's run where a `cycle` holds them."""

    model = setup.language_model().eval()

    @torch.no_grad()
    def step() -> None:
        held: dict[str, Any] = {"out": model(setup.tokens())}
        if cycle:
            held["itself"] = held
        if last != "empty_cache":
            setup.empty_cache()
        del held
        if cycle:
            gc.collect()
        if last == "empty_cache":
            setup.empty_cache()
        if setup.device == "cuda":
            setup.note("reserved after the cleanup", torch.cuda.memory_reserved())
        setup.note("allocated after the cleanup", setup.allocated())

    return step


@variant
def _loop_variable(setup: Setup, works: bool) -> Step:
    """`del` of a loop's variable: the list that the loop runs over still holds each output."""

    model = setup.language_model().eval()

    @torch.no_grad()
    def step() -> None:
        outs = [model(setup.tokens())]
        for out in outs:
            del out
        if works:
            outs.clear()
        setup.empty_cache()
        setup.note("allocated after the cleanup", setup.allocated())

    return step


@variant
def _phases(setup: Setup, clean: bool) -> Step:
    """Training steps, then a validation of another shape; how much stays reserved afterwards."""

    model, optimizer = setup.language_model_in_training()

    def step() -> None:
        setup.loss_of(model, setup.tokens()).backward()
        optimizer.step()
        optimizer.zero_grad()
        with torch.no_grad():
            setup.loss_of(model, setup.tokens(batch=2 * setup.size.batch)).item()
        if clean:
            gc.collect()
            setup.empty_cache()
        if setup.device == "cuda":
            setup.note("reserved after validation", torch.cuda.memory_reserved())

    return step


READS: dict[str, Callable[[torch.Tensor], Any]] = {
    ".item() each": lambda some: sum(value.item() for value in some),
    "one .tolist()": lambda some: sum(some.tolist()),
    "if value > 0": lambda some: sum(1 for value in some if value > 0),
    "if value > 0, of one .tolist()": lambda some: sum(1 for value in some.tolist() if value > 0),
}


@variant
def _elements(setup: Setup, how: str) -> Step:
    model, optimizer = setup.mlp_in_training()

    def step() -> None:
        per_sample = model(setup.features()).pow(2).mean(1)
        setup.update(optimizer, per_sample.mean())
        READS[how](per_sample.detach()[:64])

    return step


def _grads(model: torch.nn.Module) -> list[torch.Tensor]:
    return [one.grad for one in model.parameters() if one.grad is not None]


NORMS: dict[str, Callable[[torch.nn.Module], float]] = {
    "no norm": lambda model: 0.0,
    ".item() each": lambda model: sum(one.norm().item() ** 2 for one in _grads(model)) ** 0.5,
    "stacked, read once": lambda model: torch.stack([one.norm() for one in _grads(model)]).norm().item(),
    "torch._foreach_norm, read once": lambda model: (
        torch.stack(torch._foreach_norm(_grads(model))).norm().item()
    ),
    "clip_grad_norm_": lambda model: torch.nn.utils.clip_grad_norm_(model.parameters(), 1e9).item(),
}


@variant
def _norms(setup: Setup, how: str, layers: int | None) -> Step:
    """The norm of all gradients in each step: of a chain of linear layers, or of the language model."""
    model: torch.nn.Module = setup.mlp(layers) if layers else setup.language_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)

    def step() -> None:
        loss = model(setup.features()).pow(2).mean() if layers else setup.loss_of(model, setup.tokens())
        optimizer.zero_grad()
        loss.backward()
        NORMS[how](model)
        optimizer.step()

    return step


CASES = [
    Case("GPU401", "logits of a train step", {
        "kept until rebound": _late("never"), "del at the end of the body": _late("end of body"),
        "del before backward": _late("before backward"),
    }),
    Case("GPU401", "logits of an evaluation", {"kept": _late_evaluation(False), "del": _late_evaluation(True)}),
    Case("GPU401", "logits of a train step under bf16 autocast", {
        "kept until rebound": _late("never", True), "del before backward": _late("before backward", True),
    }),
    Case("GPU402", "recovery from a failed step", {
        "inside except": _recovery(True), "after it": _recovery(False),
    }),
    Case("GPU403", "torch.load of a checkpoint", {"default": _load(False), 'map_location="cpu"': _load(True)}),
    *(
        Case("GPU403", "resuming " + ("a model and its optimizer" if optimizer else "from weights alone"), {
            "default": _resume(False, optimizer), 'map_location="cpu"': _resume(True, optimizer),
        })
        for optimizer in (True, False)
    ),
    Case("GPU404", "a dict of the weights", {how: _clones(how) for how in ("clone", "cpu, clone", "alias")}),
    Case("GPU404", "best weights kept", {
        "deepcopy on the device": _snapshot(False), "on the host": _snapshot(True),
    }),
    Case("GPU405", "del in a helper", {
        "caller holds it": _cleanup(False), "del in the caller": _cleanup(True),
    }),
    Case("GPU405", "empty_cache and del", {
        "empty_cache, del": _order("del"), "del, empty_cache": _order("empty_cache"),
    }),
    Case("GPU405", "empty_cache and gc.collect, logits in a cycle", {
        "empty_cache, gc.collect": _order("gc.collect", cycle=True),
        "gc.collect, empty_cache": _order("empty_cache", cycle=True),
    }),
    Case("GPU405", "del of a loop's variable", {
        "the list holds it": _loop_variable(False), "clear()": _loop_variable(True),
    }),
    Case("GPU406", "between phases", {"nothing": _phases(False), "gc.collect, empty_cache": _phases(True)}),
    Case("GPU504", "64 values read", {how: _elements(how) for how in (".item() each", "one .tolist()")}),
    Case("GPU504", "64 values tested", {how: _elements(how) for how in READS if how.startswith("if")}),
    *(
        Case("GPU504", f"the norm of all gradients, {title}", {how: _norms(how, layers) for how in NORMS})
        for title, layers in (("8 linear layers", 8), ("75 linear layers, 150 parameters", 75), ("a language model", None))
    ),
]  # fmt: skip
