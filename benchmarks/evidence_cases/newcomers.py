"""Cases of networks that are cast where they have been moved to, of evaluations that a trainer gathers, of tensors moved in
every step, of methods that are memoised, and of a collector that is switched off."""

from __future__ import annotations

import copy
import functools
import gc
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from evidence_cases.setup import Case, LanguageModel, Setup, Step, variant

CHAINED = 8  # training steps between two waits for the GPU


# -- GPU407: cast where it has been moved to -------------------------------------------------------------------


def _network(setup: Setup) -> nn.Module:
    net = LanguageModel(setup.size)
    net.register_buffer("position", torch.arange(setup.size.length))
    net.register_buffer("scale", torch.linspace(0, 1, setup.size.length))
    return net


PLACED: dict[str, Callable[[nn.Module, str, torch.dtype], nn.Module]] = {
    "moved, then cast": lambda net, device, dtype: net.to(device).to(dtype),
    "cast, then moved": lambda net, device, dtype: net.to(dtype).to(device),
    "moved and cast by one call": lambda net, device, dtype: net.to(device, dtype),
    "moved in fp32": lambda net, device, dtype: net.to(device),
}


@variant
def _placed(setup: Setup, how: str, dtype: torch.dtype) -> Step:
    """A network made on the host goes to the GPU. `values that differ` from those of the first order, bit for bit."""

    torch.manual_seed(0)
    on_host = _network(setup)
    with torch.no_grad():  # what rounds, overflows and underflows
        for number, weight in enumerate(on_host.parameters()):
            weight.mul_(10.0 ** (number % 9 - 4))
    expected = PLACED["moved, then cast"](copy.deepcopy(on_host), setup.device, dtype).state_dict()
    reference = {name: value.cpu() for name, value in expected.items()}
    del expected

    def step() -> None:
        net = copy.deepcopy(on_host)
        setup.wait()
        before = setup.allocated()
        if setup.device == "cuda":
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        begin = time.perf_counter()
        placed = PLACED[how](net, setup.device, dtype)
        setup.wait()
        setup.note("placing, ms", 1000 * (time.perf_counter() - begin))
        setup.note("allocated afterwards", setup.allocated() - before)
        if setup.device == "cuda":
            setup.note("reserved afterwards", torch.cuda.memory_reserved())
        found = placed.state_dict()
        setup.note("values that differ, values", sum(_differing(reference[n], v) for n, v in found.items()))

    return step


def _differing(one: Tensor, other: Tensor) -> int:
    if one.dtype != other.dtype:
        return 0
    bits = {2: torch.int16, 4: torch.int32, 8: torch.int64}[one.element_size()]
    return int((one.contiguous().view(bits) != other.cpu().contiguous().view(bits)).sum())


# -- GPU108: what a trainer gathers --------------------------------------------------------------------------


def _joined(gathered: Any, new: Any) -> Any:
    """As transformers' `nested_concat`: what there is, and the new batch, in one new tensor."""
    if gathered is None:
        return new
    if isinstance(new, tuple):
        return tuple(_joined(one, other) for one, other in zip(gathered, new, strict=True))
    return torch.cat((gathered, new))


def _to_host(gathered: Any) -> Any:
    return tuple(map(_to_host, gathered)) if isinstance(gathered, tuple) else gathered.cpu()


@variant
def _gathered(setup: Setup, hidden: bool, preprocess: bool, every: int | None) -> Step:
    """The loop of `Trainer.evaluation_loop`, whose batches go into one tensor on the device until they are moved on."""

    net = setup.language_model().eval()
    kept: dict[str, Any] = {"device": None, "host": [], "steps": 0}

    def step() -> None:
        tokens = setup.tokens()
        with torch.no_grad():
            states = net.body(net.embedding(tokens))
            logits: Any = net.head(states)
        if hidden:
            logits = (logits, states.repeat(1, 1, 1))
        if preprocess:
            logits = (logits[0] if hidden else logits).argmax(-1)
        kept["device"] = _joined(kept["device"], logits)
        kept["steps"] += 1
        if every is not None and kept["steps"] % every == 0:
            kept["host"].append(_to_host(kept["device"]))
            kept["device"] = None

    return step


# -- GPU505: moved in every step --------------------------------------------------------------------------------


@variant
def _moving(setup: Setup, what: str, moved: str, milliseconds: float, numbers: int) -> Step:
    """Training with a tensor that is the same in every step, between the forward and the loss. `numbers` are its elements;
    `milliseconds` of work the host has between steps."""

    model, optimizer = setup.language_model_in_training()
    on_host = torch.ones(numbers)
    on_device = on_host.to(setup.device)
    values = [1.0] * min(numbers, 64)

    ways: dict[str, Callable[[], Tensor]] = {
        "made on the host, .to(device)": lambda: torch.ones(numbers).to(setup.device),
        "kept on the host, .to(device)": lambda: on_host.to(setup.device),
        "torch.tensor(list).to(device)": lambda: torch.tensor(values).to(setup.device),
        "torch.tensor(list, device=device)": lambda: torch.tensor(values, device=setup.device),
        "made on the device": lambda: torch.ones(numbers, device=setup.device),
        "moved once": lambda: on_device,
    }
    tensor = ways[moved]

    def step() -> None:
        setup.wait()
        begin = time.perf_counter()
        for _ in range(CHAINED):
            tokens = setup.tokens()
            if what == "batch moved too":
                tokens = tokens.cpu() if setup.device == "cpu" else torch.zeros_like(tokens, device="cpu")
                tokens = tokens.to(setup.device)
            loss = setup.loss_of(model, tokens) * tensor()[0]
            setup.update(optimizer, loss)
            setup.work(milliseconds)
        setup.wait()
        setup.note("a training step, ms", 1000 * (time.perf_counter() - begin) / CHAINED)

    return step


MOVED = (
    "made on the host, .to(device)", "kept on the host, .to(device)", "torch.tensor(list).to(device)",
    "torch.tensor(list, device=device)", "made on the device", "moved once",
)  # fmt: skip


def _moved(numbers: int) -> tuple[str, ...]:
    """The ways that there are: nobody writes out millions of numbers in a list."""
    return MOVED if numbers <= 64 else tuple(name for name in MOVED if "list" not in name)


# -- GPU106: methods that are memoised ---------------------------------------------------------------------------


@variant
def _memoised(setup: Setup, how: str) -> Step:
    """One object after another that holds a network: one method of each is asked once."""

    caches = {"lru_cache": functools.lru_cache, "lru_cache(maxsize=4)": functools.lru_cache(maxsize=4)}

    class Holder:
        def __init__(self) -> None:
            self.net = setup.mlp()

        def width(self) -> int:
            return sum(weight.numel() for weight in self.net.parameters())

    if how in caches:
        Holder.width = caches[how](Holder.width)  # type: ignore[method-assign]
    elif how == "cached_property":
        kept = functools.cached_property(lambda self: sum(w.numel() for w in self.net.parameters()))
        kept.__set_name__(Holder, "kept")
        Holder.kept = kept  # type: ignore[attr-defined]

    def step() -> None:
        holder = Holder()
        holder.kept if how == "cached_property" else holder.width()  # type: ignore[attr-defined]

    return step


# -- GPU408: no collector ------------------------------------------------------------------------------------


COLLECTED = ("off", "on", "off, collected every 4 steps")


class _Parted:
    """Two objects that know each other, as a state and its owner do: only the collector frees what they hold."""

    def __init__(self, held: Tensor | None) -> None:
        self.held = held
        self.me = self


@variant
def _collected(setup: Setup, how: str, cycles: bool) -> Step:
    """Training, with the output of each step in a reference cycle or not."""

    model, optimizer = setup.mlp_in_training()
    done = [0]
    others = [[] for _ in range(20_000)]  # what a program with data and a log has, besides torch

    def step() -> None:
        (gc.enable if how == "on" else gc.disable)()
        out = model(setup.features())
        loss = out.pow(2).mean()
        setup.update(optimizer, loss)
        if cycles:
            _Parted(out.detach())
        list(map(list, others[:2000]))  # allocations of the host, by which the collector counts
        done[0] += 1
        if how == "off, collected every 4 steps" and done[0] % 4 == 0:
            gc.collect()
        gc.enable()  # the measuring itself goes on as ever; what has been left over stays

    return step


CASES = [
    Case(
        "GPU106",
        "a memoised method of objects with a network",
        {
            how: _memoised(how)
            for how in ("lru_cache", "lru_cache(maxsize=4)", "cached_property", "not memoised")
        },
    ),
    *(
        Case("GPU108", "an evaluation gathered" + (", hidden states too" if hidden else ""), {
            "on the device": _gathered(hidden, False, None),
            "eval_accumulation_steps=1": _gathered(hidden, False, 1),
            "eval_accumulation_steps=4": _gathered(hidden, False, 4),
            "preprocess_logits_for_metrics": _gathered(hidden, True, None),
        })
        for hidden in (False, True)
    ),
    *(
        Case("GPU407", f"a network to the GPU as {name}", {how: _placed(how, dtype) for how in PLACED})
        for name, dtype in (("float16", torch.float16), ("bfloat16", torch.bfloat16))
    ),
    *(
        Case("GPU408", f"training, {name}", {how: _collected(how, cycles) for how in COLLECTED})
        for name, cycles in (("outputs in reference cycles", True), ("no cycles", False))
    ),
    *(
        Case(
            "GPU505",
            f"a tensor of {numbers} numbers in every step, {milliseconds} ms of work of the host, {what}",
            {moved: _moving(what, moved, milliseconds, numbers) for moved in _moved(numbers)},
        )
        for what, milliseconds, numbers in (
            ("batch on the GPU", 0, 64),
            ("batch on the GPU", 5, 64),
            ("batch moved too", 0, 64),
            ("batch moved too", 5, 64),
            ("batch on the GPU", 5, 4_194_304),
        )
    ),
]  # fmt: skip
