"""One file a command: its options and their help. What it does, where that takes long to load, is in `gpulint/cli/_*.py`, loaded when it runs."""
