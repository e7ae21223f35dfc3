"""What a run gives back, as data, and the lines drawn through it."""
