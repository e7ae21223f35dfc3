"""Cases of the rules 5xx: calls in every step and in every so many, where steps are long or short, and where the host has
work of its own."""

from __future__ import annotations

import gc
import tempfile
import time

import torch

from evidence_cases.setup import Case, Setup, Step, variant

CHAIN = 100  # steps between two waits for the GPU where a call comes every so many steps
EVERY = (1, 2, 5, 10, 20, 100)  # each divides `CHAIN`
CALLS = {"GPU501": "empty_cache", "GPU502": "gc.collect", "GPU503": "synchronize"}
WORK = 5  # milliseconds of the host's own work a step, where it is asked what waiting for the GPU costs


def _call(setup: Setup, what: str, model: torch.nn.Module) -> None:
    """One of the calls; those of CUDA alone do nothing on a CPU."""
    if what == "torch.save":
        with tempfile.NamedTemporaryFile() as file:
            torch.save(model.state_dict(), file.name)
        return
    {"gc.collect": gc.collect, "empty_cache": setup.empty_cache, "synchronize": setup.wait}[what]()


@variant
def chain(
    setup: Setup,
    *what: str,
    every: int = 1,
    steps: int = 1,
    mlp: bool = False,
    trains: bool = True,
    work: float = 0,
) -> Step:
    """So many steps in a row, which only the end of the chain waits for, with the calls `what` after each `every`-th.

    The network is the language model or, with `mlp`, 16 linear layers; it is trained, or evaluated under `no_grad`;
    `work` is what the host does besides, in milliseconds a step. Chains of several steps note what one of them took.
    """

    model = setup.mlp(16) if mlp else setup.language_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4) if mlp else setup.adamw(model)
    model.train(trains)

    def one() -> None:
        with torch.set_grad_enabled(trains):
            loss = model(setup.features()).pow(2).mean() if mlp else setup.loss_of(model, setup.tokens())
        if trains:
            setup.update(optimizer, loss)

    def step() -> None:
        setup.wait()
        begin = time.perf_counter()
        for number in range(1, steps + 1):
            one()
            for name in what if number % every == 0 else ():
                _call(setup, name, model)
            setup.work(work)
        setup.wait()
        if steps > 1:
            setup.note("one step, ms", 1000 * (time.perf_counter() - begin) / steps)

    return step


def _amortised(code: str, mlp: bool, trains: bool, work: float = 0) -> Case:
    """What a call costs a step that comes in every step, in every second, …, in every hundredth, and never."""
    made = {
        f"every {n} steps" if n > 1 else "every step": chain(
            CALLS[code], every=n, steps=CHAIN, mlp=mlp, trains=trains, work=work
        )
        for n in EVERY
    }
    network = "16-layer MLP" if mlp else "language model"
    busy = f", {work} ms of work of the host" if work else ""
    return Case(
        code,
        f"{CALLS[code]} every n steps, {'training' if trains else 'evaluation'}, {network}{busy}",
        {**made, "never": chain(steps=CHAIN, mlp=mlp, trains=trains, work=work)},
        warmup=1,
    )


CASES = [
    *(
        Case(code, f"{what} every step", {"every step": chain(what), "never": chain()})
        for code, what in CALLS.items()
    ),
    Case("GPU501", "empty_cache every step, 16-layer MLP", {
        "every step": chain("empty_cache", mlp=True), "never": chain(mlp=True),
    }),
    Case("GPU502", "gc.collect every step, 16-layer MLP", {
        "every step": chain("gc.collect", mlp=True),
        "every step, empty_cache after it": chain("gc.collect", "empty_cache", mlp=True),
        "never": chain(mlp=True),
    }),
    *(
        Case("GPU503", f"torch.save every step, {title}", {
            "every step": chain("torch.save", steps=8, mlp=mlp), "never": chain(steps=8, mlp=mlp),
        })
        for title, mlp in (("language model", False), ("16-layer MLP", True))
    ),
    *(
        Case("GPU503", f"synchronize every step, {milliseconds} ms of work of the host", {
            "every step": chain("synchronize", steps=8, work=milliseconds),
            "never": chain(steps=8, work=milliseconds),
        })
        for milliseconds in (5, 10)
    ),
    *(
        _amortised(code, mlp, trains)
        for code in ("GPU501", "GPU502")
        for mlp in (False, True)
        for trains in (True, False)
    ),
    *(_amortised("GPU503", False, trains, WORK) for trains in (True, False)),
]  # fmt: skip
