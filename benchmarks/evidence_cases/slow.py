"""More cases of the rules 5xx: calls in every step, where steps are short, and where the host has work of its own."""

from __future__ import annotations

import gc
import time
from typing import Any

import torch

from evidence_cases.setup import Case, Setup, Step

CHAINED = 8  # training steps between two waits for the GPU


def _wait(setup: Setup) -> None:
    if setup.device == "cuda":
        torch.cuda.synchronize()


def _calling(*what: str) -> Any:
    """Training a 16-layer MLP, with these calls after every step."""

    def make(setup: Setup) -> Step:
        model = setup.mlp(16)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)

        def step() -> None:
            loss = model(setup.features()).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if "gc.collect" in what:
                gc.collect()
            if "empty_cache" in what and setup.device == "cuda":
                torch.cuda.empty_cache()

        return step

    return make


def _working(milliseconds: float, synchronize: bool) -> Any:
    """Training steps, and work of the host between them, that only the end of a chain of steps waits for."""

    def make(setup: Setup) -> Step:
        model = setup.language_model()
        optimizer = setup.adamw(model)

        def work() -> None:
            end = time.perf_counter() + milliseconds / 1000
            while time.perf_counter() < end:
                pass

        def step() -> None:
            _wait(setup)
            begin = time.perf_counter()
            for _ in range(CHAINED):
                loss = setup.loss_of(model, setup.tokens())
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                if synchronize:
                    _wait(setup)
                work()
            _wait(setup)
            setup.note("a training step, ms", 1000 * (time.perf_counter() - begin) / CHAINED)

        return step

    return make


CASES = [
    Case(
        "GPU501",
        "empty_cache every step, 16-layer MLP",
        {"every step": _calling("empty_cache"), "never": _calling()},
    ),
    Case(
        "GPU502",
        "gc.collect every step, 16-layer MLP",
        {
            "every step": _calling("gc.collect"),
            "every step, empty_cache after it": _calling("gc.collect", "empty_cache"),
            "never": _calling(),
        },
    ),
    *(
        Case(
            "GPU503",
            f"synchronize every step, {milliseconds} ms of work of the host",
            {"every step": _working(milliseconds, True), "never": _working(milliseconds, False)},
        )
        for milliseconds in (5, 10)
    ),
]
