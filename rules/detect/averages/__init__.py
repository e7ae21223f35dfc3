"""Running averages that take a graph in with each update: how one is spelled, and one file a kind."""
