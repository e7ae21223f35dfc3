from collections import defaultdict

import torch
from torchvision.models import wide_resnet50_2
from torchvision.models.feature_extraction import create_feature_extractor


@torch.no_grad()
def padim_features(loader):
    net = wide_resnet50_2(weights="DEFAULT").cuda().eval()
    net = create_feature_extractor(net, ["layer1", "layer2", "layer3"])
    feats = defaultdict(list)
    for x, *_ in loader:
        for name, f in net(x.cuda()).items():
            feats[name].append(f)  # low: GPU102
    return {k: torch.cat(v).cpu() for k, v in feats.items()}
