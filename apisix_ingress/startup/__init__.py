"""What the process sets up before anything else is imported: imports, standard streams, the allocator."""
