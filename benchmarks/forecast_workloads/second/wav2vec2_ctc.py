"""Speech recognition with wav2vec 2.0 (transformers) and CTC: waveforms of varying lengths, gradients of two batches added up."""

import argparse
import random

import torch
from torch.nn.utils import clip_grad_norm_
from torch.utils.data import DataLoader
from transformers import Wav2Vec2Config, Wav2Vec2ForCTC, get_linear_schedule_with_warmup


def collate(items):
    longest = max(len(wave) for wave, _ in items)
    waves = torch.zeros(len(items), longest)
    mask = torch.zeros(len(items), longest, dtype=torch.long)
    labels = torch.full((len(items), max(len(text) for _, text in items)), -100)
    for row, (wave, text) in enumerate(items):
        waves[row, : len(wave)] = (wave - wave.mean()) / (wave.std() + 1e-7)
        mask[row, : len(wave)] = 1
        labels[row, : len(text)] = torch.tensor(text)
    return waves, mask, labels


def speech(count: int, rate: int = 16000):
    chance = random.Random(1)
    found = []
    for _ in range(count):
        seconds = chance.uniform(3.0, 12.0)
        text = [chance.randrange(5, 32) for _ in range(int(seconds * 6))]
        found.append((torch.rand(int(seconds * rate)) - 0.5, text))
    return sorted(found, key=lambda one: len(one[0]))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--accumulate", type=int, default=2)
    parser.add_argument("--steps", type=int, default=10)
    args = parser.parse_args()
    torch.manual_seed(0)
    device = "cuda"
    config = Wav2Vec2Config(vocab_size=32, ctc_loss_reduction="mean", ctc_zero_infinity=True, layerdrop=0.0)
    model = Wav2Vec2ForCTC(config)
    model.freeze_feature_encoder()
    model.to(device).train()
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=3e-4, weight_decay=0.005)
    schedule = get_linear_schedule_with_warmup(optimizer, 8, 100)
    scaler = torch.amp.GradScaler(device)
    loader = DataLoader(
        speech(args.batch * args.steps), batch_size=args.batch, shuffle=True, collate_fn=collate
    )
    running = 0.0
    for step, (waves, mask, labels) in enumerate(loader, start=1):
        waves, mask, labels = waves.to(device), mask.to(device), labels.to(device)
        with torch.autocast(device, dtype=torch.float16):
            loss = model(waves, attention_mask=mask, labels=labels).loss / args.accumulate
        scaler.scale(loss).backward()
        running += loss.item()
        if step % args.accumulate == 0:
            scaler.unscale_(optimizer)
            clip_grad_norm_(trained, 1.0)
            scaler.step(optimizer)
            scaler.update()
            schedule.step()
            optimizer.zero_grad()
            print(step, running)
            running = 0.0


if __name__ == "__main__":
    main()
