"""A torch before 2.1 copies the states that an optimizer is given: those that were loaded onto the GPU lie there twice."""
# file: setup.py
from setuptools import setup

setup(name="resumes", install_requires=["torch>=1.9,<2.1"])

# file: resume.py
import torch


def resume(net, optimizer, path):
    net.cuda()
    optimizer.load_state_dict(torch.load(path))  # low: GPU403
