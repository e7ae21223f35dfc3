import torch


def restore(make, path):
    checkpoint = torch.load(path)  # low: GPU403
    weights = checkpoint
    for key in ("network", "state_dict"):
        if key in checkpoint:
            weights = checkpoint[key]
    net = make()
    net.load_state_dict(weights)
    return net.eval()


def main(args, make):
    reader = restore
    net = reader(make, args.path)
    if args.cuda and torch.cuda.is_available():
        net = net.to("cuda")
    return net
