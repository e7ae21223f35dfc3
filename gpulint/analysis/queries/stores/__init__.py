"""What is asked of values that stay: where they are stored, for how long, and what becomes of their graph."""
