import torch
from collections import defaultdict
from torchvision.models.detection import fasterrcnn_resnet50_fpn


def train(loader, num_classes, epochs):
    model = fasterrcnn_resnet50_fpn(num_classes=num_classes)
    model.cuda().train()
    params = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(params, lr=0.005, momentum=0.9, weight_decay=5e-4)

    for epoch in range(epochs):
        sums = defaultdict(float)
        for images, targets in loader:
            images = [img.cuda() for img in images]
            targets = [{k: v.cuda() for k, v in t.items()} for t in targets]
            loss_dict = model(images, targets)
            losses = sum(loss for loss in loss_dict.values())
            optimizer.zero_grad()
            losses.backward()
            optimizer.step()
            for k, v in loss_dict.items():
                sums[k] += v  # expect: GPU101
            sums["total"] += losses.item()
        print(epoch, {k: float(v) / len(loader) for k, v in sums.items()})
