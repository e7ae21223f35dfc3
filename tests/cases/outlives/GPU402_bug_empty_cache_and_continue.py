import torch
from torchvision.models.detection import maskrcnn_resnet50_fpn


def train_epoch(loader, opt, scaler):
    model = maskrcnn_resnet50_fpn(num_classes=5).cuda()
    running = 0.0
    for images, targets in loader:
        try:
            images = [im.cuda() for im in images]
            targets = [{k: v.cuda() for k, v in t.items()} for t in targets]
            with torch.autocast("cuda"):
                loss = sum(model(images, targets).values())
            opt.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(opt)
            scaler.update()
        except RuntimeError as e:
            if "out of memory" in str(e).lower():
                print("[OOM] reduce the image size")
                torch.cuda.empty_cache()  # low: GPU402
                continue
            raise
        running += loss.item()
    return running / len(loader)
