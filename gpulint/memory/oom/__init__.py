"""Out-of-memory messages: reading them, telling capacity from fragmentation, what to do. No torch needed."""
