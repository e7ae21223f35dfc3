"""One file a command: its options and their help. What it does is in `gpulint/cli/_*.py`, loaded when it runs."""
