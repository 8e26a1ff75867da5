"""The golden cases on a real API server."""
