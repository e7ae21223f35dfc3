"""The questions on which claims stand, a folder each."""
