"""Who gets to a statement, and is there a way at all?"""
