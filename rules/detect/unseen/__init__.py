"""What the text around a call tells where the interpreter has lost sight of a network or of what it gives."""
