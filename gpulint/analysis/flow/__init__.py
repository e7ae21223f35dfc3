"""The interpreter: values through statements, loops and calls, and what is held."""
