import torch
from torchvision.models import resnet152


def folds(parts, fit):
    model = None
    for part in parts:
        model = None
        torch.cuda.empty_cache()
        model = resnet152().cuda()
        print(fit(model, part))


def deleted(parts, fit):
    for part in parts:
        torch.cuda.empty_cache()
        model = resnet152().cuda()
        print(fit(model, part))
        del model


def on_the_host(parts, fit):
    for part in parts:
        torch.cuda.empty_cache()
        model = resnet152()
        print(fit(model, part))


def first(fit, part):
    torch.cuda.empty_cache()
    model = resnet152().cuda()
    print(fit(model, part))
