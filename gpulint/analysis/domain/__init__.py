"""What an expression may be: a product of kind, graph, place, size, origins, and the assumptions that it rests on."""
