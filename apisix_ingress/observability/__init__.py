"""Logs, metrics and the HTTP server for health, readiness and metrics."""
