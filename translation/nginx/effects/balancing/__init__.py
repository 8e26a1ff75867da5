"""Balancing: the upstream of a location, canaries, affinity, and mirrored requests."""
