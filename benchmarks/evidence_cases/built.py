"""Cases of GPU505 within networks and losses: tensors of the size of what a network makes, which every forward builds on the
host and moves to the GPU, and the same built there."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from evidence_cases.setup import Case, Setup, Step, variant

CLASSES = 80
KINDS = 21  # of labels, where all are made one-hot at once


def _training(setup: Setup, net: nn.Module, loss_of: Callable[[], Tensor]) -> Step:
    return setup.training_step(torch.optim.SGD(net.parameters(), lr=1e-4), loss_of)


class _Masked(nn.Module):
    """Convolutions over spectrograms as speech recognisers begin with; after each of the six modules, what lies beyond the
    end of a recording is masked."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how = how
        self.parts = nn.Sequential(
            nn.Conv2d(1, 32, (41, 11), (2, 2), (20, 5)), nn.BatchNorm2d(32), nn.Hardtanh(0, 20),
            nn.Conv2d(32, 32, (21, 11), (2, 1), (10, 5)), nn.BatchNorm2d(32), nn.Hardtanh(0, 20),
        )  # fmt: skip

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        beyond = torch.arange((x.size(3) + 1) // 2, device=x.device) >= lengths.to(x.device)[:, None]
        for part in self.parts:
            x = part(x)
            x = x.masked_fill(beyond[:, None, None] if self.how == BROADCAST else self.full(x, lengths), 0)
        return x

    def full(self, x: Tensor, lengths: Tensor) -> Tensor:
        if self.how == HOST:
            mask = torch.BoolTensor(x.size()).fill_(0).to(x.device)
        else:
            mask = torch.zeros_like(x, dtype=torch.bool)
        for i, length in enumerate(lengths.tolist()):
            mask[i].narrow(2, length, mask[i].size(2) - length).fill_(1)
        return mask


HOST = "made on the host, moved"
DEVICE = "made on the device"
BROADCAST = "a row for each recording, broadcast"
EXPANDED = "a row made on the device, expanded"


@variant
def _masks(setup: Setup, how: str) -> Step:
    net = _Masked(how).to(setup.device)
    batch, frames = 4 * setup.size.batch, 4 * setup.size.length
    spectrograms = torch.randn(batch, 1, 161, frames, device=setup.device)
    lengths = torch.linspace(frames // 4, frames // 2, batch).long()
    return _training(setup, net, lambda: net(spectrograms, lengths).pow(2).mean())


class _Stereo(nn.Module):
    """Features of two pictures, set against each other at each of so many shifts: the cost volume, and convolutions over it."""

    def __init__(self, how: str, shifts: int) -> None:
        super().__init__()
        self.how, self.shifts = how, shifts
        self.features = nn.Conv2d(3, 32, 3, padding=1)
        self.over = nn.Sequential(
            nn.Conv3d(64, 32, 3, padding=1), nn.ReLU(), nn.Conv3d(32, 32, 3, padding=1), nn.ReLU(),
            nn.Conv3d(32, 1, 3, padding=1),
        )  # fmt: skip

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        one, other = self.features(left), self.features(right)
        batch, channels, height, width = one.shape
        shape = (batch, 2 * channels, self.shifts, height, width)
        cost = torch.zeros(shape, device="cpu" if self.how == HOST else one.device).to(one.device)
        for i in range(self.shifts):
            cost[:, :channels, i, :, i:] = one[..., i:]
            cost[:, channels:, i, :, i:] = other[..., : width - i]
        out: Tensor = self.over(cost)
        return out


@variant
def _volume(setup: Setup, how: str) -> Step:
    size = setup.size
    net = _Stereo(how, 3 * size.length // 16).to(setup.device)
    shape = (size.batch // 2, 3, size.length // 4, size.length // 2)
    pictures = [torch.randn(shape, device=setup.device) for _ in range(2)]
    return _training(setup, net, lambda: net(*pictures).pow(2).mean())


@variant
def _focal(setup: Setup, how: str) -> Step:
    """A detector's loss: for each picture of a batch targets, weights and zeros for all anchors and classes."""

    size, device = setup.size, setup.device
    anchors = 192 * size.length
    head = nn.Linear(64, CLASSES).to(device)
    features = torch.randn(size.batch // 2, anchors, 64, device=device)
    hit = torch.arange(0, anchors, 100, device=device)

    def made(make: Callable[..., Tensor], like: Tensor) -> Tensor:
        return make(like.shape).to(device) if how == HOST else make(like.shape, device=device)

    def loss_of() -> Tensor:
        losses = []
        for scores in head(features).sigmoid().clamp(1e-4, 1 - 1e-4):
            targets = made(torch.zeros, scores)
            targets[hit, 1] = 1
            weight = made(torch.ones, targets) * 0.25
            weight = torch.where(targets == 1, weight, 1 - weight)
            loss = weight * F.binary_cross_entropy(scores, targets, reduction="none")
            losses.append(torch.where(targets != -1, loss, made(torch.zeros, loss)).sum())
        return torch.stack(losses).mean()

    return _training(setup, head, loss_of)


@variant
def _one_hot(setup: Setup, how: str) -> Step:
    size, device = setup.size, setup.device
    labels = torch.randint(0, KINDS, (256 * size.batch * size.length,), device=device)
    head = nn.Linear(64, KINDS).to(device)
    features = torch.randn(len(labels), 64, device=device)

    def loss_of() -> Tensor:
        if how == HOST:
            targets = torch.eye(KINDS)[labels.cpu()].to(device)
        else:
            targets = torch.eye(KINDS, device=device)[labels]
        return F.binary_cross_entropy_with_logits(head(features), targets)

    return _training(setup, head, loss_of)


@variant
def _index(setup: Setup, how: str) -> Step:
    """Three layers which gather along time with an index of the size of their values: batch x heads x channels x time."""

    size = setup.size
    values = torch.randn(2 * size.batch, size.heads, 64, size.length, device=setup.device)
    scale = nn.Linear(size.length, size.length).to(setup.device)
    rows, device = (*values.shape[:3], 1), setup.device
    ways: dict[str, Callable[[], Tensor]] = {
        HOST: lambda: torch.arange(size.length)[None, None, None].repeat(rows).to(device),
        DEVICE: lambda: torch.arange(size.length, device=device)[None, None, None].repeat(rows),
        EXPANDED: lambda: torch.arange(size.length, device=device).expand(values.shape),
    }

    def loss_of() -> Tensor:
        out = values
        for _ in range(3):
            out = torch.gather(scale(out).repeat(1, 1, 1, 2), -1, ways[how]() + 1)
        return out.pow(2).mean()

    return _training(setup, scale, loss_of)


CAST: dict[str, Callable[[Tensor, str], Tensor]] = {
    "moved, then made float": lambda batch, device: batch.to(device).float(),
    "made float, then moved": lambda batch, device: batch.float().to(device),
}


@variant
def _cast(setup: Setup, how: str) -> Step:
    """A batch of pictures that a data set has made float64."""

    size = setup.size
    batch = torch.randn(size.batch // 2, 3, 2 * size.length, 2 * size.length, dtype=torch.float64)
    net = nn.Sequential(nn.Conv2d(3, 32, 3, stride=2), nn.ReLU(), nn.Conv2d(32, 32, 3, stride=2))
    net.to(setup.device)
    return _training(setup, net, lambda: net(CAST[how](batch, setup.device)).pow(2).mean())


REPEATED: dict[str, Callable[[Tensor, int, str], Tensor]] = {
    "repeated, then moved": lambda features, times, device: features.repeat(times, 1, 1).to(device),
    "moved, then repeated": lambda features, times, device: features.to(device).repeat(times, 1, 1),
    "moved, then expanded": lambda features, times, device: features.to(device).expand(times, -1, -1),
}


@variant
def _copies(setup: Setup, how: str, times: int) -> Step:
    """An evaluation in which each picture's features are seen by a network beside `times` candidates."""
    width, length = setup.size.width, setup.size.length
    net = nn.TransformerEncoderLayer(width, setup.size.heads, batch_first=True).to(setup.device).eval()
    features = torch.randn(length, width)

    @torch.no_grad()
    def step() -> None:
        net(REPEATED[how](features, times, setup.device)).argmax().item()

    return step


@variant
def _noise(setup: Setup, how: str) -> Step:
    """A training whose noise, a matrix as large as a layer's weights, is drawn anew in each step."""
    model, optimizer = setup.mlp_in_training()
    width = setup.size.mlp_width
    noise = torch.zeros(width, width, device=setup.device)

    def draw(device: str) -> Tensor:
        rows, columns = torch.randn(width, device=device), torch.randn(width, device=device)
        return rows.ger(columns)

    def step() -> None:
        loss = (model(setup.features()) @ noise).pow(2).mean()
        setup.update(optimizer, loss)
        noise.copy_(draw("cpu" if how == HOST else setup.device))

    return step


class _Padded(nn.Module):
    """An encoder of sequences of several lengths: what each of its LSTMs gives is padded to the length of the masks."""

    def __init__(self, how: str, width: int) -> None:
        super().__init__()
        self.how = how
        self.layers = nn.ModuleList(
            nn.LSTM(width, width // 2, batch_first=True, bidirectional=True) for _ in range(4)
        )

    def forward(self, x: Tensor, lengths: Tensor, longest: int) -> Tensor:
        for layer in self.layers:
            packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
            out, _ = nn.utils.rnn.pad_packed_sequence(layer(packed)[0], batch_first=True)
            shape = (out.shape[0], longest, out.shape[2])
            padded = torch.zeros(shape, device="cpu" if self.how == HOST else out.device)
            padded[:, : out.shape[1]] = out
            x = padded.to(out.device)
        return x


@variant
def _padding(setup: Setup, how: str) -> Step:
    size, longest = setup.size, 2 * setup.size.length
    net = _Padded(how, size.width).to(setup.device)
    sequences = torch.randn(size.batch, longest, size.width, device=setup.device)
    lengths = torch.linspace(longest // 4, longest - 2, size.batch).long()
    return _training(setup, net, lambda: net(sequences, lengths, longest).pow(2).mean())


CASES = [
    Case("GPU505", title, {how: make(how) for how in (HOST, DEVICE, *further)})
    for title, make, further in (
        ("masks of full size in six modules of a forward", _masks, (BROADCAST,)),
        ("a cost volume in a forward", _volume, ()),
        ("targets, weights and zeros for each picture in a loss", _focal, ()),
        ("one-hot labels of all anchors in a loss", _one_hot, ()),
        ("what four LSTMs give, padded", _padding, ()),
        ("an index of full size in three layers", _index, (EXPANDED,)),
    )
]
CASES += [
    Case(
        "GPU505",
        f"an evaluation of {times} candidates a picture",
        {how: _copies(how, times) for how in REPEATED},
    )
    for times in (16, 128)
]
CASES.append(Case("GPU505", "noise copied into a buffer", {how: _noise(how) for how in (HOST, DEVICE)}))
CASES.append(Case("GPU505", "a batch of float64", {how: _cast(how) for how in CAST}))
