"""The lattice: what a name stands for at one point of a function."""
