"""Plugins: their configuration, and the review that `kubernetes.plugins: reviewed` applies."""
