"""ViT-B/16 from timm in single precision with AdamW and clipped gradients."""

import argparse

import timm
import torch


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--steps", type=int, default=5)
    args = parser.parse_args()
    device = "cuda"
    model = timm.create_model("vit_base_patch16_224", num_classes=1000, drop_path_rate=0.1).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    criterion = torch.nn.CrossEntropyLoss()
    model.train()
    for step in range(args.steps):
        images = torch.randn(args.batch, 3, 224, 224, device=device)
        labels = torch.randint(0, 1000, (args.batch,), device=device)
        loss = criterion(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 2 == 0:
            print(step, loss.item())


if __name__ == "__main__":
    main()
