"""The documents that the commands print."""
