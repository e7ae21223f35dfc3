"""A model of two graphs, each put on the device and given in one list."""

import torch

from properties import load_model

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = load_model("gap").to(device)
model.eval()


def table(entries, graph_of):
    rows = []
    for entry in entries:
        graph, lines = graph_of(entry)
        value = model([graph.to(device), lines.to(device)]).detach().cpu().numpy()  # note: GPU201
        rows.append(value)
    return rows
