"""Translation with nn.Transformer: padded sentences, label smoothing, the schedule of "Attention is all you need", greedy decoding."""

import argparse
import math
import random

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

PAD, BEGIN, END = 0, 1, 2


class Positions(nn.Module):
    def __init__(self, width: int, dropout: float, longest: int = 512) -> None:
        super().__init__()
        steps = torch.exp(-torch.arange(0, width, 2) * math.log(10000) / width)
        angles = torch.arange(longest)[:, None] * steps
        table = torch.zeros(longest, 1, width)
        table[:, 0, 0::2] = angles.sin()
        table[:, 0, 1::2] = angles.cos()
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("table", table)

    def forward(self, embedded: torch.Tensor) -> torch.Tensor:
        return self.dropout(embedded + self.table[: embedded.size(0)])


class Seq2Seq(nn.Module):
    def __init__(self, source: int, target: int, width: int = 512) -> None:
        super().__init__()
        self.width = width
        self.source = nn.Embedding(source, width, padding_idx=PAD)
        self.target = nn.Embedding(target, width, padding_idx=PAD)
        self.positions = Positions(width, 0.1)
        self.transformer = nn.Transformer(width, 8, 6, 6, 2048, 0.1)
        self.generator = nn.Linear(width, target)

    def encode(self, src: torch.Tensor, padding: torch.Tensor) -> torch.Tensor:
        embedded = self.positions(self.source(src) * math.sqrt(self.width))
        return self.transformer.encoder(embedded, src_key_padding_mask=padding)

    def decode(self, tgt, memory, padding, tgt_padding=None):
        mask = self.transformer.generate_square_subsequent_mask(tgt.size(0), device=tgt.device)
        embedded = self.positions(self.target(tgt) * math.sqrt(self.width))
        return self.transformer.decoder(
            embedded, memory, tgt_mask=mask, tgt_key_padding_mask=tgt_padding, memory_key_padding_mask=padding
        )

    def forward(self, src: torch.Tensor, tgt: torch.Tensor) -> torch.Tensor:
        padding = (src == PAD).t()
        memory = self.encode(src, padding)
        return self.generator(self.decode(tgt, memory, padding, (tgt == PAD).t()))


def sentences(count: int, words: int, seed: int):
    chance = random.Random(seed)

    def sentence(length):
        return torch.tensor([BEGIN, *(chance.randrange(3, words) for _ in range(length)), END])

    lengths = [chance.randrange(6, 90) for _ in range(count)]
    return [(sentence(length), sentence(max(4, length + chance.randrange(-6, 12)))) for length in lengths]


def collate(pairs):
    return tuple(pad_sequence(side, padding_value=PAD) for side in zip(*pairs, strict=True))


@torch.no_grad()
def greedy(model: Seq2Seq, src: torch.Tensor, longest: int = 24) -> torch.Tensor:
    model.eval()
    padding = (src == PAD).t()
    memory = model.encode(src, padding)
    found = torch.full((1, src.size(1)), BEGIN, device=src.device)
    for _ in range(longest):
        scores = model.generator(model.decode(found, memory, padding)[-1])
        found = torch.cat([found, scores.argmax(dim=1)[None]])
        if (found == END).any(dim=0).all():
            break
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--words", type=int, default=20000)
    args = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train = DataLoader(
        sentences(args.batch * 8, args.words, 0), args.batch, collate_fn=collate, pin_memory=True
    )
    test = DataLoader(sentences(args.batch * 2, args.words, 1), args.batch, collate_fn=collate)
    model = Seq2Seq(args.words, args.words).to(device)
    for p in model.parameters():
        if p.dim() > 1:
            nn.init.xavier_uniform_(p)
    criterion = nn.CrossEntropyLoss(ignore_index=PAD, label_smoothing=0.1)
    optimizer = torch.optim.Adam(model.parameters(), lr=1.0, betas=(0.9, 0.98), eps=1e-9)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: 512**-0.5 * min((step + 1) ** -0.5, (step + 1) * 4000**-1.5)
    )
    for epoch in range(args.epochs):
        model.train()
        losses = 0.0
        for src, tgt in train:
            src, tgt = src.to(device, non_blocking=True), tgt.to(device, non_blocking=True)
            logits = model(src, tgt[:-1])
            optimizer.zero_grad()
            loss = criterion(logits.reshape(-1, logits.shape[-1]), tgt[1:].reshape(-1))
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            losses += loss.item()
        translated = [greedy(model, src.to(device)).t().tolist() for src, _ in test]
        print(epoch, losses / len(train), len(translated[0][0]))


if __name__ == "__main__":
    main()
