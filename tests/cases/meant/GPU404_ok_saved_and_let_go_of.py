"""States under the name that a checkpoint had at the start: these are written to a file, and nothing puts them back."""

import torch


def save(state, path):
    torch.save(state, path)


def train(encoder, decoder, batches, path, every):
    encoder.cuda(), decoder.cuda()
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()])
    least = float("inf")
    if path.exists():
        state = torch.load(path, map_location="cpu")
        encoder.load_state_dict(state["encoder"])
        decoder.load_state_dict(state["decoder"])
        del state
    for step, (x, y) in enumerate(batches):
        loss = (decoder(encoder(x.cuda())) - y.cuda()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % every == 0 and loss.item() < least:
            least = loss.item()
            state = {"encoder": encoder.state_dict(), "decoder": decoder.state_dict(), "step": step}
            save(state, path)
            del state
