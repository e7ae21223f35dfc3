"""`map_location=device` for a moment's copy of the weights, and devices of which nothing is known."""

import torch


def load(net, path):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    net.load_state_dict(torch.load(path, map_location=device))
    state = torch.load(path, map_location=device)
    net.load_state_dict(state["net"])
    return net.to(device)


def resume_and_return(net, optimizer, path):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    net.to(device)
    state = torch.load(path, map_location=device)
    net.load_state_dict(state["net"])
    optimizer.load_state_dict(state["optimizer"])
    return state["epoch"]


def resume(net, optimizer, path, args):
    state = torch.load(path, map_location=args.device)
    net.load_state_dict(state["net"])
    optimizer.load_state_dict(state["optimizer"])
    state = torch.load(path, map_location=lambda storage, place: storage)
    net.load_state_dict(state["net"])
    return net.cuda()


def infer(net, path, loader):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    state = torch.load(path, map_location=device)
    net.load_state_dict(state["net"])
    del state
    for x in loader:
        net.predict(x.to(device))
