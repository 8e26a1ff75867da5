"""Policies of the Gateway API for backends, and their status."""
