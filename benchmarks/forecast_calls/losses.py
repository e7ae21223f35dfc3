"""Losses, by their modules and by hand."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

from forecast_calls.calls import BF16, Call, Made, by, floats, of, ones, trained, whole

PAIRS: dict[str, Callable[[], nn.Module]] = {
    "MSELoss": nn.MSELoss, "L1Loss": nn.L1Loss, "SmoothL1Loss": nn.SmoothL1Loss, "HuberLoss": nn.HuberLoss,
    "BCEWithLogitsLoss": nn.BCEWithLogitsLoss, "SoftMarginLoss": nn.SoftMarginLoss, "PoissonNLLLoss": nn.PoissonNLLLoss,
}  # fmt: skip


def pairs() -> list[Call]:
    def made(make: Callable[[], nn.Module], shape: tuple[int, ...], kind: torch.dtype) -> Made:
        return make(), (floats(*shape, kind=kind), ones(*shape, kind=kind))

    found = [
        call
        for name, make in PAIRS.items()
        for shape in ((1024, 1024), (16, 3, 256, 256))
        for call in of(f"{name} {by(shape)}", partial(made, make, shape))
    ]
    big = (1024, 1024)
    return [
        *found,
        trained("MSELoss mixed types", lambda: (F.mse_loss, (floats(*big, kind=BF16), floats(*big, grad=False)))),
        trained("MSELoss none", lambda: (lambda a, b: F.mse_loss(a, b, reduction="none").mean(-1).sum(), (floats(*big), floats(*big, grad=False)))),
        trained("BCELoss", lambda: (lambda a, b: F.binary_cross_entropy(a.sigmoid(), b), (floats(*big), ones(*big)))),
        trained("BCEWithLogits weighted", lambda: (lambda a, b, w: F.binary_cross_entropy_with_logits(a, b, pos_weight=w), (floats(*big), ones(*big), ones(1024)))),
        trained("KLDivLoss", lambda: (lambda a, b: F.kl_div(a.log_softmax(-1), b.softmax(-1), reduction="batchmean"), (floats(4096, 1000), floats(4096, 1000, grad=False)))),
        trained("KLDivLoss log target", lambda: (lambda a, b: F.kl_div(a.log_softmax(-1), b.log_softmax(-1), log_target=True, reduction="batchmean"), (floats(4096, 1000), floats(4096, 1000, grad=False)))),
        trained("distillation", lambda: (distilled, (floats(2048, 1000), floats(2048, 1000, grad=False), whole(1000, 2048)))),
        trained("distillation bf16", lambda: (distilled, (floats(2048, 1000, kind=BF16), floats(2048, 1000, kind=BF16, grad=False), whole(1000, 2048)))),
        trained("GaussianNLLLoss", lambda: (nn.GaussianNLLLoss(), (floats(*big), floats(*big, grad=False), ones(*big)))),
        trained("CosineEmbeddingLoss", lambda: (nn.CosineEmbeddingLoss(), (floats(4096, 256), floats(4096, 256), ones(4096)))),
        trained("cosine_similarity", lambda: (F.cosine_similarity, (floats(4096, 256), floats(4096, 256)))),
        trained("TripletMarginLoss", lambda: (nn.TripletMarginLoss(), (floats(4096, 256), floats(4096, 256), floats(4096, 256)))),
        trained("MarginRankingLoss", lambda: (nn.MarginRankingLoss(0.1), (floats(65536), floats(65536), ones(65536)))),
        trained("HingeEmbeddingLoss", lambda: (nn.HingeEmbeddingLoss(), (floats(*big), ones(*big)))),
        trained("MultiMarginLoss", lambda: (nn.MultiMarginLoss(), (floats(4096, 1000), whole(1000, 4096)))),
        trained("MultiLabelSoftMarginLoss", lambda: (nn.MultiLabelSoftMarginLoss(), (floats(4096, 80), ones(4096, 80)))),
        trained("pairwise_distance", lambda: (F.pairwise_distance, (floats(4096, 256), floats(4096, 256)))),
        trained("cdist", lambda: (torch.cdist, (floats(1024, 64), floats(2048, 64)))),
        trained("cdist small", lambda: (torch.cdist, (floats(8, 20, 64), floats(8, 20, 64)))),
        trained("cdist 1", lambda: (lambda a, b: torch.cdist(a, b, p=1), (floats(256, 4), floats(512, 4)))),
        trained("focal", lambda: (focal, (floats(4096, 80), ones(4096, 80)))),
        trained("dice", lambda: (dice, (floats(8, 4, 128, 128), whole(4, 8, 128, 128)))),
        trained("contrastive", lambda: (contrastive, (floats(512, 128), floats(512, 128)))),
        trained("contrastive amp", lambda: (contrastive, (floats(512, 128), floats(512, 128))), BF16),
        trained("hinge of GAN", lambda: (lambda a, b: F.relu(1 - a).mean() + F.relu(1 + b).mean(), (floats(64, 1, 30, 30), floats(64, 1, 30, 30)))),
    ]  # fmt: skip


def classes() -> list[Call]:
    entropy = F.cross_entropy
    cases: dict[str, Callable[[torch.dtype], Made]] = {
        "pixels": lambda k: (entropy, (floats(8, 21, 256, 256, kind=k), whole(21, 8, 256, 256))),
        "smoothed": lambda k: (partial(entropy, label_smoothing=0.1), (floats(4096, 1000, kind=k), whole(1000, 4096))),
        "of shares": lambda k: (entropy, (floats(4096, 1000, kind=k), ones(4096, 1000, kind=k))),
        "weighted": lambda k: (entropy, (floats(4096, 1000, kind=k), whole(1000, 4096), ones(1000, kind=k))),
        "of float": lambda k: (lambda x, y: entropy(x.float(), y), (floats(2048, 32000, kind=k), whole(32000, 2048))),
    }  # fmt: skip
    for rows, width in ((256, 10), (4096, 1000), (2048, 32000), (8192, 50257)):
        cases[f"{rows}x{width}"] = lambda k, r=rows, w=width: (entropy, (floats(r, w, kind=k), whole(w, r)))  # type: ignore[misc]
    found = [call for name, make in cases.items() for call in of(f"cross_entropy {name}", make)]
    return [
        *found,
        trained("cross_entropy pixels amp", lambda: (F.cross_entropy, (floats(8, 21, 256, 256), whole(21, 8, 256, 256))), torch.float16),
        trained("cross_entropy none", lambda: (lambda x, y: F.cross_entropy(x, y, reduction="none").mean(), (floats(4096, 1000), whole(1000, 4096)))),
        trained("cross_entropy shifted", lambda: (lambda x, y: F.cross_entropy(x[:, :-1].reshape(-1, 8000), y[:, 1:].reshape(-1)), (floats(8, 256, 8000), whole(8000, 8, 256)))),
        trained("nll_loss", lambda: (lambda x, y: F.nll_loss(x.log_softmax(1), y), (floats(4096, 1000), whole(1000, 4096)))),
        trained("nll_loss pixels", lambda: (lambda x, y: F.nll_loss(x.log_softmax(1), y), (floats(8, 21, 128, 128), whole(21, 8, 128, 128)))),
        trained("ctc_loss", lambda: (ctc, (floats(400, 16, 64), whole(63, 16, 50) + 1))),
        trained("ctc_loss lengths on the card", lambda: (ctc_cuda, (floats(400, 16, 64), whole(63, 16, 50) + 1))),
        trained("AdaptiveLogSoftmax", lambda: (lambda m: (lambda x, y: m(x, y).loss, (floats(1024, 256), whole(20000, 1024))))(nn.AdaptiveLogSoftmaxWithLoss(256, 20000, [2000, 10000]).cuda())),
    ]  # fmt: skip


def ctc(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return F.ctc_loss(x.log_softmax(-1), y, torch.full((16,), 400), torch.full((16,), 50))


def ctc_cuda(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    full = torch.full((16,), 400, device="cuda"), torch.full((16,), 50, device="cuda")
    return F.ctc_loss(x.log_softmax(-1), y, *full, zero_infinity=True)


def distilled(student: torch.Tensor, teacher: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    soft = F.kl_div((student / 4).log_softmax(-1), (teacher / 4).softmax(-1), reduction="batchmean") * 16
    return 0.5 * soft + 0.5 * F.cross_entropy(student, labels)


def focal(x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    p = x.sigmoid()
    loss = F.binary_cross_entropy_with_logits(x, target, reduction="none")
    right = p * target + (1 - p) * (1 - target)
    return (loss * (1 - right) ** 2 * (0.25 * target + 0.75 * (1 - target))).sum()


def dice(x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    p = x.softmax(1)
    hot = F.one_hot(target, 4).permute(0, 3, 1, 2).float()
    return 1 - (2 * (p * hot).sum((2, 3)) / ((p + hot).sum((2, 3)) + 1e-6)).mean()


def contrastive(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    logits = F.normalize(a, dim=-1) @ F.normalize(b, dim=-1).t() / 0.07
    labels = torch.arange(a.shape[0], device=a.device)
    return (F.cross_entropy(logits, labels) + F.cross_entropy(logits.t(), labels)) / 2


CALLS = [*pairs(), *classes()]
