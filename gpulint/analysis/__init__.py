"""What the code does to memory: libcst in, facts out. Knows no rule."""
