"""What is put back at the head of the next round is what the place was given in the last one: the live weights."""

import torch


def train(encoder, decoder, rounds, batches):
    encoder.cuda(), decoder.cuda()
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()])
    least, best = float("inf"), None
    for _ in range(rounds):
        if best is not None:
            encoder.load_state_dict(best["encoder"])
            decoder.load_state_dict(best["decoder"])
        total = 0.0
        for x, y in batches:
            loss = (decoder(encoder(x.cuda())) - y.cuda()).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        if total < least:
            least = total
            best = {"encoder": encoder.state_dict(), "decoder": decoder.state_dict()}  # expect: GPU404
