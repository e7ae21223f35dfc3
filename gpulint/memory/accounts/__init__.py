"""Where the bytes of a card are: what torch counts, what lies outside it, and what nobody explains."""
