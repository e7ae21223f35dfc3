"""What can be read off the text of one function: keys, definitions and uses, blocks, and what reaches what."""
