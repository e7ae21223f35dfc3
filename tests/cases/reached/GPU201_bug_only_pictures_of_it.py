"""Neither eval mode nor a name says that this evaluates, only that pictures are all that is left."""

import imageio
import numpy as np
import torch
from parts import all_networks, open_rays

networks = all_networks(torch.device("cuda"))

for number, rays in enumerate(open_rays("film")):
    colours = networks["decoder"](rays.cuda())  # low: GPU201
    picture = np.clip(colours.detach().cpu().numpy(), 0, 1)
    imageio.imwrite(f"{number:03d}.png", (picture * 255).astype(np.uint8))
