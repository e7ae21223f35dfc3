"""Does any backward go through a value later, here or in a caller?"""
