"""What GPU101, GPU104 and GPU107 share: what they claim, how it is told, and how it is mended; the last also with GPU102, GPU105, GPU106 and GPU404."""
