"""Process setup that comes before other imports: standard streams."""
