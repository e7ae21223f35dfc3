"""What a network gives with a loss of its own keeps the scores of each position, whatever is done to that loss."""
import torch
from transformers import AutoModelForCausalLM


def tune(loader, parts):
    lm = AutoModelForCausalLM.from_pretrained("gpt2").cuda()
    opt = torch.optim.AdamW(lm.parameters(), 1e-4)
    for ids in loader:
        ids = ids.cuda()
        given = lm(ids, labels=ids)
        cost = given.loss  # expect: GPU401
        if parts > 1:
            cost = cost / parts
        print(cost.item())
        cost.backward()
        opt.step()
        opt.zero_grad()


def tune_any(net, loader):
    opt = torch.optim.AdamW(net.parameters(), 1e-4)
    for source, target in loader:
        given = net(source.cuda(), decoder_attention_mask=target.ne(0).cuda(), labels=target.cuda())
        cost = given[0].mean()  # low: GPU401
        cost.backward()
        opt.step()
        opt.zero_grad()
