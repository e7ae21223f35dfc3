"""What a forward is asked for and somebody reads, or may; and where it costs nothing."""

import torch
from elsewhere import pooled
from torch import nn
from transformers import AutoModel


@torch.no_grad()
def embed(loader):
    model = AutoModel.from_pretrained("bert-large-uncased").cuda().eval()
    vectors = []
    for batch in loader:
        out = model(**batch, output_hidden_states=True)
        vectors.append((out.hidden_states[-1] + out.hidden_states[1]).mean(1).cpu())
    return torch.cat(vectors)


@torch.no_grad()
def stack(loader):
    model = AutoModel.from_pretrained("bert-large-uncased").cuda().eval()
    for batch in loader:
        states = model(**batch, output_hidden_states=True).hidden_states
        yield torch.stack(states).cpu()


@torch.no_grad()
def by_position(loader):
    model = AutoModel.from_pretrained("bert-large-uncased").cuda().eval()
    for batch in loader:
        yield model(**batch, output_hidden_states=True, return_dict=False)[2][-4].cpu()


@torch.no_grad()
def by_others(loader):
    model = AutoModel.from_pretrained("bert-large-uncased").cuda().eval()
    for batch in loader:
        yield pooled(model(**batch, output_hidden_states=True), batch["attention_mask"]).cpu()


@torch.no_grad()
def as_somebody_wants(loader, wanted: bool):
    model = AutoModel.from_pretrained("bert-large-uncased").cuda().eval()
    for batch in loader:
        yield model(**batch, output_hidden_states=wanted).last_hidden_state[:, 0].cpu()


def train(loader, head, optimizer):
    model = AutoModel.from_pretrained("bert-large-uncased").cuda()
    for batch, targets in loader:
        out = model(**batch, output_hidden_states=True)
        loss = torch.nn.functional.cross_entropy(head(out.last_hidden_state[:, 0]), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class Mixed(nn.Module):
    """A network of the program's own, which reads what it is asked for."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(64, 64) for _ in range(8))

    def forward(self, x, output_hidden_states=False):
        states = []
        for layer in self.layers:
            x = layer(x)
            states.append(x)
        return Given(sum(states) if output_hidden_states else x)


class Given:
    def __init__(self, scores):
        self.scores = scores


@torch.no_grad()
def evaluate(loader):
    model = Mixed().cuda().eval()
    for batch in loader:
        yield model(batch, output_hidden_states=True).scores.argmax(-1).cpu()


class Judge(nn.Module):
    """What it asks for is read where nobody gets to: it is made without leave to judge."""

    def __init__(self, model=None, judges=False):
        super().__init__()
        self.model = model
        self.judges = judges

    def score(self, **batch):
        if not self.judges:
            raise ValueError("it does not judge")
        with torch.no_grad():
            out = self.model(**batch, output_hidden_states=True)
            return out.hidden_states[3].cpu()


if __name__ == "__main__":
    from elsewhere import head, loader, optimizer

    print([Judge(AutoModel.from_pretrained("bert-large-uncased")).score(**batch) for batch in loader])

    train(loader, head, optimizer)
    for run in (stack, by_position, by_others, evaluate):
        print(len(list(run(loader))))
    print(embed(loader).shape, len(list(as_somebody_wants(loader, True))))
