"""What starts the script, listens and judges. It is given findings as data."""
