"""CLIP-style training of two towers: a vision transformer of timm and a text transformer with checkpointed blocks, in bfloat16."""

import argparse
import math

import timm
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint


class TextBlock(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(width)
        self.attn = nn.MultiheadAttention(width, heads, batch_first=True)
        self.ln_2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, width * 4), nn.GELU(), nn.Linear(width * 4, width))

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        y = self.ln_1(x)
        x = x + self.attn(y, y, y, need_weights=False, attn_mask=mask)[0]
        return x + self.mlp(self.ln_2(x))


class TextTower(nn.Module):
    def __init__(self, words: int = 49408, context: int = 77, width: int = 512, layers: int = 12) -> None:
        super().__init__()
        self.token = nn.Embedding(words, width)
        self.position = nn.Parameter(torch.randn(context, width) * 0.01)
        self.blocks = nn.ModuleList([TextBlock(width, width // 64) for _ in range(layers)])
        self.final = nn.LayerNorm(width)
        self.projection = nn.Parameter(torch.randn(width, 512) * width**-0.5)
        mask = torch.full((context, context), float("-inf")).triu_(1)
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        x = self.token(text) + self.position
        for block in self.blocks:
            x = checkpoint(block, x, self.mask, use_reentrant=False)
        x = self.final(x)
        return x[torch.arange(x.shape[0], device=x.device), text.argmax(dim=-1)] @ self.projection


class Clip(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.visual = timm.create_model("vit_small_patch16_224", pretrained=False, num_classes=512)
        self.text = TextTower()
        self.logit_scale = nn.Parameter(torch.tensor(math.log(1 / 0.07)))

    def forward(self, images: torch.Tensor, text: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        image_features = F.normalize(self.visual(images), dim=-1)
        text_features = F.normalize(self.text(text), dim=-1)
        logits = self.logit_scale.exp() * image_features @ text_features.t()
        return logits, logits.t()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--steps", type=int, default=4)
    args = parser.parse_args()
    device = "cuda"
    model = Clip().to(device)
    decay = [p for p in model.parameters() if p.ndim >= 2]
    others = [p for p in model.parameters() if p.ndim < 2]
    optimizer = torch.optim.AdamW(
        [{"params": decay, "weight_decay": 0.2}, {"params": others, "weight_decay": 0.0}],
        lr=5e-4, betas=(0.9, 0.98), eps=1e-6, fused=True,
    )  # fmt: skip
    for step in range(args.steps):
        images = torch.rand(args.batch, 3, 224, 224).to(device, non_blocking=True)
        text = torch.randint(1, 49400, (args.batch, 77)).to(device, non_blocking=True)
        with torch.autocast(device, dtype=torch.bfloat16):
            per_image, per_text = model(images, text)
            labels = torch.arange(args.batch, device=device)
            loss = (F.cross_entropy(per_image, labels) + F.cross_entropy(per_text, labels)) / 2
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        with torch.no_grad():
            model.logit_scale.clamp_(0, math.log(100))
            accuracy = (per_image.argmax(dim=1) == labels).float().mean()
        print(step, loss.item(), accuracy.item())


if __name__ == "__main__":
    main()
