"""One file a command: its options, their help and what it does. Where that takes long to load, or is long, it is in `gpulint/cli/_*.py`, loaded when it runs."""
