"""Files, what they define and import, and who may call whom: names and texts, no values."""
