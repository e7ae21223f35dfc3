"""Recurrent networks and cells."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from forecast_calls.calls import BF16, F16, F32, Call, Made, floats, of, on_card, trained

# inputs, hidden, layers, batch, length, both ways
SIZES = [
    (128, 256, 1, 32, 50, False), (300, 512, 2, 64, 100, True), (256, 1024, 2, 20, 35, False), (80, 320, 3, 16, 400, True),
    (64, 64, 1, 256, 20, False), (512, 512, 1, 1, 128, False), (32, 2048, 1, 128, 16, False),
]  # fmt: skip


def network(name: str, size: tuple[Any, ...], kind: torch.dtype, **options: Any) -> Made:
    inputs, hidden, layers, batch, length, both = size
    module = getattr(nn, name)(inputs, hidden, layers, bidirectional=both, batch_first=True, **options)
    return on_card(module, kind), (floats(batch, length, inputs, kind=kind),)


def packed(name: str, size: tuple[Any, ...], kind: torch.dtype) -> Made:
    module, inputs = network(name, size, kind)
    *_, batch, length, _ = size
    lengths = torch.linspace(length, max(1, length // 4), batch).long()

    def run(x: torch.Tensor) -> Any:
        out, _ = module(pack_padded_sequence(x, lengths, batch_first=True))
        return pad_packed_sequence(out, batch_first=True)[0]

    return run, inputs


def cells(name: str) -> Made:
    cell = on_card(getattr(nn, name)(128, 256))

    def run(x: torch.Tensor) -> Any:
        state: Any = torch.zeros(64, 256, device="cuda")
        state = (state, state) if name == "LSTMCell" else state
        found = []
        for one in x.unbind(1):
            state = cell(one, state)
            found.append(state[0] if isinstance(state, tuple) else state)
        return torch.stack(found, 1)

    return run, (floats(64, 10, 128),)


def decoding() -> Made:
    """A decoder of one step at a time, its state carried."""
    module = on_card(nn.GRU(128, 256, batch_first=True))

    def run(x: torch.Tensor) -> Any:
        state, found = None, []
        for step in range(x.shape[1]):
            out, state = module(x[:, step : step + 1], state)
            found.append(out)
        return torch.cat(found, 1)

    return run, (floats(32, 8, 128),)


CALLS: list[Call] = [
    *[
        call
        for name, sizes in (("LSTM", SIZES), ("GRU", SIZES[:5]), ("RNN", SIZES[:3]))
        for size in sizes
        for call in of(f"{name} {size}", partial(network, name, size), (F32, F16, BF16))
    ],
    *[trained(f"{name} {SIZES[1]} dropout", lambda n=name: network(n, SIZES[1], F32, dropout=0.2)) for name in ("LSTM", "GRU")],
    *[trained(f"{name} {SIZES[1]} amp", lambda n=name: network(n, SIZES[1], F32), F16) for name in ("LSTM", "GRU")],
    trained("LSTM projected", lambda: network("LSTM", SIZES[0], F32, proj_size=128)),
    trained("RNN relu", lambda: network("RNN", SIZES[0], F32, nonlinearity="relu")),
    trained("LSTM no bias", lambda: network("LSTM", SIZES[0], F32, bias=False)),
    *[
        call
        for name in ("LSTM", "GRU")
        for size in SIZES[:2]
        for call in of(f"packed {name} {size}", partial(packed, name, size), (F32, F16))
    ],
    *[trained(name, lambda n=name: cells(n)) for name in ("LSTMCell", "GRUCell", "RNNCell")],
    trained("GRU step by step", decoding),
]  # fmt: skip
