"""More cases of the rules 3xx: gradients that keep a graph (GPU302), gradients that are kept (GPU304)."""

from __future__ import annotations

import gc
from typing import Any

import torch
from torch import Tensor

from evidence_cases.setup import Case, Setup, Step, variant


def _hand_out(loss: Tensor, parameters: list[Any]) -> None:
    """Put the gradients on the parameters without their graph, which goes when this function returns."""
    grads = torch.autograd.grad(loss, parameters, create_graph=True)
    for parameter, grad in zip(parameters, grads, strict=True):
        parameter.grad = grad.detach()


@variant
def _second_order(setup: Setup, how: str) -> Step:
    """An optimizer that reads the gradients of a first backward, as second-order methods do."""

    model, optimizer = setup.mlp_in_training(rate=1e-5)
    parameters = list(model.parameters())

    def step() -> None:
        loss = model(setup.features()).pow(2).mean()
        if how == "autograd.grad":
            _hand_out(loss, parameters)
        else:
            if how == "zero_grad before backward":
                optimizer.zero_grad()
            loss.backward(create_graph=True)
        optimizer.step()
        if how == "zero_grad after the step":
            optimizer.zero_grad()
        del loss
        setup.note("allocated after the step", setup.allocated())

    return step


@variant
def _penalty(setup: Setup, how: str) -> Step:
    """A second backward through the gradients, as of a gradient penalty."""

    model, optimizer = setup.mlp_in_training(rate=1e-5)
    parameters = list(model.parameters())

    def squares(grads: Any) -> Tensor:
        return torch.stack([grad.pow(2).sum() for grad in grads]).sum()

    def step() -> None:
        loss = model(setup.features()).pow(2).mean()
        if how == "autograd.grad":
            total = loss + squares(torch.autograd.grad(loss, parameters, create_graph=True))
            optimizer.zero_grad()
            total.backward()
        else:
            if how == "zero_grad before backward":
                optimizer.zero_grad()
            loss.backward(create_graph=True)
            squares(p.grad for p in parameters if p.grad is not None).backward()
        optimizer.step()
        if how == "zero_grad after the step":
            optimizer.zero_grad()
        setup.note("allocated after the step", setup.allocated())

    return step


@variant
def _dropped(setup: Setup, create_graph: bool) -> Step:
    """A model of its own in every step, dropped with its gradients, while the garbage collector is off."""

    def step() -> None:
        gc.disable()
        try:
            loss = setup.mlp()(setup.features()).pow(2).mean()
            loss.backward(create_graph=create_graph)
        finally:
            del loss
            gc.enable()

    return step


@variant
def _looked_at(setup: Setup, create_graph: bool) -> Step:
    """The gradient for an input of many rows, which is detached at once."""

    model = setup.mlp()

    def step() -> None:
        rows = setup.features(128 * setup.size.mlp_batch).requires_grad_()
        (grad,) = torch.autograd.grad(model(rows).sum(), rows, create_graph=create_graph)
        setup.note("allocated with the gradient", setup.allocated())
        grad = grad.detach()
        setup.note("allocated with what is detached", setup.allocated())

    return step


@variant
def _zero_grad_late(setup: Setup, to_none: bool) -> Step:
    """`zero_grad` between forward and backward."""

    model, optimizer = setup.language_model_in_training()

    def step() -> None:
        loss = setup.loss_of(model, setup.tokens())
        optimizer.zero_grad(set_to_none=to_none)
        loss.backward()
        optimizer.step()

    return step


ZEROED = ("zero_grad before backward", "zero_grad after the step", "autograd.grad")
CASES = [
    Case(
        "GPU302",
        "an optimizer that reads the gradients",
        {how: _second_order(how) for how in ("no zero_grad", *ZEROED)},
    ),
    Case("GPU302", "a gradient penalty, 8-layer MLP", {how: _penalty(how) for how in ZEROED}),
    Case("GPU302", "a model dropped after its backward", {
        "backward(create_graph=True)": _dropped(True), "backward()": _dropped(False),
    }),
    Case("GPU302", "a gradient that is only looked at, 8-layer MLP, 65,536 rows", {
        "create_graph=True": _looked_at(True), "create_graph=False": _looked_at(False),
    }),
    Case("GPU304", "zero_grad between forward and backward", {
        "set_to_none=False": _zero_grad_late(False), "set_to_none=True": _zero_grad_late(True),
    }),
]  # fmt: skip
