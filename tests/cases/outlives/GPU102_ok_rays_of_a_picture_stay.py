"""Every chunk goes into its rows of a picture that lies on the host."""

import imageio
import torch


class Renderer:
    def __init__(self, field, near=2.0, far=6.0):
        self.field = field.cuda().eval()
        self.near, self.far = near, far

    @torch.no_grad()
    def frames(self, cameras, out, chunk=8192):
        for k, (origins, directions) in enumerate(cameras):
            image = torch.empty(len(origins), 3)
            for i in range(0, len(origins), chunk):
                o, d = origins[i : i + chunk].cuda(), directions[i : i + chunk].cuda()
                rgb, _ = self.field.render(o, d, self.near, self.far)
                image[i : i + chunk] = rgb
            picture = image.reshape(800, 800, 3).numpy()
            imageio.imwrite(f"{out}/{k:04}.png", (picture * 255).astype("uint8"))
