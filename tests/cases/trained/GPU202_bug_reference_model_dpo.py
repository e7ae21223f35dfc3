import torch
import torch.nn.functional as F


def logps(model, ids, mask):
    lp = model(ids).logits[:, :-1].log_softmax(-1)
    return (lp.gather(2, ids[:, 1:, None]).squeeze(2) * mask[:, 1:]).sum(1)


def dpo(policy, ref_model, loader, beta=0.1):
    ref_model.eval()
    opt = torch.optim.RMSprop(policy.parameters(), lr=5e-7)
    for chosen, cm, rejected, rm in loader:
        pc, pr = logps(policy, chosen, cm), logps(policy, rejected, rm)
        rc = logps(ref_model, chosen, cm).detach()  # expect: GPU202
        rr = logps(ref_model, rejected, rm).detach()  # maybe: GPU202
        loss = -F.logsigmoid(beta * ((pc - pr) - (rc - rr))).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
