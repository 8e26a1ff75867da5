"""Policies of the Gateway API: what they ask of backends, and what their status says."""
