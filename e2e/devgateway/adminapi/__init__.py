"""The Admin API of the development gateway."""
