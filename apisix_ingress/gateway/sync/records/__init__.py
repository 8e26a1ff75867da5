"""What the sync engine knows about single records of one gateway cluster."""
