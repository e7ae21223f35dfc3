import torch
import torchvision.transforms as T
from torchvision.models import vit_b_16


class FeatureExtractor:
    def __init__(self, device="cuda"):
        self.device = device
        self.net = vit_b_16(weights="DEFAULT").to(device)
        self.net.heads = torch.nn.Identity()
        self.net.eval()
        self.tf = T.Compose([T.Resize(224), T.CenterCrop(224), T.ToTensor()])

    def extract(self, images):
        batch = torch.stack([self.tf(im) for im in images]).to(self.device)
        feats = self.net(batch)  # expect: GPU201
        return feats.detach().cpu().numpy()
