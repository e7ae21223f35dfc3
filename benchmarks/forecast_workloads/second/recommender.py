"""A DLRM-like recommender: large embedding bags with sparse gradients, small ones with dense gradients, two optimizers."""

import argparse
import itertools

import torch
from torch import nn

LARGE = (2_000_000, 1_000_000, 800_000, 500_000, 300_000)
SMALL = (20_000, 12_000, 7_000, 1_500, 600, 300, 100, 24, 12, 4)


def mlp(sizes: tuple[int, ...], last: nn.Module) -> nn.Sequential:
    layers: list[nn.Module] = []
    for inputs, outputs in itertools.pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    layers[-1] = last
    return nn.Sequential(*layers)


class Recommender(nn.Module):
    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.large = nn.ModuleList(
            [nn.EmbeddingBag(rows, width, mode="sum", sparse=True, device="cuda") for rows in LARGE]
        )
        self.small = nn.ModuleList([nn.Embedding(rows, width, device="cuda") for rows in SMALL])
        self.bottom = mlp((13, 512, 256, width), nn.ReLU()).to("cuda")
        tables = len(LARGE) + len(SMALL) + 1
        rows, columns = torch.tril_indices(tables, tables, offset=-1, device="cuda")
        self.register_buffer("rows", rows)
        self.register_buffer("columns", columns)
        pairs = tables * (tables - 1) // 2
        self.top = mlp((width + pairs, 1024, 1024, 512, 1), nn.Identity()).to("cuda")

    def forward(self, numbers, bags, categories) -> torch.Tensor:
        dense = self.bottom(numbers)
        vectors = [dense]
        vectors += [table(bag) for table, bag in zip(self.large, bags, strict=True)]
        vectors += [table(categories[:, place]) for place, table in enumerate(self.small)]
        stacked = torch.stack(vectors, dim=1)
        products = torch.bmm(stacked, stacked.transpose(1, 2))
        return self.top(torch.cat([dense, products[:, self.rows, self.columns]], dim=1)).squeeze(1)


def batch_of(size: int) -> tuple[torch.Tensor, list[torch.Tensor], torch.Tensor, torch.Tensor]:
    """One batch of clicks; each user has seen five things of each large kind."""
    numbers = torch.rand(size, 13).log1p()
    bags = [torch.randint(0, rows, (size, 5)) for rows in LARGE]
    categories = torch.stack([torch.randint(0, rows, (size,)) for rows in SMALL], dim=1)
    return numbers, bags, categories, (torch.rand(size) < 0.03).float()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=8192)
    parser.add_argument("--steps", type=int, default=6)
    args = parser.parse_args()
    model = Recommender()
    sparse = torch.optim.SparseAdam(model.large.parameters(), lr=1e-3)
    dense = torch.optim.Adagrad(
        [p for name, p in model.named_parameters() if not name.startswith("large")], lr=1e-2
    )
    criterion = nn.BCEWithLogitsLoss()
    seen = []
    for _ in range(args.steps):
        numbers, bags, categories, clicked = batch_of(args.batch)
        numbers, categories = numbers.cuda(), categories.cuda()
        bags = [bag.cuda(non_blocking=True) for bag in bags]
        clicked = clicked.cuda()
        scores = model(numbers, bags, categories)
        loss = criterion(scores, clicked)
        sparse.zero_grad()
        dense.zero_grad()
        loss.backward()
        sparse.step()
        dense.step()
        seen.append(loss.item())
    model.eval()
    with torch.no_grad():
        numbers, bags, categories, clicked = batch_of(args.batch * 2)
        scores = torch.sigmoid(model(numbers.cuda(), [bag.cuda() for bag in bags], categories.cuda()))
        order = scores.argsort(descending=True)
        ranked = clicked.cuda()[order]
        hits = torch.cumsum(ranked, dim=0)
        print(seen, (hits / torch.arange(1, len(hits) + 1, device=hits.device))[ranked.bool()].mean().item())


if __name__ == "__main__":
    main()
