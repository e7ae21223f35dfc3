import argparse
from pathlib import Path

import torch
from PIL import Image
from torchvision import transforms
from torchvision.models import efficientnet_b0

parser = argparse.ArgumentParser()
parser.add_argument("folder", type=Path)
parser.add_argument("--weights", required=True)
args = parser.parse_args()

model = efficientnet_b0(num_classes=12)
model.load_state_dict(torch.load(args.weights, map_location="cpu"))
model = model.cuda()
model.eval()

tf = transforms.Compose([transforms.Resize((224, 224)), transforms.ToTensor()])

for path in sorted(args.folder.glob("*.jpg")):
    img = tf(Image.open(path).convert("RGB")).unsqueeze(0).cuda()
    out = model(img)  # expect: GPU201
    print(path.name, out.argmax(1).item())
