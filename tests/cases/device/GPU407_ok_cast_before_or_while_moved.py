"""Cast on the host, or by the call that moves; and networks that stay on the host."""

import torch
from torchvision.models import vit_l_16
from transformers import AutoModelForCausalLM


def build(name, device):
    first = vit_l_16().half().to(device)
    second = vit_l_16().to(device, torch.bfloat16)
    third = vit_l_16().to(device=device, dtype=torch.float16)
    fourth = AutoModelForCausalLM.from_pretrained(name, torch_dtype=torch.float16).cuda().half()
    fifth = vit_l_16().to("cpu").to(torch.bfloat16)
    sixth = vit_l_16().cuda().float()
    return first, second, third, fourth, fifth, sixth
