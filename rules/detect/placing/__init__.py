"""Where things are put, and when: networks and their types, a process and its card, tensors of every step, gathered results."""
