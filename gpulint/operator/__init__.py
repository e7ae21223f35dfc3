"""What an operator types: the logic behind `gpulint gpu`, `oom`, `run` and `experiment`. Imports no torch."""
