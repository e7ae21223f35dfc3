"""From function to function: along which calls, and how far."""
