"""Hidden states and attention maps that a forward is asked for, and of which nobody reads any, or only the last."""

import torch
from transformers import AutoModel


@torch.no_grad()
def embed(loader):
    model = AutoModel.from_pretrained("bert-large-uncased").cuda().eval()
    vectors = []
    for batch in loader:
        out = model(**batch, output_hidden_states=True)  # expect: GPU409
        vectors.append(out.last_hidden_state[:, 0].cpu())
    return torch.cat(vectors)


@torch.no_grad()
def embed_by_the_last(loader):
    model = AutoModel.from_pretrained("bert-large-uncased").cuda().eval()
    vectors = []
    for batch in loader:
        states = model(**batch, output_hidden_states=True).hidden_states  # expect: GPU409
        states = states[-1]
        vectors.append(states.mean(1).cpu())
    return torch.cat(vectors)


def train(loader, head, optimizer):
    model = AutoModel.from_pretrained("bert-large-uncased").cuda()
    for batch, targets in loader:
        out = model(**batch, output_attentions=True)  # expect: GPU409
        loss = torch.nn.functional.cross_entropy(head(out[0][:, 0]), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class Encoder:
    def __init__(self, model):
        self.model = model

    @torch.no_grad()
    def encode(self, loader):
        for batch in loader:
            out = self.model(**batch, output_hidden_states=True)  # low: GPU409
            yield out.pooler_output.cpu()


@torch.no_grad()
def embed_by_what_is_downloaded(name, loader):
    model = AutoModel.from_pretrained(name, trust_remote_code=True).cuda().eval()
    for batch in loader:
        yield model(**batch, output_hidden_states=True).last_hidden_state[:, 0].cpu()  # low: GPU409
