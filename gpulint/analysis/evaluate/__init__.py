"""What an expression gives, worked out when somebody asks, and remembered."""
