import torch


def load(build, path, precision):
    checkpoint = torch.load(path)
    model = build().to(precision)
    model.load_state_dict(checkpoint["state_dict"])
    return model


def resume(device_name, net, optimizer, path):
    state = torch.load(path)
    net.load_state_dict(state["net"])
    optimizer.load_state_dict(state["optimizer"])
    return net.to("cpu"), device_name
