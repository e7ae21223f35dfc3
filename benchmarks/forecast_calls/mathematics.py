"""Elementwise functions, reductions, scans, sorting, complex numbers and Fourier transforms, linear algebra."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from forecast_calls.calls import BF16, F32, KINDS, Call, each, floats, plain, said, trained, whole

GRID = (2048, 2048)
UNARY: dict[str, Callable[[Any], Any]] = {
    "exp": torch.exp, "log": lambda x: (x.abs() + 1).log(), "sqrt": lambda x: (x.abs() + 1).sqrt(), "rsqrt": lambda x: (x * x + 1).rsqrt(),
    "pow 2": lambda x: x**2, "pow 3": lambda x: x.pow(3.0), "square": torch.square, "abs": torch.abs, "sin": torch.sin, "erf": torch.erf,
    "clamp": lambda x: x.clamp(-1, 1), "clamp_min": lambda x: x.clamp_min(0), "where": lambda x: torch.where(x > 0, x, 0.1 * x),
    "masked_fill": lambda x: x.masked_fill(x > 0, 0.0), "reciprocal": lambda x: 1 / (x.abs() + 1), "round ste": lambda x: x + (x.round() - x).detach(),
    "tril": torch.tril, "flip": lambda x: x.flip(-1), "roll": lambda x: x.roll(1, -1), "cat": lambda x: torch.cat([x, x], -1),
    "stack": lambda x: torch.stack([x, x]), "chunk": lambda x: x.chunk(2, -1)[0] * x.chunk(2, -1)[1], "split": lambda x: sum(x.split(512, -1)),
    "unbind": lambda x: sum(x.view(4, 512, -1).unbind(0)), "repeat": lambda x: x.repeat(2, 1), "expand": lambda x: x.unsqueeze(0).expand(4, -1, -1) * 2,
    "repeat_interleave": lambda x: x.repeat_interleave(2, 0), "transposed": lambda x: x.t().contiguous(), "slice": lambda x: x[:, ::2] * 1,
    "rotary": lambda x: torch.cat([-x[..., 1024:], x[..., :1024]], -1) * x.cos(), "lerp": lambda x: torch.lerp(x, x.detach(), 0.5),
    "addcmul": lambda x: torch.addcmul(x, x.detach(), x), "add scalar": lambda x: x + 1.0, "maximum": lambda x: torch.maximum(x, x.detach()),
    "scale by row": lambda x: x * x[:, :1], "add by column": lambda x: x + x[:1], "nan_to_num": torch.nan_to_num, "logaddexp": lambda x: torch.logaddexp(x, x.detach()),
    "outer": lambda x: torch.outer(x[0], x[1]), "float and back": lambda x: x.float().mul(2).to(x.dtype), "index by list": lambda x: x[[0, 5, 9]],
    "to complex": lambda x: torch.view_as_real(torch.polar(x.float(), x.float())), "diff": torch.diff, "unfold": lambda x: x.unfold(1, 400, 160) * 1,
}  # fmt: skip
REDUCTIONS: dict[str, Callable[[Any], Any]] = {
    "sum": torch.sum, "sum rows": lambda x: x.sum(-1), "sum columns": lambda x: x.sum(0), "mean": torch.mean, "mean rows": lambda x: x.mean(-1, keepdim=True),
    "mean columns": lambda x: x.mean(0), "max": torch.max, "max rows": lambda x: x.max(-1)[0], "max columns": lambda x: x.max(0)[0], "min": torch.min,
    "amax": lambda x: x.amax(-1), "amax columns": lambda x: x.amax(0), "var": torch.var, "var rows": lambda x: x.var(-1), "var columns": lambda x: x.var(0),
    "std": torch.std, "std columns": lambda x: x.std(0), "norm": torch.norm, "norm rows": lambda x: x.norm(dim=-1), "vector_norm": torch.linalg.vector_norm,
    "logsumexp": lambda x: x.logsumexp(-1), "logsumexp columns": lambda x: x.logsumexp(0), "prod": lambda x: (1 + 1e-4 * x).prod(-1), "median": lambda x: x.median(-1)[0],
    "var_mean": lambda x: torch.var_mean(x, -1), "cumsum": lambda x: x.cumsum(-1), "cumsum columns": lambda x: x.cumsum(0), "cumsum flat": lambda x: x.flatten().cumsum(0),
    "cumprod": lambda x: (1 + 1e-4 * x).cumprod(-1), "cummax": lambda x: x.cummax(-1)[0], "logcumsumexp": lambda x: x.logcumsumexp(-1),
    "sort": lambda x: x.sort(-1)[0], "sort columns": lambda x: x.sort(0)[0], "sort flat": lambda x: x.flatten().sort()[0], "topk": lambda x: x.topk(50)[0],
    "topk 1": lambda x: x.topk(1)[0], "topk flat": lambda x: x.flatten().topk(1000)[0], "kthvalue": lambda x: x.kthvalue(5, -1)[0],
}  # fmt: skip
WITHOUT: dict[str, Callable[[Any], Any]] = {
    "argmax": lambda x: x.argmax(-1), "argmax flat": torch.argmax, "argmin": lambda x: x.argmin(-1), "argsort": lambda x: x.argsort(-1),
    "argsort flat": lambda x: x.flatten().argsort(), "isnan any": lambda x: x.isnan().any(), "isfinite all": lambda x: x.isfinite().all(),
    "equal count": lambda x: (x.argmax(-1) == 1).float().mean(), "histc": lambda x: x.float().histc(100), "bucketize": lambda x: torch.bucketize(x, torch.linspace(-3, 3, 100, device="cuda").to(x.dtype)),
    "quantile": lambda x: x[:64].float().quantile(0.9), "multinomial": lambda x: x.softmax(-1).multinomial(1), "multinomial many": lambda x: x.softmax(-1).multinomial(64, replacement=True),
    "bernoulli": lambda x: x.sigmoid().bernoulli(), "randn_like": torch.randn_like, "rand_like": torch.rand_like, "exponential": lambda x: torch.empty_like(x).exponential_(),
    "randperm": lambda _: torch.randperm(100_000, device="cuda"), "randperm small": lambda _: torch.randperm(1000, device="cuda"), "nonzero": lambda x: (x > 0).nonzero(), "where index": lambda x: torch.where(x > 0),
    "masked select": lambda x: x[x > 0], "unique": lambda x: (x[:64] * 3).int().unique(), "unique counts": lambda x: (x[:64] * 3).int().unique(return_counts=True, return_inverse=True),
    "bincount": lambda x: (x[:64].float().abs() * 10).int().flatten().bincount(minlength=100), "count_nonzero": lambda x: (x > 0).count_nonzero(), "sum of mask": lambda x: (x > 0).sum(),
    "sum of mask rows": lambda x: (x > 0).sum(-1), "isin": lambda x: torch.isin((x[:64] * 3).int(), torch.arange(5, device="cuda", dtype=torch.int32)), "searchsorted": lambda x: torch.searchsorted(x.sort(-1)[0], x), "cumsum whole": lambda x: (x > 0).cumsum(-1), "cumsum whole flat": lambda x: (x > 0).flatten().cumsum(0),
}  # fmt: skip


def fourier() -> list[Call]:
    window = 1024

    def stft(x: torch.Tensor) -> torch.Tensor:
        return torch.stft(
            x, window, 256, window=torch.hann_window(window, device="cuda"), return_complex=True
        )

    def mel(x: torch.Tensor) -> torch.Tensor:
        power = stft(x).abs().pow(2.0)
        return (torch.ones(80, window // 2 + 1, device="cuda") @ power).clamp_min(1e-5).log()

    def back(x: torch.Tensor) -> torch.Tensor:
        return torch.istft(stft(x), window, 256, window=torch.hann_window(window, device="cuda"))

    def mixed(x: torch.Tensor) -> torch.Tensor:
        return torch.fft.ifft2(torch.fft.fft2(x) * 0.5).real

    def spectral(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        found = torch.fft.rfft2(x)
        out = torch.zeros_like(found)
        out[:, :, :12, :12] = torch.einsum("bixy,ioxy->boxy", found[:, :, :12, :12], torch.view_as_complex(w))
        return torch.fft.irfft2(out, s=x.shape[-2:])

    return [
        *each("stft", lambda x: stft(x).abs(), (16, 32000), (16, 30001), kinds=(F32,)),
        *each("mel", mel, (16, 32000), kinds=(F32,)),
        *each("istft", back, (16, 32000), kinds=(F32,)),
        *each("fft2 and back", mixed, (16, 32, 64, 64), kinds=(F32,)),
        *each("rfft and back", lambda x: torch.fft.irfft(torch.fft.rfft(x), n=x.shape[-1]), (16, 64, 4096), kinds=(F32,)),
        *each("fft of a prime length", lambda x: torch.fft.fft(x).abs(), (64, 4999), kinds=(F32,)),
        trained("spectral convolution", lambda: (spectral, (floats(16, 32, 64, 64), floats(32, 32, 12, 12, 2)))),
        trained("complex product", lambda: (lambda a, b: (torch.view_as_complex(a) * torch.view_as_complex(b)).abs(), (floats(1024, 512, 2), floats(1024, 512, 2)))),
    ]  # fmt: skip


def algebra() -> list[Call]:
    def definite(x: torch.Tensor) -> torch.Tensor:
        return x @ x.mT + 10 * torch.eye(x.shape[-1], device=x.device)

    cases: dict[str, tuple[Callable[..., Any], tuple[int, ...]]] = {
        "svd": (lambda x: torch.linalg.svdvals(x), (256, 256)), "svd batched": (lambda x: torch.linalg.svdvals(x), (64, 16, 16)),
        "svd full": (lambda x: torch.linalg.svd(x, full_matrices=False)[1], (512, 128)), "eigh": (lambda x: torch.linalg.eigh(x + x.mT)[0], (256, 256)),
        "eigh batched": (lambda x: torch.linalg.eigh(x + x.mT)[0], (64, 16, 16)), "qr": (lambda x: torch.linalg.qr(x)[1], (256, 128)),
        "inv": (lambda x: torch.linalg.inv(definite(x)), (256, 256)), "inv batched": (lambda x: torch.linalg.inv(definite(x)), (512, 4, 4)),
        "solve": (lambda x: torch.linalg.solve(definite(x), x), (256, 256)), "cholesky": (lambda x: torch.linalg.cholesky(definite(x)), (256, 256)),
        "cholesky batched": (lambda x: torch.linalg.cholesky(definite(x)), (64, 32, 32)), "slogdet": (lambda x: torch.linalg.slogdet(definite(x))[1], (64, 64)),
        "logdet": (lambda x: torch.logdet(definite(x)), (256, 256)), "det batched": (lambda x: torch.linalg.det(x), (512, 3, 3)), "pinv": (lambda x: torch.linalg.pinv(x), (128, 64)),
        "matrix_exp": (lambda x: torch.linalg.matrix_exp(x * 0.01), (64, 64)), "triangular": (lambda x: torch.linalg.solve_triangular(definite(x).tril(), x, upper=False), (256, 256)),
        "lstsq": (lambda x: torch.linalg.lstsq(definite(x), x).solution, (128, 128)), "matrix_norm": (lambda x: torch.linalg.matrix_norm(x), (512, 512)), "cov": (lambda x: torch.cov(x.t()), (1024, 128)),
    }  # fmt: skip
    return [
        trained(f"linalg {name}", lambda r=run, s=shape: (r, (floats(*s),)))
        for name, (run, shape) in cases.items()
    ]


CALLS = [
    *[call for name, run in UNARY.items() for call in each(name, run, GRID)],
    *[call for name, run in REDUCTIONS.items() for call in each(name, run, GRID, (64, 1000), kinds=(F32,))],
    *[call for name, run in REDUCTIONS.items() for call in each(name, run, GRID, kinds=(BF16,))],
    *[call for name in ("sum", "sum columns", "mean rows", "var columns") for call in each(name, REDUCTIONS[name], (64, 65536), (100_000, 64))],
    *[plain(f"{name} {said(kind)}", lambda r=run, k=kind: (r, (floats(*GRID, kind=k, grad=False),))) for name, run in WITHOUT.items() for kind in KINDS],
    *each("sum of four dimensions", lambda x: x.sum((0, 2, 3)), (32, 64, 112, 112), (16, 512, 14, 14)),
    *each("var_mean of four dimensions", lambda x: sum(torch.var_mean(x, (0, 2, 3))), (32, 64, 56, 56)),
    *each("sum of three dimensions", lambda x: x.sum((0, 1)), (16, 512, 768)),
    *each("mean of sequence", lambda x: x.mean(1), (16, 512, 768)),
    plain("sort whole numbers", lambda: (torch.sort, (whole(1000, 1_000_000),))),
    plain("sort whole numbers of 32 bits", lambda: (torch.sort, (whole(1000, 1_000_000).int(),))),
    plain("sort rows of whole numbers", lambda: (lambda x: x.sort(-1), (whole(1000, 64, 20_000),))),
    plain("sort long rows", lambda: (lambda x: x.sort(-1), (floats(8, 500_000, grad=False),))),
    plain("topk long rows", lambda: (lambda x: x.topk(1000, -1), (floats(8, 500_000, grad=False),))),
    plain("topk vocabulary", lambda: (lambda x: x.topk(50, -1), (floats(16, 50257, grad=False),))),
    plain("unique whole numbers", lambda: (lambda x: x.unique(return_inverse=True, return_counts=True), (whole(1000, 1_000_000),))),
    plain("unique_consecutive", lambda: (lambda x: x.unique_consecutive(return_counts=True), (whole(1000, 100_000).sort()[0],))),
    plain("unique rows", lambda: (lambda x: x.unique(dim=0), (whole(50, 10_000, 2),))),
    plain("bincount whole numbers", lambda: (lambda x: x.bincount(minlength=1000), (whole(1000, 1_000_000),))),
    plain("repeat_interleave by counts", lambda: (lambda x: torch.arange(1000, device="cuda").repeat_interleave(x), (whole(10, 1000),))),
    *fourier(),
    *algebra(),
]  # fmt: skip
