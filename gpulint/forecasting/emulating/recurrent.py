"""Recurrent networks as cuDNN runs them: weights in one buffer, a reserve for the backward, a workspace for each direction.

The reserve is exact (five blocks of the size of the output for an LSTM's layer, six for a GRU's, one for a plain one, and what
dropout keeps between layers); the workspace is a fit to 108 networks, 10 % off on average.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import torch
from torch import nn

from gpulint.forecasting.emulating._tensors import on_card, size_of

_LSTM: Final = 2
_MODES: Final = {"rnn_relu": 0, "rnn_tanh": 1, "lstm": _LSTM, "gru": 3}
_KEPT: Final = {0: 1, 1: 1, _LSTM: 5, 3: 6}  # blocks of the reserve for each layer and direction
_DROPOUT_STATE: Final = 6_488_064  # of cuDNN, once


def reserve_bytes(mode: int, output: int, layers: int, ways: int, dropped: bool) -> int:
    """What the forward keeps for the backward; `output` are the bytes of one layer's output in one direction."""
    between = (layers - 1) * ways * (output + (ways * output // 32 if dropped else 0))
    return 256 + _KEPT[mode] * layers * ways * output + between


def workspace_bytes(weights: int, output: int, layers: int, ways: int) -> int:
    """What a forward or a backward takes while it runs."""
    return int(11e6 * layers * ways + 0.57 * weights + 7.8 * output * ways)


# Mode, layers, ways, whether it trains, whether the batch comes first
_Settings = tuple[int, int, int, bool, bool]


def _replacement(tape: Any, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    """`torch._VF.lstm` and its like, on the card as one differentiable call of cuDNN. Both forms: (input, hx, weights, bias, …,
    batch_first), and, packed, (data, batch_sizes, hx, weights, bias, …)."""

    def run(*given: Any) -> Any:
        if not on_card(given[0]):
            return original(*given)
        first = False
        if isinstance(given[3], (list, tuple)):  # the weights: packed
            data, _, states, weights, _, layers, dropout, train, both = given
        else:
            data, states, weights, _, layers, dropout, train, both, first = given
        hidden, cell = states if name == "lstm" else (states, None)
        if torch.is_autocast_enabled("cuda"):
            kind = torch.get_autocast_dtype("cuda")
            data, hidden = data.to(kind), hidden.to(kind)
            cell = None if cell is None else cell.to(kind)
            weights = [weight.to(kind) for weight in weights]
        dropped = train and dropout > 0
        if dropped:
            tape.permanent(_DROPOUT_STATE, "cuDNN dropout state")
        settings = (_MODES[name], layers, 2 if both else 1, train, first)
        out = _Recurrence.apply(tape, settings, dropped, data, hidden, cell, *weights)
        return out if name == "lstm" else out[:2]

    return run


def _flat(weights: Any) -> Any:
    """All weights in one buffer; None where they are."""
    storages = {weight.untyped_storage()._cdata for weight in weights}
    if len(storages) == 1 or torch.is_autocast_enabled("cuda"):
        return None
    return weights[0].new_empty(sum(weight.numel() for weight in weights))


def _steps_first(data: Any, batch_first: bool) -> int:
    """Bytes of the copy of data whose batch comes first: cuDNN wants the steps first."""
    return 0 if not batch_first or data.transpose(0, 1).is_contiguous() else size_of(data)


def _made(data: Any, width: int, batch_first: bool) -> Any:
    if not batch_first:
        return data.new_empty((*data.shape[:-1], width))
    return data.new_empty((data.shape[1], data.shape[0], width)).transpose(0, 1)


class _Recurrence(torch.autograd.Function):
    """Forward and backward of a whole network: results, reserve, workspaces and gradients."""

    @staticmethod
    def forward(
        ctx: Any, tape: Any, settings: _Settings, dropped: bool, data: Any, hidden: Any, cell: Any, *weights: Any
    ) -> Any:  # fmt: skip
        mode, layers, ways, train, first = settings
        copy = tape.hold(max(1, _steps_first(data, first)))
        width = hidden.shape[-1]
        output = _made(data, width * ways, first)
        states = (torch.empty_like(hidden), torch.empty_like(hidden if cell is None else cell))
        layer = output.numel() // ways * output.element_size()
        needed = sum(weight.numel() * weight.element_size() for weight in weights)
        flat = _flat(weights)
        workspace = workspace_bytes(needed, layer, layers, ways)
        held = tape.hold(workspace)
        size = reserve_bytes(mode, layer, layers, ways, dropped) if train else 0
        reserve = data.new_empty(size, dtype=torch.uint8)
        tape.see(reserve)
        tape.release(held)
        tape.release(copy)
        ctx.save_for_backward(data, hidden, cell, output, reserve, flat, *weights)
        ctx.figures = (tape, workspace, first)
        return output, *states

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        data, hidden, cell, _, _, _, *weights = ctx.saved_tensors
        tape, workspace, first = ctx.figures
        copied = max(1, _steps_first(data, first))
        with tape.holding(copied):
            to_data = _made(data, data.shape[-1], first)
            to_hidden = torch.empty_like(hidden)
            to_cell = None if cell is None else torch.empty_like(cell)
            tape.temporary(workspace)
        with tape.holding(copied):
            flat = data.new_empty(sum(weight.numel() for weight in weights))
            tape.temporary(workspace)
        return (*[None] * 3, to_data, to_hidden, to_cell, *_within(flat, weights))


def _within(flat: Any, weights: list[Any]) -> Iterator[Any]:
    """The parts of a buffer that are the weights, one behind the other."""
    begin = 0
    for weight in weights:
        yield flat[begin : begin + weight.numel()].view(weight.shape)
        begin += weight.numel()


def _gru_cell(tape: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """One kernel, which keeps five numbers for each of the state."""
    hidden = args[2]
    rows, width = hidden.shape
    return torch.empty_like(hidden), hidden.new_empty((rows, 5 * width))


def _gru_cell_backward(tape: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    gradient, _, biased = args
    rows, width = gradient.shape
    gates = [gradient.new_empty((rows, 3 * width)) for _ in range(2)]
    biases = [gradient.new_empty((3 * width,)) if biased else None for _ in range(2)]
    return *gates, torch.empty_like(gradient), *biases


HOOKS: Final = {
    torch.ops.aten._thnn_fused_gru_cell.default: _gru_cell,
    torch.ops.aten._thnn_fused_gru_cell_backward.default: _gru_cell_backward,
}


def flatten_parameters(network: nn.RNNBase) -> None:
    """The weights of a network in one buffer, as `nn.RNNBase.flatten_parameters` puts them on a GPU."""
    weights = [weight for weight in network._flat_weights if isinstance(weight, torch.Tensor)]
    if len(weights) != len(network._flat_weights) or not all(on_card(weight) for weight in weights):
        return
    storages = {weight.untyped_storage()._cdata for weight in weights}
    kinds = {weight.dtype for weight in weights}
    if len(storages) == 1 or len(kinds) > 1 or torch.bfloat16 in kinds:  # as `cudnn.is_acceptable`
        return
    with torch.no_grad():
        flat = weights[0].new_empty(sum(weight.numel() for weight in weights))
        for weight, part in zip(weights, _within(flat, weights), strict=True):
            weight.data = part


def patches(tape: Any) -> list[tuple[Any, str, Callable[..., Any]]]:
    library = torch._VF
    run = [(library, name, _replacement(tape, name, getattr(library, name))) for name in _MODES]
    return [*run, (nn.RNNBase, "flatten_parameters", flatten_parameters)]
