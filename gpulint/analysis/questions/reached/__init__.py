"""Who gets to a function, or to a statement in it, and is there a way at all?"""
