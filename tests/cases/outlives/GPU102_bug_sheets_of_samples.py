"""All samples of a sheet stay on the device; the sheet is brought to the host as one."""

import torch


def sheet(make, rows, size, path):
    drawn = []
    for _ in range(rows):
        with torch.no_grad():
            picture = make(torch.randn(size, 128, device="cuda"))
        drawn += [picture]  # low: GPU102
    torch.save(torch.stack(drawn, 1).float().cpu(), path)
