"""The registry's entry point runs every command with grad off."""

import argparse

import numpy as np
import torch
from transformers import AutoModel

COMMANDS = {}


def command(name):
    def keep(function):
        COMMANDS[name] = function
        return function

    return keep


@command("vectors")
def write_vectors(args):
    encoder = AutoModel.from_pretrained(args.model).cuda().eval()
    tokens = torch.load(args.corpus, map_location="cpu")
    rows = []
    for part in tokens.split(64):
        states = encoder(part.cuda()).last_hidden_state
        rows.append(states[:, 0].cpu().detach().numpy())
    np.save(args.out, np.concatenate(rows))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("command", choices=sorted(COMMANDS))
    for name in ("--model", "--corpus", "--out"):
        parser.add_argument(name)
    args = parser.parse_args()
    with torch.inference_mode():
        COMMANDS[args.command](args)


if __name__ == "__main__":
    main()
