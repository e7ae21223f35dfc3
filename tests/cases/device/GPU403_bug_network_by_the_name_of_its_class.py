"""A name stands first for what makes networks, and then for the network: what is loaded goes into that."""

import networks
import torch
from options import parser


def main():
    args = parser.parse_args()
    model = networks.__dict__[args.arch]
    model = model(width=1024, depth=24)
    print(sum(p.nelement() for p in model.parameters()))
    checkpoint = torch.load(args.resume)  # expect: GPU403
    model.load_state_dict(checkpoint["model"])
    best = checkpoint["best"]
    model.cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    optimizer.load_state_dict(checkpoint["optimizer"])
    for x, y in torch.utils.data.DataLoader(args.data):
        loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return best
