import argparse

import deepspeed
import torch


def train(net, dataset, args):
    engine, _, loader, _ = deepspeed.initialize(
        args=args, model=net, model_parameters=net.parameters(), training_data=dataset
    )
    history = []
    for epoch in range(args.epochs):
        for ids, labels in loader:
            ids = ids.to(engine.local_rank)
            labels = labels.to(engine.local_rank)
            loss = engine(ids, labels)
            engine.backward(loss)
            engine.step()
            history.append(loss)  # expect: GPU101
        if engine.global_rank == 0:
            print(epoch, torch.stack(history).mean().item())


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=1)
    p = deepspeed.add_config_arguments(p)
    from mymodel import build

    train(*build(), p.parse_args())
