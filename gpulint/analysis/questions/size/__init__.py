"""How large a network is, by its constructors."""
