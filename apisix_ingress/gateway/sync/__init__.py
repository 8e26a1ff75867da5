"""The sync engine of one gateway cluster."""
