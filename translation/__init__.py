"""Translation: from objects to records. Pure functions, one module per kind; they use no client, clock or logger."""
