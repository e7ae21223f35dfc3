"""Which classes make objects with parameters."""
