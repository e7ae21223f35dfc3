import torch


def resume(model, opt, path):
    ckpt = torch.load(path, map_location="cpu")
    model.load_state_dict(ckpt["model"])
    opt.load_state_dict(ckpt["opt"])
    return ckpt["step"]


def load(model, path):
    model.load_state_dict(torch.load(path, map_location=torch.device("cpu"), weights_only=True))
    model.load_state_dict(torch.load(path, "cpu"))
    model.load_state_dict(torch.load(path, map_location=lambda storage, loc: storage))
    return model.cuda()
