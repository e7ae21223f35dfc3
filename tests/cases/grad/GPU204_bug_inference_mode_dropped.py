from torch import inference_mode, nn


def run(net: nn.Module, xs):
    net.eval()
    inference_mode()  # expect: GPU204
    return [net(x.cuda()).argmax().item() for x in xs]  # maybe: GPU201
