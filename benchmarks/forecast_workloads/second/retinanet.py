"""RetinaNet of torchvision on pictures of several sizes: anchors are matched to boxes, the focal loss is taken of all of them."""

import argparse

import torch
from torch.utils.data import DataLoader, Dataset
from torchvision.models.detection import retinanet_resnet50_fpn


class Scenes(Dataset):
    """Pictures of varying shapes with one to twelve boxes each."""

    def __init__(self, length: int, shortest: int) -> None:
        self.length = length
        self.shortest = shortest

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        chance = torch.Generator().manual_seed(index)
        height, width = torch.randint(self.shortest, self.shortest * 3 // 2, (2,), generator=chance).tolist()
        count = int(torch.randint(1, 13, (1,), generator=chance))
        corner = torch.rand(count, 2, generator=chance) * 0.6
        extent = torch.rand(count, 2, generator=chance) * 0.35 + 0.04
        scale = torch.tensor([width, height])
        boxes = torch.cat([corner * scale, (corner + extent) * scale], dim=1)
        labels = torch.randint(1, 91, (count,), generator=chance)
        return torch.rand(3, height, width, generator=chance), {"boxes": boxes, "labels": labels}


def collate(items):
    return tuple(zip(*items, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--size", type=int, default=640)
    args = parser.parse_args()
    device = torch.device("cuda")
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.manual_seed(0)
    model = retinanet_resnet50_fpn(
        weights=None, weights_backbone=None, num_classes=91, min_size=args.size, max_size=args.size * 5 // 3
    )
    model.to(device)
    params = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(params, lr=0.005, momentum=0.9, weight_decay=1e-4, nesterov=True)
    warmup = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.001, total_iters=100)
    loader = DataLoader(Scenes(args.batch * args.steps, args.size * 3 // 4), args.batch, collate_fn=collate)
    model.train()
    for step, (images, targets) in enumerate(loader):
        images = [image.to(device) for image in images]
        targets = [{k: v.to(device) for k, v in target.items()} for target in targets]
        losses = model(images, targets)
        total = sum(losses.values())
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
        warmup.step()
        print(step, {name: value.item() for name, value in losses.items()})


if __name__ == "__main__":
    main()
