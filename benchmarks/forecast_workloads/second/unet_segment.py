"""Segmentation with a U-Net: transposed convolutions, a bilinear second output, Dice and cross entropy, RMSprop, mixed precision."""

import argparse
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset, random_split
from tqdm import tqdm


class Slices(Dataset):
    def __init__(self, length: int, size: int, classes: int) -> None:
        self.length, self.size, self.classes = length, size, classes

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        rows = torch.arange(self.size)
        mask = ((rows[:, None] + rows[None, :] + index) // 64) % self.classes
        image = mask[None].repeat(3, 1, 1).float() / self.classes
        return {"image": image, "mask": mask}


class DoubleConv(nn.Sequential):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(
            nn.Conv2d(inputs, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(inplace=True),
            nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(inplace=True),
        )


class Up(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.up = nn.ConvTranspose2d(inputs, outputs, 2, stride=2)
        self.conv = DoubleConv(inputs, outputs)

    def forward(self, low: torch.Tensor, skip: torch.Tensor) -> torch.Tensor:
        x = self.up(low)
        dy, dx = skip.size(2) - x.size(2), skip.size(3) - x.size(3)
        x = F.pad(x, [dx // 2, dx - dx // 2, dy // 2, dy - dy // 2])
        return self.conv(torch.cat([skip, x], dim=1))


class UNet(nn.Module):
    def __init__(self, classes: int) -> None:
        super().__init__()
        widths = (64, 128, 256, 512, 1024)
        self.stem = DoubleConv(3, widths[0])
        self.down = nn.ModuleList([DoubleConv(a, b) for a, b in pairwise(widths)])
        self.up = nn.ModuleList([Up(b, a) for b, a in pairwise(widths[::-1])])
        self.out = nn.Conv2d(widths[0], classes, 1)
        self.deep = nn.Conv2d(widths[2], classes, 1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        found = [self.stem(x)]
        for layer in self.down:
            found.append(layer(F.max_pool2d(found[-1], 2)))
        y = found.pop()
        for depth, layer in enumerate(self.up):
            y = layer(y, found.pop())
            if depth == 1:
                deep = F.interpolate(self.deep(y), size=x.shape[2:], mode="bilinear", align_corners=False)
        return self.out(y), deep


def dice(probabilities: torch.Tensor, target: torch.Tensor, smooth: float = 1e-6) -> torch.Tensor:
    inter = 2 * (probabilities * target).sum(dim=(-1, -2))
    total = probabilities.sum(dim=(-1, -2)) + target.sum(dim=(-1, -2))
    return ((inter + smooth) / (total + smooth)).mean()


def loss_of(logits: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    hot = F.one_hot(mask, logits.shape[1]).permute(0, 3, 1, 2).float()
    return F.cross_entropy(logits, mask) + 1 - dice(F.softmax(logits, dim=1).float(), hot)


@torch.inference_mode()
def evaluate(model: nn.Module, loader: DataLoader, device: torch.device, amp: bool) -> float:
    model.eval()
    score = 0.0
    with torch.autocast(device.type, enabled=amp, dtype=torch.float16):
        for batch in tqdm(loader, desc="Validation", leave=False, disable=None):
            mask = batch["mask"].to(device)
            predicted = model(batch["image"].to(device))[0].argmax(dim=1)
            hot = [F.one_hot(one, loader.classes).permute(0, 3, 1, 2).float() for one in (predicted, mask)]
            score += dice(hot[0][:, 1:], hot[1][:, 1:]).item()
    model.train()
    return score / max(len(loader), 1)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--size", type=int, default=480)
    parser.add_argument("--classes", type=int, default=5)
    parser.add_argument("--no-amp", dest="amp", action="store_false")
    args = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    data = Slices(args.batch * 6, args.size, args.classes)
    train_set, test_set = random_split(data, [args.batch * 4, args.batch * 2])
    train = DataLoader(train_set, batch_size=args.batch, shuffle=True, pin_memory=True)
    test = DataLoader(test_set, batch_size=args.batch, drop_last=True)
    test.classes = args.classes
    model = UNet(args.classes).to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.RMSprop(
        model.parameters(), lr=1e-5, weight_decay=1e-8, momentum=0.999, foreach=True
    )
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, "max", patience=5)
    scaler = torch.amp.GradScaler(device.type, enabled=args.amp)
    for epoch in range(args.epochs):
        epoch_loss = 0.0
        for batch in tqdm(train, desc=f"Epoch {epoch}", disable=None):
            images = batch["image"].to(device, dtype=torch.float32, memory_format=torch.channels_last)
            masks = batch["mask"].to(device, dtype=torch.long)
            with torch.autocast(device.type, enabled=args.amp, dtype=torch.float16):
                logits, deep = model(images)
                loss = loss_of(logits, masks) + 0.4 * loss_of(deep, masks)
            optimizer.zero_grad(set_to_none=True)
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            epoch_loss += loss.item()
        score = evaluate(model, test, device, args.amp)
        scheduler.step(score)
        print(epoch, epoch_loss, score)


if __name__ == "__main__":
    main()
