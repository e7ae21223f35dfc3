"""What transformers loads is float32 up to version 4, and as it was saved from 5 on; how large another is, the code does
not say; and a flag decides of the third."""

import torch
from transformers import AutoModelForCausalLM
from torchvision.models import vit_l_16


def loaded(name):
    return AutoModelForCausalLM.from_pretrained(name).cuda().half()


def generate(name, prompt):
    model = AutoModelForCausalLM.from_pretrained(name)
    model = model.to("cuda")
    model = model.to(torch.float16)  # low: GPU407
    return model.generate(prompt.cuda())


def classify(images, build, fp16):
    net = build().cuda()
    net.eval()
    net.half()  # low: GPU407
    other = vit_l_16()
    other.cuda()
    if fp16:
        other.half()  # low: GPU407
    with torch.no_grad():
        return net(images.cuda().half()).cpu(), other(images.cuda()).cpu()
