"""Is it on a GPU?"""
