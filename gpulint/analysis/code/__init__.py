"""The lowered form of a module, and what can be read off its text alone."""
