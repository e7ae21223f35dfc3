"""A tuple of volumes is handed out for each scan and written before the next one is made."""

from pathlib import Path

import nibabel as nib
import numpy as np
import torch


@torch.no_grad()
def predicted(net: torch.nn.Module, scans):
    net.cuda().eval()
    for name, volume in scans:
        volume = volume.cuda(non_blocking=True).unsqueeze(0)
        yield name, volume, net(volume).softmax(1)


def predict_all(net, scans, folder):
    for name, volume, seg in predicted(net, scans):
        picture = np.concatenate([volume.cpu().numpy(), seg.cpu().numpy()], axis=1)
        nib.save(nib.Nifti1Image(picture[0], np.eye(4)), Path(folder) / f"{name}.nii.gz")
