"""A picture of 800 x 800 rays, rendered chunk by chunk for the disk: every chunk's colours and densities stay on the GPU."""

import imageio
import numpy as np
import torch


class Renderer:
    def __init__(self, field, near=2.0, far=6.0):
        self.field = field.cuda().eval()
        self.near, self.far = near, far

    @torch.no_grad()
    def frames(self, cameras, out, chunk=8192):
        for k, (origins, directions) in enumerate(cameras):
            colours, weights = [], []
            for i in range(0, len(origins), chunk):
                o, d = origins[i : i + chunk].cuda(), directions[i : i + chunk].cuda()
                rgb, w = self.field.render(o, d, self.near, self.far)
                colours.append(rgb)  # maybe: GPU102
                weights.append(w)  # expect: GPU102
            image = torch.cat(colours).reshape(800, 800, 3).cpu().numpy()
            np.save(f"{out}/{k:04}.npy", torch.cat(weights).cpu().numpy())
            imageio.imwrite(f"{out}/{k:04}.png", (image * 255).astype("uint8"))
