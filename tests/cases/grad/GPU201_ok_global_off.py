import argparse

import torch
from torchvision.io import read_image
from torchvision.models.segmentation import fcn_resnet50

torch.set_grad_enabled(False)


def load(path, device):
    net = fcn_resnet50(num_classes=2)
    net.load_state_dict(torch.load(path, map_location=device))
    return net.to(device).eval()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("images", nargs="+")
    ap.add_argument("--ckpt")
    args = ap.parse_args()
    net = load(args.ckpt, "cuda")
    for p in args.images:
        out = net(read_image(p)[None].float().cuda() / 255)["out"]
        print(p, out.argmax(1).float().mean().item())  # maybe: GPU401


if __name__ == "__main__":
    main()
