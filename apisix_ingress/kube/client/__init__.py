"""Requests to the API server: credentials, connections and responses."""
