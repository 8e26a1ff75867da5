"""The content of each generated page."""
