"""Who gets to a function at all?"""
