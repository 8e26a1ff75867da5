"""The order in which records are written and deleted."""
