"""Image features of a pretrained network from a library, one file at a time."""

from pathlib import Path

import clip
import numpy as np
from PIL import Image

network, prepare = clip.load("ViT-B/32", device="cuda")
table = {}
for path in Path("pictures").iterdir():
    image = prepare(Image.open(path)).unsqueeze(0).to("cuda")
    vector = network.encode_image(image)  # expect: GPU201
    table[path.name] = vector.detach().cpu().numpy()
np.savez("features.npz", **table)
