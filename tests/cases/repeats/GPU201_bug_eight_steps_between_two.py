"""Eight pictures between two codes are drawn, and that is all that the script does with the network."""

import numpy as np
import torch
from imageio import imwrite
from models import Painter

painter = Painter.load("painter.pt").cuda()
painter.eval()
first, second = torch.load("codes.pt", map_location="cuda")
for share in np.linspace(0, 1, 8):
    picture = painter(share * first + (1 - share) * second)  # low: GPU201
    imwrite(f"{share:.2f}.png", picture.squeeze(0).detach().cpu().numpy())
