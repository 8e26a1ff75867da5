"""Gateway API → records and status documents. Pure functions, one module per subject."""
