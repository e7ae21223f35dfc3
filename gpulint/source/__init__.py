"""What a file is: discovery, text, notebooks, cells, magics, shell settings."""
