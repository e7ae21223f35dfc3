"""A script that makes pictures with grad switched off for all of it."""

import imageio
import numpy as np
import torch
from parts import all_networks, open_rays

torch.set_grad_enabled(False)
networks = all_networks(torch.device("cuda"))

for number, rays in enumerate(open_rays("film")):
    colours = networks["decoder"](rays.cuda())
    imageio.imwrite(f"{number:03d}.png", (colours.cpu().numpy() * 255).astype(np.uint8))
