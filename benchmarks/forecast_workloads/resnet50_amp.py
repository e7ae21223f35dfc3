"""ResNet-50 in mixed precision, channels last, with a gradient scaler."""

import argparse

import torch
import torchvision


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--steps", type=int, default=5)
    args = parser.parse_args()
    model = torchvision.models.resnet50().cuda().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    scaler = torch.amp.GradScaler("cuda")
    criterion = torch.nn.CrossEntropyLoss(label_smoothing=0.1)
    for step in range(args.steps):
        images = torch.randn(args.batch, 3, 224, 224).cuda(non_blocking=True)
        images = images.contiguous(memory_format=torch.channels_last)
        labels = torch.randint(0, 1000, (args.batch,)).cuda()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = criterion(model(images), labels)
        optimizer.zero_grad(set_to_none=True)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        print(step, loss.item())


if __name__ == "__main__":
    main()
