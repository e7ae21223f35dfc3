import os

import torch


def resume(scheduler, scaler, sampler, folder):
    """Schedulers, scalers and samplers hold numbers."""
    torch.cuda.set_device(0)
    scheduler.load_state_dict(torch.load(os.path.join(folder, "scheduler.pt")))
    scaler.load_state_dict(torch.load(os.path.join(folder, "scaler.pt")))
    state = torch.load(os.path.join(folder, "sampler.pt"))
    sampler.load_state_dict(state)


def quantized(net, path):
    quantized_weights = torch.load(path)
    net.load_state_dict(quantized_weights)


def chosen(net, path, device):
    net.load_state_dict(torch.load(path, map_location=device))
    net.load_state_dict(torch.load(path, **{"map_location": device}))
