"""Memory snapshots, told."""
