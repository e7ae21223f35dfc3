"""What GPU101, GPU104 and GPU107 share: what they claim, how it is told, and how it is mended."""
