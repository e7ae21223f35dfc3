"""What a verification looks like: text, JSON, the HTML page and progress."""
