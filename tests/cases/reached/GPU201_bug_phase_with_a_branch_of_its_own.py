"""One loop trains, validates and writes down what a network gives: what it is there for is in a variable, and each has its
branch."""
# file: tables.py
def run_all(nets, chunk, wanted):
    found = {}
    for name in nets:
        found[name] = nets[name](chunk)
    found["loss"] = sum(one.pow(2).mean() for one in found.values())
    return found
# file: run.py
import sys

from data import chunks, write
from nets import make_nets
from tables import run_all

purpose, path = sys.argv[1], sys.argv[2]
nets, optimizer = make_nets()
total = 0
for number, chunk in enumerate(chunks(path)):
    found = run_all(nets, chunk.cuda(), purpose)  # expect: GPU201
    if purpose == "train":
        optimizer.zero_grad()
        found["loss"].backward()
        optimizer.step()
    if purpose == "forward":
        write(number, found["scores"].data.cpu().numpy())
    else:
        total = total + found["loss"].detach()
print(total)
