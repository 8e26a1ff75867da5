"""Translation: from objects to records. Pure functions, one module a kind; they hold no client, clock or logger."""
