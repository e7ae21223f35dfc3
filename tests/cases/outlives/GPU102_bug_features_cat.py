import torch
from torchvision.models import resnet50


@torch.no_grad()
def extract_features(loader, device="cuda"):
    net = resnet50(weights="IMAGENET1K_V2")
    net.fc = torch.nn.Identity()
    net.eval().to(device)
    feats = []
    for images, _ in loader:
        f = net(images.to(device))
        feats.append(f)  # low: GPU102
    return torch.cat(feats, dim=0).cpu().numpy()
