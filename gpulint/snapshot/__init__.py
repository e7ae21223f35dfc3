"""PyTorch's memory snapshots: read without running what is in them, and what they say."""
