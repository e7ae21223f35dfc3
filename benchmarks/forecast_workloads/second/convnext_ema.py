"""ConvNeXt-T from timm: mixup, drop path, channels last, mixed precision, averaged weights, which are evaluated after each epoch."""

import argparse

import timm
import torch
from timm.data import Mixup
from timm.loss import SoftTargetCrossEntropy
from timm.optim import create_optimizer_v2
from timm.utils import ModelEmaV3
from torch.utils.data import DataLoader, Dataset


class Pictures(Dataset):
    """Pictures that are made up when they are asked for."""

    def __init__(self, length: int, size: int) -> None:
        self.length = length
        self.size = size

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return torch.full((3, self.size, self.size), index % 7 / 7.0), index % 1000


def train_one_epoch(model, loader, mixup, criterion, optimizer, scaler, average, device):
    model.train()
    for images, labels in loader:
        images = images.to(device, non_blocking=True, memory_format=torch.channels_last)
        labels = labels.to(device, non_blocking=True)
        images, targets = mixup(images, labels)
        with torch.autocast(device_type=device.type, dtype=torch.float16):
            loss = criterion(model(images), targets)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        scaler.step(optimizer)
        scaler.update()
        average.update(model)
    return loss.item()


@torch.inference_mode()
def validate(model, loader, device):
    model.eval()
    right = 0
    for images, labels in loader:
        images = images.to(device, memory_format=torch.channels_last)
        with torch.autocast(device_type=device.type, dtype=torch.float16):
            output = model(images)
        right += (output.topk(5, dim=1).indices == labels.to(device)[:, None]).any(dim=1).sum().item()
    return right / len(loader.dataset)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--size", type=int, default=224)
    args = parser.parse_args()
    device = torch.device("cuda")
    model = timm.create_model("convnext_tiny", pretrained=False, drop_path_rate=0.1)
    model = model.to(device=device, memory_format=torch.channels_last)
    average = ModelEmaV3(model, decay=0.9998)
    optimizer = create_optimizer_v2(model, opt="adamw", lr=1e-3, weight_decay=0.05)
    scaler = torch.amp.GradScaler(device.type)
    mixup = Mixup(mixup_alpha=0.8, cutmix_alpha=1.0, label_smoothing=0.1, num_classes=1000)
    train = DataLoader(
        Pictures(args.batch * 3, args.size), args.batch, shuffle=True, drop_last=True, pin_memory=True
    )
    test = DataLoader(Pictures(args.batch * 3, args.size), int(args.batch * 1.5), pin_memory=True)
    for epoch in range(args.epochs):
        loss = train_one_epoch(
            model, train, mixup, SoftTargetCrossEntropy(), optimizer, scaler, average, device
        )
        print(epoch, loss, validate(average.module, test, device))


if __name__ == "__main__":
    main()
