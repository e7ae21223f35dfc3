"""What libraries do, as data that a person who knows them can read: one file a library, in `data/`."""
