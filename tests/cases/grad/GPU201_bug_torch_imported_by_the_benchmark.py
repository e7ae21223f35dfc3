import time


def on_torch(loader, times):
    """Imports what only one of the two benchmarks needs; nothing of the module names it."""
    import torch
    from torchvision.models import vgg16

    net = vgg16().cuda().eval()
    began = time.time()
    for _ in range(times):
        for pictures, _ in loader:
            best = net(pictures.cuda()).argmax(1)  # expect: GPU201
            print(best.tolist())
    torch.cuda.synchronize()
    return time.time() - began
