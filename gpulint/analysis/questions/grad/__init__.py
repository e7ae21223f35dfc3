"""Is grad on at this statement, and does what runs there make a graph?"""
