import torch
from torchvision.models.segmentation import deeplabv3_resnet50


def evaluate(loader, n_cls=21, device="cuda"):
    net = deeplabv3_resnet50(num_classes=n_cls).to(device).eval()
    hist = torch.zeros(n_cls, n_cls, dtype=torch.long)
    with torch.no_grad():
        for img, mask in loader:
            out = net(img.to(device))["out"]
            pred = out.argmax(1).cpu()  # expect: GPU401
            k = (mask >= 0) & (mask < n_cls)
            hist += torch.bincount(n_cls * mask[k] + pred[k], minlength=n_cls**2).view(n_cls, n_cls)
    iou = hist.diag() / (hist.sum(0) + hist.sum(1) - hist.diag())
    return iou.mean().item()
