"""A tuple of volumes for each scan of the test set, all on the GPU, until they are written one after another."""

from pathlib import Path

import nibabel as nib
import numpy as np
import torch


@torch.no_grad()
def predict_all(net: torch.nn.Module, scans, folder):
    net.cuda().eval()
    done = []
    for name, volume in scans:
        volume = volume.cuda(non_blocking=True).unsqueeze(0)
        seg = net(volume).softmax(1)
        done.append((name, volume, seg))  # low: GPU102
    for name, volume, seg in done:
        picture = np.concatenate([volume.cpu().numpy(), seg.cpu().numpy()], axis=1)
        nib.save(nib.Nifti1Image(picture[0], np.eye(4)), Path(folder) / f"{name}.nii.gz")
