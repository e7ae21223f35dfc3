"""einops gives tensors of the same graph: what is rearranged and then drawn is only drawn."""

import imageio
import numpy as np
import torch
from einops import rearrange
from parts import features_of, open_rays
from torch import nn

decoder = nn.Sequential(nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(), nn.Conv2d(64, 3, 1)).cuda()
decoder.load_state_dict(torch.load("decoder.pt"))
tables = {"decoder": decoder}

for number, rays in enumerate(open_rays("film")):
    found = features_of(rays.cuda())
    plane = rearrange(found["fine"], "(h w) c -> 1 c h w", h=480, w=640)
    colours = tables["decoder"](plane)  # expect: GPU201
    colours = rearrange(colours, "1 c h w -> h w c")
    found["colours"] = colours.cpu()
    picture = np.clip(found["colours"].detach().numpy(), 0, 1)
    imageio.imwrite(f"{number:03d}.png", (picture * 255).astype(np.uint8))
