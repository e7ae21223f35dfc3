"""gpulint: find, fix and verify GPU-memory mistakes in PyTorch training code."""
