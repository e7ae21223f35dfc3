"""Video classification with R(2+1)D-18 of torchvision, TF32, SGD with a fused step; several clips of a video are averaged in evaluation."""

import argparse

import torch
import torchvision
from torch import nn


def clips(count: int, frames: int, size: int) -> torch.Tensor:
    """Videos as they are decoded: bytes, time before the channels."""
    return torch.randint(0, 256, (count, frames, 3, size, size), dtype=torch.uint8)


class Normalize(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor([0.43216, 0.394666, 0.37645]).view(1, 3, 1, 1, 1))
        self.register_buffer("std", torch.tensor([0.22803, 0.22145, 0.216989]).view(1, 3, 1, 1, 1))

    def forward(self, video: torch.Tensor) -> torch.Tensor:
        video = video.permute(0, 2, 1, 3, 4).float() / 255
        return (video - self.mean) / self.std


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--frames", type=int, default=16)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--size", type=int, default=112)
    args = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.allow_tf32 = True
    device = torch.device("cuda:0")
    model = torchvision.models.video.r2plus1d_18(weights=None)
    model.fc = nn.Sequential(nn.Dropout(0.5), nn.Linear(512, 101))
    model = model.to(device)
    normalize = Normalize().to(device)
    criterion = nn.CrossEntropyLoss().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4, fused=True)
    for epoch in range(2):
        model.train()
        for _ in range(args.steps):
            video = clips(args.batch, args.frames, args.size).to(device)
            target = torch.randint(0, 101, (args.batch,)).to(device)
            output = model(normalize(video))
            loss = criterion(output, target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            whole = clips(max(1, args.batch // 4), args.frames * 4, args.size).to(device)
            parts = [model(normalize(part)).softmax(dim=1) for part in whole.split(args.frames, dim=1)]
            predicted = torch.stack(parts).mean(dim=0).argmax(dim=1)
        print(epoch, loss.item(), predicted.tolist()[:4])


if __name__ == "__main__":
    main()
