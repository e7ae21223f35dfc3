"""Who holds what survived: the search from frames and modules down to a tensor."""
