"""A test runner calls this one: grad is on, and nobody minds."""

import pytest
import torch
from torchvision import models


@pytest.fixture
def pictures():
    return [torch.rand(2, 3, 64, 64) for _ in range(3)]


def test_scores_are_finite(pictures, device="cuda"):
    network = models.resnet18().to(device)
    network.eval()
    for batch in pictures:
        scores = network(batch.to(device))
        assert torch.isfinite(scores).all().item()


def run(pictures):
    test_scores_are_finite(pictures)
