import torch


def free(*tensors):
    for t in tensors:
        del t  # note: GPU405@d
    torch.cuda.empty_cache()


def phase(encoder, x, rest):
    z = encoder(x.cuda()).detach()  # maybe: GPU201
    y = rest(z.cpu())  # maybe: GPU201
    free(encoder, z)  # note: GPU405@d
    return y
